import COpenSSL
import Glibc

/// OpenSSL's context of a server: its identity and its requirements for clients.
final class TLSContext: Sendable {
  /// Only read after it has been set up, which OpenSSL allows from many threads.
  nonisolated(unsafe) private let pointer: OpaquePointer
  /// OpenSSL's callback reads it without retaining it.
  private let stapled: StapledResponse?
  /// Read by OpenSSL's callback as well.
  private let protocols: ProtocolNames

  init(_ identity: TestIdentity, _ options: TLSOptions) throws(ServerError) {
    ERR_clear_error()
    guard let pointer = SSL_CTX_new(TLS_server_method()) else { throw .openSSL("making a TLS context") }
    self.pointer = pointer
    stapled = options.stapledResponse.map { StapledResponse($0) }
    protocols = ProtocolNames(options.applicationProtocols)
    try use(identity, sendsIntermediates: options.sendsIntermediates)
    try add(options.appendedCertificates)
    try use(options)
    try staple()
    // Test keys may be weaker than OpenSSL's default level takes.
    SSL_CTX_set_security_level(pointer, 0)
    _ = openssl_allow_partial_writes(pointer)
    SSL_CTX_set_alpn_select_cb(pointer, selectProtocol, Unmanaged.passUnretained(protocols).toOpaque())
  }

  deinit {
    SSL_CTX_free(pointer)
  }

  /// Makes a session over a connected socket, or `nil` if memory is short.
  func makeSession(descriptor: Int32) -> TLSSession? {
    guard let session = SSL_new(pointer) else { return nil }
    guard SSL_set_fd(session, descriptor) == 1 else {
      SSL_free(session)
      return nil
    }
    return TLSSession(owning: session)
  }

  private func use(_ identity: TestIdentity, sendsIntermediates: Bool) throws(ServerError) {
    SSL_CTX_set_security_level(pointer, 0)
    guard let certificate = try PEM.certificates(identity.certificatePEM).first else {
      throw .tls("the identity has no certificate")
    }
    let key = try PEM.key(identity.privateKeyPEM)
    guard SSL_CTX_use_certificate(pointer, certificate.pointer) == 1,
      SSL_CTX_use_PrivateKey(pointer, key.pointer) == 1
    else { throw .openSSL("using an identity") }
    try add(sendsIntermediates ? identity.intermediates : [])
  }

  private func add(_ texts: [String]) throws(ServerError) {
    for text in texts {
      for intermediate in try PEM.certificates(text) {
        guard X509_up_ref(intermediate.pointer) == 1 else { throw .openSSL("using a chain") }
        guard openssl_add_chain_certificate(pointer, intermediate.pointer) == 1 else {
          X509_free(intermediate.pointer)
          throw .openSSL("using a chain")
        }
      }
    }
  }

  private func staple() throws(ServerError) {
    guard let stapled else { return }
    let isSet = openssl_set_status_callback(
      pointer,
      { session, reference in
        guard let session, let reference else { return SSL_TLSEXT_ERR_NOACK }
        let response = Unmanaged<StapledResponse>.fromOpaque(reference).takeUnretainedValue()
        let isSet = openssl_staple(session, response.bytes, response.bytes.count)
        return isSet == 1 ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK
      }, Unmanaged.passUnretained(stapled).toOpaque())
    guard isSet == 1 else { throw .openSSL("stapling a response") }
  }

  private func use(_ options: TLSOptions) throws(ServerError) {
    guard openssl_set_min_version(pointer, options.minimumVersion.number) == 1,
      openssl_set_max_version(pointer, options.maximumVersion.number) == 1
    else { throw .openSSL("limiting the versions") }
    if options.isAnonymous, SSL_CTX_set_cipher_list(pointer, "aNULL:@SECLEVEL=0") != 1 {
      throw .openSSL("choosing anonymous cipher suites")
    }
    if options.recordPadding > 0 { SSL_CTX_set_block_padding(pointer, options.recordPadding) }
    guard let authority = options.clientAuthority else { return }
    let context: [UInt8] = Array("HTTPTestServer".utf8)
    SSL_CTX_set_session_id_context(pointer, context, UInt32(context.count))
    let store = SSL_CTX_get_cert_store(pointer)
    for certificate in try PEM.certificates(authority) {
      guard X509_STORE_add_cert(store, certificate.pointer) == 1,
        SSL_CTX_add_client_CA(pointer, certificate.pointer) == 1
      else { throw .openSSL("trusting an authority of clients") }
    }
    let required = options.requiresClientCertificate ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0
    SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER | required, nil)
  }
}

/// The bytes of an OCSP response.
private final class StapledResponse: Sendable {
  let bytes: [UInt8]

  init(_ bytes: [UInt8]) { self.bytes = bytes }
}

extension TLSOptions.Version {
  var number: Int32 {
    switch self {
    case .tls1_2: TLS1_2_VERSION
    case .tls1_3: TLS1_3_VERSION
    }
  }
}

/// The names of application protocols, best first.
private final class ProtocolNames: Sendable {
  let names: [[UInt8]]

  init(_ names: [String]) { self.names = names.map { Array($0.utf8) } }
}

/// Takes the first of the server's protocols that the client offers; without one, ALPN is not answered.
private let selectProtocol: SSL_CTX_alpn_select_cb_func = {
  _, chosen, chosenLength, offered, length, reference in
  guard let chosen, let chosenLength, let offered, let reference else { return SSL_TLSEXT_ERR_NOACK }
  let accepted = Unmanaged<ProtocolNames>.fromOpaque(reference).takeUnretainedValue().names
  let offers = UnsafeBufferPointer(start: offered, count: Int(length))
  for candidate in accepted {
    var position = 0
    while position < offers.count {
      let name = offers[(position + 1)...].prefix(Int(offers[position]))
      if name.elementsEqual(candidate) {
        chosen.pointee = offered + position + 1
        chosenLength.pointee = UInt8(candidate.count)
        return SSL_TLSEXT_ERR_OK
      }
      position += 1 + Int(offers[position])
    }
  }
  return SSL_TLSEXT_ERR_NOACK
}

/// The behaviour of the server in TLS handshakes.
///
/// ```swift
/// let options = TLSOptions(maximumVersion: .tls1_2, clientAuthority: authority.certificatePEM)
/// let server = try HTTPTestServer(.tls(.localhost, options))
/// ```
public struct TLSOptions: Sendable, Equatable {
  /// A version of TLS.
  public enum Version: Sendable, Equatable, CaseIterable {
    /// RFC 5246.
    case tls1_2
    /// RFC 8446.
    case tls1_3
  }

  /// The lowest version that is agreed to; TLS 1.2 by default.
  public var minimumVersion: Version
  /// The highest version that is agreed to; TLS 1.3 by default.
  public var maximumVersion: Version
  /// Asks the client for a certificate issued by one of these authorities (PEM); `nil` asks for none.
  public var clientAuthority: String?
  /// Whether the handshake fails if the client presents no certificate; `true` by default, without effect if none is
  /// requested.
  public var requiresClientCertificate: Bool
  /// Whether the issuers of the certificate are sent too, up to the one below the root; `true` by
  /// default.
  public var sendsIntermediates: Bool
  /// Certificates (PEM) that are sent after the identity's, whatever they are; none by default.
  public var appendedCertificates: [String] = []
  /// The OCSP response (DER) that is sent to clients that ask for one (RFC 6066 §8); `nil` by default.
  public var stapledResponse: [UInt8]?
  /// The supported application protocols (RFC 7301 §3.2), preferred ones first; only `http/1.1` by default. If the
  /// client offers none of them, the handshake continues without one.
  public var applicationProtocols = ["http/1.1"]
  /// The records of TLS 1.3 are padded to multiples of this size (RFC 8446 §5.4). 0, the default, means no padding.
  public var recordPadding = 0
  /// Whether only cipher suites of TLS 1.2 without a certificate are agreed to, which no client may accept.
  package var isAnonymous = false

  /// Makes options; all have the defaults that their documentation names.
  public init(
    minimumVersion: Version = .tls1_2, maximumVersion: Version = .tls1_3,
    clientAuthority: String? = nil, requiresClientCertificate: Bool = true,
    sendsIntermediates: Bool = true
  ) {
    self.minimumVersion = minimumVersion
    self.maximumVersion = maximumVersion
    self.clientAuthority = clientAuthority
    self.requiresClientCertificate = requiresClientCertificate
    self.sendsIntermediates = sendsIntermediates
  }
}

/// TLS over one socket; used by the thread of the connection only.
final class TLSSession {
  private let pointer: OpaquePointer
  /// After an error of the record layer nothing may be called any more, not even the shutdown.
  private var isBroken = false
  /// Masks for bytes of the next record, by their offsets.
  private var changes: [Int: UInt8] = [:]

  init(owning pointer: OpaquePointer) {
    self.pointer = pointer
  }

  deinit {
    SSL_free(pointer)
  }

  func accept(over channel: Channel) throws(Channel.Failure) {
    guard try attempt(over: channel, { SSL_accept(pointer) }) == 1 else { throw .clientGone }
  }

  /// Reads bytes and returns their number; 0 at the closing alert.
  func read(
    into buffer: UnsafeMutableRawBufferPointer, over channel: Channel
  ) throws(Channel.Failure) -> Int {
    var count = 0
    let status = try attempt(over: channel) { SSL_read_ex(pointer, buffer.baseAddress, buffer.count, &count) }
    return status == 1 ? count : 0
  }

  func write(
    _ buffer: UnsafeRawBufferPointer, over channel: Channel, finishing connection: AcceptedConnection?
  ) throws(Channel.Failure) {
    var rest = buffer[...]
    while !rest.isEmpty {
      let part = UnsafeRawBufferPointer(rebasing: rest)
      var count = 0
      let status = try attempt(over: channel) {
        var status: Int32 = 0
        Channel.attempt(finishing: connection) {
          status = SSL_write_ex(pointer, part.baseAddress, part.count, &count)
          return status == 1 && count == part.count
        }
        return status
      }
      guard status == 1 else { throw .clientGone }
      rest = rest.dropFirst(count)
      try channel.note(count)
    }
  }

  /// Sends KeyUpdate of TLS 1.3 before the next bytes, and asks the client for its own (RFC 8446 §4.6.3).
  func updateKeys() throws(Channel.Failure) {
    guard SSL_key_update(pointer, SSL_KEY_UPDATE_REQUESTED) == 1 else { throw .clientGone }
  }

  /// Changes bytes of the next record on their way, by exclusive or.
  func changeNextRecord(_ changes: [Int: UInt8]) {
    guard let stream = SSL_get_wbio(pointer) else { return }
    self.changes = changes
    let context = Unmanaged.passUnretained(self).toOpaque()
    BIO_set_callback_arg(stream, context.assumingMemoryBound(to: CChar.self))
    BIO_set_callback_ex(stream) { stream, step, bytes, count, _, _, result, _ in
      guard step == BIO_CB_WRITE, let bytes, let context = BIO_get_callback_arg(stream) else {
        return Int(result)
      }
      let session = Unmanaged<TLSSession>.fromOpaque(context).takeUnretainedValue()
      // The bytes are in OpenSSL's own buffer for writing.
      let record = UnsafeMutablePointer(mutating: bytes)
      for (offset, mask) in session.changes where offset < count {
        record[offset] = CChar(bitPattern: UInt8(bitPattern: record[offset]) ^ mask)
      }
      session.changes = [:]
      return Int(result)
    }
  }

  /// Sends the closing alert; does not wait for the client's.
  func sendClosingAlert() {
    guard !isBroken, SSL_is_init_finished(pointer) == 1 else { return }
    ERR_clear_error()
    _ = SSL_shutdown(pointer)
  }

  /// The negotiated parameters; valid after the handshake.
  var details: RecordedRequest.TLSDetails {
    let cipher = SSL_get_current_cipher(pointer)
    return RecordedRequest.TLSDetails(
      version: SSL_get_version(pointer).map { String(cString: $0) } ?? "",
      cipher: SSL_CIPHER_get_name(cipher).map { String(cString: $0) } ?? "",
      serverName: SSL_get_servername(pointer, TLSEXT_NAMETYPE_host_name).map { String(cString: $0) },
      applicationProtocol: applicationProtocol,
      isResumed: SSL_session_reused(pointer) == 1,
      clientCertificatePEM: clientCertificate)
  }

  private var applicationProtocol: String? {
    var name: UnsafePointer<UInt8>?
    var length: UInt32 = 0
    SSL_get0_alpn_selected(pointer, &name, &length)
    guard let name, length > 0 else { return nil }
    return String(decoding: UnsafeBufferPointer(start: name, count: Int(length)), as: UTF8.self)
  }

  private var clientCertificate: String? {
    guard let certificate = SSL_get1_peer_certificate(pointer) else { return nil }
    return try? PEM.text(of: CertificateHandle(owning: certificate))
  }

  /// Repeats a step while it waits for the socket. Returns 1, or 0 at the closing alert.
  private func attempt(over channel: Channel, _ step: () -> Int32) throws(Channel.Failure) -> Int32 {
    while true {
      ERR_clear_error()
      let status = step()
      if status == 1 { return 1 }
      switch SSL_get_error(pointer, status) {
      case SSL_ERROR_WANT_READ: try channel.wait(for: POLLIN)
      case SSL_ERROR_WANT_WRITE: try channel.wait(for: POLLOUT)
      case SSL_ERROR_ZERO_RETURN: return 0
      case SSL_ERROR_SYSCALL:
        isBroken = true
        throw .clientGone
      default:
        isBroken = true
        // The client has closed the socket without the closing alert.
        throw ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING ? .clientGone : .tls
      }
    }
  }
}
