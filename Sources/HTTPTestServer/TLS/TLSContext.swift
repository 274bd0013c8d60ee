import COpenSSL

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
