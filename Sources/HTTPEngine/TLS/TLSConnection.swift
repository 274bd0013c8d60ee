import COpenSSL
import FoundationEssentials
import Glibc
import HTTPSystem
import HTTPWire

/// TLS over one connection, perhaps after cleartext. Belongs to the loop's thread.
///
/// The peer is evaluated within the handshake, before a byte of a request or a client certificate is sent. The
/// handshake stands still while code outside of it decides about the peer, or chooses the client's identity.
final class TLSConnection {
  let session: OpaquePointer
  let peer: TLSPeer
  /// The connection below, which lasts as long as the session.
  let connection: any Pipe
  /// The reason why OpenSSL has to refuse the peer or to wait, or why no bytes move.
  @exclusivity(unchecked) var failure: TransportFailure?
  /// The end of the connection below.
  @exclusivity(unchecked) var pipeEnd = PipeEnd.none
  @exclusivity(unchecked) private var state = State.handshake
  @exclusivity(unchecked) var renegotiation = TLSRenegotiation()
  /// Whether `close_notify` was sent.
  @exclusivity(unchecked) private var hasShut = false
  /// Whether OpenSSL may hold buffers that it does not need, because a ticket has arrived.
  @exclusivity(unchecked) private(set) var hasSpareBuffers = false
  private let requestsStapledResponse: Bool
  private let choosesIdentity: Bool
  /// Whether the peer was accepted when it asked for a certificate of the client.
  @exclusivity(unchecked) private var isAccepted = false
  /// Whether the verdict about a peer of TLS 1.2, which depends on a stapled response, is still due after the
  /// handshake.
  @exclusivity(unchecked) private var lacksVerdict = false
  @exclusivity(unchecked) private var choice: Choice?
  /// Whether the server has asked for a certificate of the client.
  @exclusivity(unchecked) private var isAskedForIdentity = false
  /// OpenSSL's messages about a violation, which the connection below would have cleared while it wrote the alert.
  @exclusivity(unchecked) private var violation: String?
  /// The key under which sessions are stored and found; `nil` if none is resumed.
  @exclusivity(unchecked) private var resumption: (sessions: TLSSessions, key: AnyHashable)?

  private enum State {
    case handshake
    case open
    /// The system accepts no more bytes. The peer may have answered before it closed the connection, and OpenSSL keeps
    /// separate states for reading and writing. The shutdown may not be called any more. The write has failed for this
    /// reason.
    case onlyReads(TransportFailure)
    /// After any other error no function may be called, not even the shutdown.
    case broken
  }

  /// The end of a connection, as its last read or write has shown it.
  enum PipeEnd {
    case none
    case ended
    case failed(TransportFailure)
  }

  private enum Choice {
    case withoutIdentity
    case identity(ClientIdentity)
  }

  private init(_ session: OpaquePointer, _ peer: TLSPeer, over connection: any Pipe) {
    self.session = session
    self.peer = peer
    self.connection = connection
    requestsStapledResponse = peer.requestsStapledResponse
    choosesIdentity = peer.choosesIdentity
  }

  deinit {
    SSL_free(session)
    ERR_clear_error()
  }

  /// Prepares a handshake.
  ///
  /// - Parameter resumption: The sessions of which one may be resumed, and the key of this connection.
  static func over(
    _ connection: any Pipe, with peer: TLSPeer, _ contexts: TLSContexts,
    resumption: (sessions: TLSSessions, key: AnyHashable)? = nil
  ) -> Result<TLSConnection, TransportFailure> {
    ERR_clear_error()
    return contexts.context(for: peer.settings).flatMap { context in
      guard let session = SSL_new(context) else { return .failure(TLSContexts.noMemory) }
      let tls = TLSConnection(session, peer, over: connection)
      // A resumed session brings no stapled response, and the server would not ask for the client's identity again.
      if !tls.requestsStapledResponse, !tls.choosesIdentity { tls.resumption = resumption }
      return tls.prepare() ? .success(tls) : .failure(TLSContexts.noMemory)
    }
  }

  private func prepare() -> Bool {
    let reference = Unmanaged.passUnretained(self).toOpaque()
    guard SSL_set_ex_data(session, Self.index, reference) == 1, PipeBIO.attach(session, to: self) else {
      return false
    }
    if requestsStapledResponse { _ = openssl_request_status_of(session) }
    if requestsStapledResponse || choosesIdentity {
      SSL_set_cert_cb(session, Self.identityRequested, reference)
    }
    guard peer.protocols.isEmpty || offerProtocols() else { return false }
    if let name = peer.serverName, openssl_set_requested_server_name(session, name) != 1 { return false }
    SSL_set_connect_state(session)
    SSL_set_msg_callback(session, Self.countMessage)
    offerSession()
    return true
  }

  /// Offers a session if its server is still accepted. Otherwise the handshake is a full one, and its certificates
  /// decide.
  private func offerSession() {
    guard let resumption else { return }
    resumption.sessions.withSession(for: resumption.key) { known in
      guard SSL_set_session(session, known) == 1 else { return }
      let chain = ServerEvaluation.certificates(SSL_get_peer_cert_chain(session))
      if peer.failure(of: chain, stapled: nil) != nil { SSL_set_session(session, nil) }
    }
  }

  private func offerProtocols() -> Bool {
    let list = peer.protocols.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
    return SSL_set_alpn_protos(session, list, UInt32(list.count)) == 0
  }

  /// The protocol that the server has chosen (RFC 7301); `nil` if it chose none.
  var selectedProtocol: String? {
    var name: UnsafePointer<UInt8>?
    var length: UInt32 = 0
    SSL_get0_alpn_selected(session, &name, &length)
    guard let name, length > 0 else { return nil }
    return String(decoding: UnsafeBufferPointer(start: name, count: Int(length)), as: UTF8.self)
  }

  /// The version of TLS as OpenSSL names it.
  var version: String? { SSL_get_version(session).map { String(cString: $0) } }

  /// The number of the cipher suite.
  var cipher: UInt16? { SSL_get_current_cipher(session).map { SSL_CIPHER_get_protocol_id($0) } }

  /// Whether the first handshake is over.
  var isOpen: Bool { if case .handshake = state { false } else { true } }

  /// Sets the answer to ``PipeStep/asksForIdentity``, with which the handshake continues.
  func choose(_ identity: ClientIdentity?) { choice = identity.map { .identity($0) } ?? .withoutIdentity }

  // MARK: Steps

  /// Continues the handshake. Returns `.moved` if the peer is accepted and bytes may be sent.
  func handshake() -> PipeStep {
    failure = nil
    if case .handshake = state {
      let step = attempt { _ in SSL_do_handshake(session) }
      guard case .moved = step else { return step }
      // OpenSSL evaluates no peer without a certificate.
      guard SSL_get_peer_cert_chain(session) != nil else { return refusePeerWithoutCertificate() }
      state = .open
      SSL_set_msg_callback(session, nil)
      renegotiation.messages = 0
    }
    guard lacksVerdict else { return .moved(0) }
    // Code outside of the handshake decides; no bytes are sent before it has.
    guard let failure = failureWithStapledResponse() else {
      lacksVerdict = false
      return .moved(0)
    }
    self.failure = failure
    return failure.chain.map { .undecided($0) } ?? .failed(failure)
  }

  private func refusePeerWithoutCertificate() -> PipeStep {
    let failure = TransportFailure(
      .certificateUntrusted, "\(peer.description) has no certificate, so it could be anyone.")
    self.failure = failure
    state = .broken
    return .failed(failure)
  }

  /// Whether a read would have to wait, because neither the connection below nor OpenSSL has bytes. A handshake within
  /// the connection may have something to write, or may not have begun yet.
  var isDrained: Bool {
    guard case .open = state, connection.isDrained else { return false }
    return !hasSpareBuffers && SSL_has_pending(session) == 0 && SSL_in_init(session) == 0
      && SSL_renegotiate_pending(session) == 0
  }

  func read(into room: UnsafeMutableRawBufferPointer) -> PipeStep {
    // OpenSSL would find that out by a longer way.
    guard !isDrained else { return .waitsToRead }
    let step = attempt { SSL_read_ex(session, room.baseAddress, room.count, &$0) }
    if case .moved = step { renegotiation.messages = 0 }
    if hasSpareBuffers { releaseBuffers() }
    return step
  }

  /// Frees the buffers of 16 KiB that OpenSSL creates for each ticket, and would keep until the next write. As long as
  /// they are in use, nothing happens.
  private func releaseBuffers() {
    guard case .open = state else { return }
    hasSpareBuffers = SSL_free_buffers(session) != 1
  }

  /// Whether `SSL_free_buffers` spares a buffer with a part of a record. In earlier versions a server could have made
  /// it free that one, too (CVE-2024-4741).
  private static let freesBuffersSafely: Bool = {
    let patch = OPENSSL_version_patch()
    switch (OPENSSL_version_major(), OPENSSL_version_minor()) {
    case (3, 0): return patch >= 14
    case (3, 1): return patch >= 6
    case (3, 2): return patch >= 2
    case (3, 3): return patch >= 1
    case (let major, _): return major >= 3
    }
  }()

  func write(_ bytes: UnsafeRawBufferPointer) -> PipeStep {
    if case .onlyReads(let failure) = state { return .failed(failure) }
    return attempt(isWriting: true) { SSL_write_ex(session, bytes.baseAddress, bytes.count, &$0) }
  }

  /// Sends `close_notify` (RFC 8446 §6.1). Reading continues.
  func shut() -> PipeStep {
    // A second call would wait for the peer's `close_notify`.
    guard !hasShut, case .open = state else { return .moved(0) }
    let step = attempt(isWriting: true) { _ in SSL_shutdown(session) >= 0 ? 1 : -1 }
    switch (step, state) {
    case (.moved, _): hasShut = true
    case (.failed, .onlyReads):
      // The peer has left, so it does not read the alert. What it has sent can still be read.
      hasShut = true
      return .moved(0)
    default: break
    }
    return step
  }

  private func attempt(isWriting: Bool = false, _ step: (inout Int) -> Int32) -> PipeStep {
    if case .broken = state { return .failed(failure ?? .lost(peer.description, ECONNRESET)) }
    ERR_clear_error()
    var count = 0
    pipeEnd = .none
    violation = nil
    let status = step(&count)
    guard status != 1 else { return .moved(count) }
    // Whether the alert was written does not matter.
    let error = violation == nil ? SSL_get_error(session, status) : SSL_ERROR_SSL
    switch error {
    case SSL_ERROR_WANT_READ: return .waitsToRead
    case SSL_ERROR_WANT_WRITE: return .waitsToWrite
    // OpenSSL 3.0 reports a failed write like that, too, if the peer has sent `close_notify`.
    case SSL_ERROR_ZERO_RETURN where isWriting:
      let lost = lost ?? .lost(peer.description, EPIPE)
      state = .onlyReads(lost)
      return .failed(lost)
    case SSL_ERROR_ZERO_RETURN: return .ended
    case SSL_ERROR_WANT_RETRY_VERIFY:
      if let chain = failure?.chain { return .undecided(chain) }
    case SSL_ERROR_WANT_X509_LOOKUP: return failure?.chain.map { .undecided($0) } ?? .asksForIdentity
    case SSL_ERROR_SYSCALL:
      guard isWriting, case .open = state, let lost else { break }
      state = .onlyReads(lost)
      return .failed(lost)
    default: break
    }
    // After a violation, only the alert may have failed to be written.
    let failure = (error == SSL_ERROR_SYSCALL || isCutOff ? lost : failure) ?? broken()
    self.failure = failure
    state = .broken
    return .failed(failure)
  }

  /// Keeps OpenSSL's messages before a write, because a secure connection below clears them.
  func keepViolation() {
    guard connection.keepsWrites, ERR_peek_error() != 0 else { return }
    violation = violation ?? OpenSSLBytes.errors()
  }

  /// The first failure, perhaps of the connection below.
  private var lost: TransportFailure? {
    if let failure { return failure }
    if case .onlyReads(let first) = state { return first }
    if case .failed(let below) = pipeEnd { return below }
    return nil
  }

  /// Whether the connection below has ended. OpenSSL's message about that says less than the failure of a write.
  private var isCutOff: Bool { if case .ended = pipeEnd { true } else { false } }

  /// OpenSSL's messages about bytes that are not TLS.
  private static let notTLS = [
    "wrong version number", "packet length too long", "unknown protocol", "http request",
  ]

  private func broken() -> TransportFailure {
    let host = peer.description
    let said = violation ?? OpenSSLBytes.errors()
    if !renegotiation.isGoingOn, let refusal = refusalOfIdentity(said) { return refusal }
    guard isOpen else {
      return TransportFailure(
        .secureConnectionFailed,
        (Self.notTLS.contains(where: said.contains)
          ? "\(host) does not speak TLS on this port: its answer to the handshake is something else. If this is a port for plain HTTP, use http://."
          : "The TLS handshake with \(host) failed. Check that it speaks \(peer.settings.requirement).")
          + " (\(said))")
    }
    if renegotiation.isGoingOn { return renegotiationFailure(said) }
    return TransportFailure(
      .connectionLost,
      "The secure connection to \(host) broke, or was closed without the alert of TLS (close_notify). (\(said))"
    )
  }

  /// The alerts that a server sends if the certificate of the client is missing or refused (RFC 5246 §7.2.2, RFC 8446
  /// §6.2). With TLS 1.2, a missing one is only a failed handshake.
  private static let identityAlerts = [
    "certificate required", "handshake failure", "bad certificate", "unsupported certificate",
    "certificate revoked", "certificate expired", "certificate unknown", "unknown ca", "access denied",
    "decrypt error",
  ]

  /// Returns the failure if the server has asked for a certificate, and has ended the connection for its sake.
  private func refusalOfIdentity(_ said: String) -> TransportFailure? {
    let alert = Self.identityAlerts.contains { said.contains("alert \($0)") }
    guard isAskedForIdentity, alert else { return nil }
    let host = peer.description
    guard SSL_get_certificate(session) != nil else {
      return TransportFailure(.clientCertificateRequired, "\(host) asks for a client certificate.")
    }
    return TransportFailure(
      .clientCertificateRejected, "\(host) did not accept the client certificate. (\(said))")
  }

  // MARK: Callbacks of OpenSSL

  private static let index = CRYPTO_get_ex_new_index(CRYPTO_EX_INDEX_SSL, 0, nil, nil, nil, nil)

  /// Sets the callbacks of a context, which find their connection by its session.
  static func setCallbacks(of context: OpaquePointer) {
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
    SSL_CTX_set_cert_verify_callback(context, verify, nil)
    _ = openssl_set_status_callback(context, verifyAtStatus, nil)
    SSL_CTX_set_keylog_callback(context, keepSecret)
    SSL_CTX_sess_set_new_cb(context, keepSession)
    SSL_CTX_set_info_callback(context, noteEvent)
  }

  private static func with<Answer>(_ session: OpaquePointer?, _ body: (TLSConnection) -> Answer) -> Answer? {
    guard let session, let reference = SSL_get_ex_data(session, index) else { return nil }
    return Unmanaged<TLSConnection>.fromOpaque(reference)._withUnsafeGuaranteedRef(body)
  }

  private static let verify: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = {
    context, _ in
    guard let context else { return 0 }
    return with(openssl_session_of(context)) { $0.verdict(context) } ?? 0
  }

  private func verdict(_ context: OpaquePointer) -> Int32 {
    X509_STORE_CTX_set_error(context, X509_V_OK)
    if awaitsStapledResponse { return 1 }
    let certificates = ServerEvaluation.certificates(X509_STORE_CTX_get0_untrusted(context))
    let refused =
      isOpen ? changedCertificate(certificates) : peer.failure(of: certificates, stapled: stapledResponse)
    guard let failure = refused else { return 1 }
    self.failure = failure
    // OpenSSL checks this only if the callback returns success.
    if failure.chain != nil { return openssl_retry_verification(session) == 1 ? 1 : 0 }
    X509_STORE_CTX_set_error(context, X509_V_ERR_APPLICATION_VERIFICATION)
    return 0
  }

  /// Whether the peer is evaluated later than its certificates arrive: before TLS 1.3 the stapled response follows
  /// them.
  private var awaitsStapledResponse: Bool {
    requestsStapledResponse && SSL_version(session) < TLS1_3_VERSION && !isOpen && !isAccepted
  }

  private func failureWithStapledResponse() -> TransportFailure? {
    peer.failure(
      of: ServerEvaluation.certificates(SSL_get_peer_cert_chain(session)), stapled: stapledResponse)
  }

  /// Decides about a peer of TLS 1.2 that has asked for no certificate of the client. OpenSSL cannot wait here, so a
  /// decision by other code comes after the handshake.
  private static let verifyAtStatus: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = {
    session, _ in
    with(session) { tls in
      guard tls.awaitsStapledResponse, let failure = tls.failureWithStapledResponse() else { return 1 }
      if failure.chain != nil {
        tls.lacksVerdict = true
        return 1
      }
      tls.failure = failure
      return 0
    } ?? 0
  }

  private var stapledResponse: Data? {
    guard requestsStapledResponse else { return nil }
    var bytes: UnsafePointer<UInt8>?
    let count = openssl_stapled_response(session, &bytes)
    return count > 0 ? bytes.map { Data(bytes: $0, count: count) } : nil
  }

  /// The server asks for a client certificate. −1 suspends the handshake, 1 continues it, and 0 ends it.
  private static let identityRequested: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = {
    session, _ in
    with(session) { tls in
      if tls.awaitsStapledResponse {
        // TLS 1.2 sends the certificate in the clear, before the status callback could refuse the server.
        tls.failure = tls.failureWithStapledResponse()
        if let failure = tls.failure { return failure.chain == nil ? 0 : -1 }
        tls.isAccepted = true
      }
      // Since the connection was made, the client may have decided to remain anonymous.
      guard tls.choosesIdentity, tls.choice != nil || tls.peer.choosesIdentity else { return 1 }
      return tls.chosenIdentity()
    } ?? 0
  }

  /// Uses the identity that was chosen. Without a choice the handshake waits.
  private func chosenIdentity() -> Int32 {
    switch choice {
    case nil: return -1
    case .withoutIdentity: return 1
    case .identity(let identity):
      failure = identity.use(inSession: session)
      return failure == nil ? 1 : 0
    }
  }

  /// Returns 1 if the session is stored, so that OpenSSL gives up its reference.
  private static let keepSession: @convention(c) (OpaquePointer?, OpaquePointer?) -> Int32 = {
    session, new in
    guard let new else { return 0 }
    return with(session) { tls in
      tls.hasSpareBuffers = freesBuffersSafely
      guard let resumption = tls.resumption else { return 0 }
      resumption.sessions.keep(new, for: resumption.key)
      return 1
    } ?? 0
  }

  /// Counts the messages of the peer during a handshake, and notes its request for a certificate.
  static let countMessage:
    @convention(c) (
      Int32, Int32, Int32, UnsafeRawPointer?, Int, OpaquePointer?, UnsafeMutableRawPointer?
    ) -> Void = { isWritten, _, kind, bytes, count, session, _ in
      guard isWritten == 0, kind == SSL3_RT_HANDSHAKE else { return }
      let type = count > 0 ? bytes?.load(as: UInt8.self) : nil
      with(session) { tls in
        if type == UInt8(SSL3_MT_CERTIFICATE_REQUEST) { tls.isAskedForIdentity = true }
        tls.messageReceived()
      }
    }

  private static let noteEvent: @convention(c) (OpaquePointer?, Int32, Int32) -> Void = {
    session, index, value in
    with(session) { if $0.isOpen { $0.noteEvent(at: index, value) } }
  }

  private static let keepSecret: @convention(c) (OpaquePointer?, UnsafePointer<CChar>?) -> Void = {
    session, line in
    guard let line else { return }
    with(session) { tls in
      TLSKeyLog.append(line, to: tls.peer.profile.options.tlsKeyLogFile)
    }
  }
}
