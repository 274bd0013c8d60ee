import COpenSSL
import FoundationEssentials
import Glibc
import HTTPWire

/// TLS over the connection of one stream, perhaps after cleartext. Belongs to the loop's thread.
///
/// libcurl could only begin TLS with the connection. The server is evaluated as for any request, within the handshake,
/// which is suspended while the watcher decides.
final class StreamTLS {
  private let context: OpaquePointer
  let session: OpaquePointer
  private let request: WireRequest
  let connection: any StreamConnection
  private let evaluation: ServerEvaluation
  /// The reason for which OpenSSL was told to refuse the server or to wait, or for which no bytes move.
  var failure: TransportFailure?
  /// Whether an error has occurred. After an error, no function may be called, not even the shutdown.
  private var isBroken = false
  /// Whether the handshake is over. After an error, OpenSSL does not tell.
  private var isOpen = false
  /// Whether `close_notify` was sent.
  private var hasShut = false
  /// The identity of the client, after the watcher has chosen.
  private var choice: Choice?

  private enum Choice {
    case withoutIdentity
    case identity(ClientIdentity)
  }

  private init(
    _ context: OpaquePointer, _ session: OpaquePointer, _ connection: any StreamConnection,
    _ request: WireRequest
  ) {
    self.connection = connection
    self.context = context
    self.session = session
    self.request = request
    evaluation = ServerEvaluation(
      profile: request.profile, host: request.origin.host, port: request.origin.port)
  }

  deinit {
    SSL_free(session)
    SSL_CTX_free(context)
    ERR_clear_error()
  }

  /// Prepares a handshake.
  static func over(_ connection: any StreamConnection, for request: WireRequest) -> Result<
    StreamTLS, TransportFailure
  > {
    ERR_clear_error()
    guard let context = SSL_CTX_new(TLS_client_method()) else { return .failure(noMemory) }
    if let failure = prepare(context, request.profile.options) {
      SSL_CTX_free(context)
      return .failure(failure)
    }
    guard let session = SSL_new(context) else {
      SSL_CTX_free(context)
      return .failure(noMemory)
    }
    let tls = StreamTLS(context, session, connection, request)
    guard tls.connect() else { return .failure(noMemory) }
    return .success(tls)
  }

  private static var noMemory: TransportFailure {
    TransportFailure(.resourceUnavailable, "There is not enough memory for TLS.")
  }

  private static func prepare(_ context: OpaquePointer, _ options: TransportOptions) -> TransportFailure? {
    _ = openssl_allow_partial_writes(context)
    let newest = options.maximumTLSVersion ?? .tls13
    guard newest >= options.minimumTLSVersion,
      openssl_set_min_version(context, number(options.minimumTLSVersion)) == 1,
      openssl_set_max_version(context, number(newest)) == 1
    else {
      return TransportFailure(
        .secureConnectionFailed,
        "maximumTLSVersion is older than minimumTLSVersion.")
    }
    if let ciphers = options.tls12Ciphers, SSL_CTX_set_cipher_list(context, ciphers) != 1 {
      return TransportFailure(.secureConnectionFailed, "The list of ciphers cannot be used (tls12Ciphers).")
    }
    if let suites = options.tls13CipherSuites, SSL_CTX_set_ciphersuites(context, suites) != 1 {
      return TransportFailure(
        .secureConnectionFailed, "The list of cipher suites cannot be used (tls13CipherSuites).")
    }
    return options.clientIdentity.flatMap { $0.use(in: context) }
  }

  private static func number(_ version: TransportOptions.TLSVersion) -> Int32 {
    version == .tls13 ? TLS1_3_VERSION : TLS1_2_VERSION
  }

  private func connect() -> Bool {
    let reference = Unmanaged.passUnretained(self).toOpaque()
    guard SSL_set_ex_data(session, Self.place, reference) == 1, join() else { return false }
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
    SSL_set_verify(session, SSL_VERIFY_PEER, nil)
    SSL_CTX_set_cert_verify_callback(context, Self.verify, reference)
    if request.profile.options.tlsKeyLogFile != nil {
      SSL_CTX_set_keylog_callback(context, Self.keepSecret)
    }
    if wantsStatus { _ = openssl_request_status_of(session) }
    if isIdentityChosen { SSL_set_cert_cb(session, Self.chooseIdentity, reference) }
    let host = request.origin.host
    // An address is not sent as a server name (RFC 6066 §3).
    if HostLookup.addresses(of: host, literalsOnly: true).isEmpty {
      let name = host.hasSuffix(".") ? String(host.dropLast()) : host
      guard openssl_set_requested_server_name(session, name) == 1 else { return false }
    }
    SSL_set_connect_state(session)
    return true
  }

  /// Whether the evaluator needs the stapled response, which may arrive after the certificates. Then the server is
  /// evaluated after the handshake, before anything is sent.
  private var wantsStatus: Bool {
    request.profile.evaluator?.wantsStapledResponse(ofHost: request.origin.host) ?? false
  }

  /// Whether the identity of the client is chosen when the server asks for it.
  private var isIdentityChosen: Bool {
    guard request.profile.options.clientIdentity == nil else { return false }
    let origin = request.origin
    return request.profile.evaluator?.wantsToChooseIdentity(forHost: origin.host, port: origin.port) ?? false
  }

  /// Sets the answer to ``StreamStep/asksForIdentity``, with which the handshake continues.
  func choose(_ identity: ClientIdentity?) { choice = identity.map { .identity($0) } ?? .withoutIdentity }

  // MARK: Steps

  /// Continues the handshake. Returns `.moved` if the server is accepted and bytes may be sent.
  func handshake() -> StreamStep {
    failure = nil
    let step = attempt { _ in SSL_do_handshake(session) }
    guard case .moved = step else { return step }
    isOpen = true
    guard wantsStatus else { return step }
    var bytes: UnsafePointer<UInt8>?
    let count = openssl_stapled_response(session, &bytes)
    let stapled = count > 0 ? bytes.map { Data(bytes: $0, count: count) } : nil
    let certificates = ServerEvaluation.certificates(SSL_get_peer_cert_chain(session))
    guard let failure = evaluation.failure(of: certificates, stapled: stapled) else { return step }
    return failure.chain.map { .undecided($0) } ?? .failed(failure)
  }

  func read(into room: UnsafeMutableRawBufferPointer) -> StreamStep {
    attempt { SSL_read_ex(session, room.baseAddress, room.count, &$0) }
  }

  func write(_ bytes: UnsafeRawBufferPointer) -> StreamStep {
    attempt { SSL_write_ex(session, bytes.baseAddress, bytes.count, &$0) }
  }

  /// Sends `close_notify` (RFC 8446 §6.1). Reading continues.
  func shut() -> StreamStep {
    // A second call would wait for the peer's `close_notify`.
    guard !isBroken, !hasShut else { return .moved(0) }
    let step = attempt { _ in SSL_shutdown(session) >= 0 ? 1 : -1 }
    if case .moved = step { hasShut = true }
    return step
  }

  private func attempt(_ step: (inout Int) -> Int32) -> StreamStep {
    ERR_clear_error()
    var count = 0
    errno = 0
    let status = step(&count)
    let code = errno
    guard status != 1 else { return .moved(count) }
    switch SSL_get_error(session, status) {
    case SSL_ERROR_WANT_READ: return .waitsToRead
    case SSL_ERROR_WANT_WRITE: return .waitsToWrite
    case SSL_ERROR_ZERO_RETURN: return .ended
    case SSL_ERROR_WANT_RETRY_VERIFY:
      if let chain = failure?.chain { return .undecided(chain) }
    case SSL_ERROR_WANT_X509_LOOKUP: return .asksForIdentity
    case SSL_ERROR_SYSCALL where code != 0 && failure == nil:
      isBroken = true
      return .failed(StreamSocket.lost(request.origin.host, code))
    default: break
    }
    isBroken = true
    return .failed(failure ?? broken())
  }

  private func broken() -> TransportFailure {
    let host = request.origin.host
    let said = OpenSSLBytes.errors()
    if said.contains("alert certificate required") || said.contains("certificate required") {
      return TransportFailure(.clientCertificateRequired, "\(host) asks for a client certificate.")
    }
    guard isOpen else {
      return TransportFailure(
        .secureConnectionFailed,
        (CurlFailure.notTLSMessage(said, host: host)
          ?? "The TLS handshake with \(host) failed. Check that it speaks TLS 1.2 or later.") + " (\(said))")
    }
    return TransportFailure(
      .connectionLost,
      "The secure connection to \(host) broke, or was closed without the alert of TLS (close_notify). (\(said))"
    )
  }

  // MARK: Callbacks of OpenSSL

  private static let place = CRYPTO_get_ex_new_index(CRYPTO_EX_INDEX_SSL, 0, nil, nil, nil, nil)

  private static let verify: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = {
    context, reference in
    guard let context, let reference else { return 0 }
    return Unmanaged<StreamTLS>.fromOpaque(reference)._withUnsafeGuaranteedRef { $0.verdict(context) }
  }

  private func verdict(_ context: OpaquePointer) -> Int32 {
    X509_STORE_CTX_set_error(context, X509_V_OK)
    if wantsStatus { return 1 }
    let certificates = ServerEvaluation.certificates(X509_STORE_CTX_get0_untrusted(context))
    guard let failure = evaluation.failure(of: certificates, stapled: nil) else { return 1 }
    self.failure = failure
    // OpenSSL checks this only if the callback returns success.
    if failure.chain != nil { return openssl_retry_verification(session) == 1 ? 1 : 0 }
    X509_STORE_CTX_set_error(context, X509_V_ERR_APPLICATION_VERIFICATION)
    return 0
  }

  /// The server asks for a client certificate. −1 suspends the handshake, 1 continues it.
  private static let chooseIdentity: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = {
    session, reference in
    guard let session, let reference else { return 0 }
    return Unmanaged<StreamTLS>.fromOpaque(reference)._withUnsafeGuaranteedRef { tls in
      switch tls.choice {
      case nil: return -1
      case .withoutIdentity: return 1
      case .identity(let identity):
        tls.failure = identity.use(inSession: session)
        return tls.failure == nil ? 1 : 0
      }
    }
  }

  private static let keepSecret: @convention(c) (OpaquePointer?, UnsafePointer<CChar>?) -> Void = {
    session, line in
    guard let session, let line, let reference = SSL_get_ex_data(session, place) else { return }
    let file = Unmanaged<StreamTLS>.fromOpaque(reference)._withUnsafeGuaranteedRef {
      $0.request.profile.options.tlsKeyLogFile
    }
    if let file { TLSKeyLog.append(line, to: file) }
  }
}

// The reads and writes of OpenSSL on a connection that is not a socket.
extension StreamTLS {
  /// Attaches the session to the connection. Returns false if there is no memory.
  func join() -> Bool {
    guard !(connection is StreamSocket) else { return SSL_set_fd(session, connection.descriptor) == 1 }
    guard let kind = Self.kind, let pipe = BIO_new(kind) else { return false }
    BIO_set_data(pipe, Unmanaged.passUnretained(self).toOpaque())
    BIO_set_init(pipe, 1)
    // The session owns it.
    SSL_set_bio(session, pipe, pipe)
    return true
  }

  /// The functions that OpenSSL calls. `nonisolated(unsafe)` because it is a pointer. The table behind it never
  /// changes.
  private nonisolated(unsafe) static let kind: OpaquePointer? = {
    let kind = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "connection of a stream")
    guard let kind, BIO_meth_set_read(kind, read) == 1, BIO_meth_set_write(kind, write) == 1,
      BIO_meth_set_ctrl(kind, control) == 1
    else { return nil }
    return kind
  }()

  private static let read: @convention(c) (OpaquePointer?, UnsafeMutablePointer<CChar>?, Int32) -> Int32 = {
    pipe, room, count in
    step(of: pipe) {
      $0.connection.read(into: UnsafeMutableRawBufferPointer(start: room, count: Int(max(0, count))))
    }
  }

  private static let write: @convention(c) (OpaquePointer?, UnsafePointer<CChar>?, Int32) -> Int32 = {
    pipe, bytes, count in
    step(of: pipe) { $0.connection.write(UnsafeRawBufferPointer(start: bytes, count: Int(max(0, count)))) }
  }

  /// Accepts a flush, which has nothing to do, and no other command.
  private static let control: @convention(c) (OpaquePointer?, Int32, Int, UnsafeMutableRawPointer?) -> Int = {
    _, command, _, _ in
    command == BIO_CTRL_FLUSH ? 1 : 0
  }

  private static func step(of pipe: OpaquePointer?, _ move: (StreamTLS) -> StreamStep) -> Int32 {
    guard let pipe, let reference = BIO_get_data(pipe) else { return -1 }
    openssl_waits_for_nothing(pipe)
    return Unmanaged<StreamTLS>.fromOpaque(reference)._withUnsafeGuaranteedRef { tls in
      switch move(tls) {
      case .moved(let count): return Int32(count)
      case .waitsToRead: openssl_waits_to_read(pipe)
      case .waitsToWrite: openssl_waits_to_write(pipe)
      case .failed(let failure): tls.failure = failure
      case .ended: return 0
      case .undecided, .asksForIdentity: break
      }
      return -1
    }
  }
}
