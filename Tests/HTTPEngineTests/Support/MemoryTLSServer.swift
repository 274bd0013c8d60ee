import COpenSSL
import HTTPTestServer
import Testing

@testable import HTTPEngine

/// A server of TLS in memory, on the other side of a ``MemoryPipe``. It does what the test says, step by step.
final class MemoryTLSServer {
  private let context: OpaquePointer
  private let session: OpaquePointer
  private let input: OpaquePointer
  private let output: OpaquePointer
  private let pipe: MemoryPipe
  /// The number of the client's bytes that were consumed.
  private var taken = 0

  init(_ identity: TestIdentity, on pipe: MemoryPipe, version: Int32 = TLS1_2_VERSION) throws {
    self.pipe = pipe
    context = try #require(SSL_CTX_new(TLS_server_method()))
    try #require(
      openssl_set_min_version(context, version) == 1 && openssl_set_max_version(context, version) == 1)
    // Without a context, OpenSSL resumes no session of a server that asks for certificates.
    try #require(SSL_CTX_set_session_id_context(context, [1], 1) == 1)
    // Otherwise a renegotiation resumes the first session, and asks for no certificate.
    SSL_CTX_set_options(context, UInt64(1) << 16)  // SSL_OP_NO_SESSION_RESUMPTION_ON_RENEGOTIATION
    // Any certificate of a client will do.
    SSL_CTX_set_cert_verify_callback(context, { _, _ in 1 }, nil)
    session = try #require(SSL_new(context))
    input = try #require(BIO_new(BIO_s_mem()))
    output = try #require(BIO_new(BIO_s_mem()))
    SSL_set_bio(session, input, output)
    SSL_set_accept_state(session)
    try present(identity)
  }

  deinit {
    SSL_free(session)
    SSL_CTX_free(context)
    ERR_clear_error()
  }

  /// Presents a certificate from now on.
  func present(_ identity: TestIdentity) throws {
    let certificate = try #require(
      Self.read(identity.certificatePEM) { PEM_read_bio_X509($0, nil, nil, nil) })
    defer { X509_free(certificate) }
    let key = try #require(Self.read(identity.privateKeyPEM) { PEM_read_bio_PrivateKey($0, nil, nil, nil) })
    defer { EVP_PKEY_free(key) }
    try #require(SSL_use_certificate(session, certificate) == 1 && SSL_use_PrivateKey(session, key) == 1)
  }

  /// Accepts no certificate of the client from now on.
  func refuseCertificates() { SSL_CTX_set_cert_verify_callback(context, { _, _ in 0 }, nil) }

  private static func read(_ pem: String, _ body: (OpaquePointer?) -> OpaquePointer?) -> OpaquePointer? {
    Array(pem.utf8).withUnsafeBytes { bytes in
      let bio = BIO_new_mem_buf(bytes.baseAddress, Int32(bytes.count))
      defer { BIO_free(bio) }
      return body(bio)
    }
  }

  /// Lets OpenSSL work on what the client has sent, and leaves its answer in the pipe.
  @discardableResult
  private func run(_ step: (OpaquePointer) -> Int32) -> Int32 {
    let new = Array(pipe.written[taken...])
    if !new.isEmpty { BIO_write(input, new, Int32(new.count)) }
    taken = pipe.written.count
    let status = step(session)
    var bytes = [UInt8](repeating: 0, count: 16_384)
    var count = BIO_read(output, &bytes, Int32(bytes.count))
    while count > 0 {
      pipe.incoming += bytes[..<Int(count)]
      count = BIO_read(output, &bytes, Int32(bytes.count))
    }
    ERR_clear_error()
    return status
  }

  /// Performs the first handshake with a client.
  func handshake(with client: TLSConnection) throws {
    for _ in 0..<10 {
      if case .moved = client.handshake(), SSL_is_init_finished(session) == 1 { return }
      run { SSL_do_handshake($0) }
    }
    throw Failure()
  }

  /// Performs the first handshake, in which the server asks for a certificate, until the client needs more than bytes.
  /// Returns that step.
  func handshakeForCertificate(
    with client: TLSConnection, requiresCertificate: Bool = false
  ) throws -> PipeStep {
    SSL_set_verify(
      session, SSL_VERIFY_PEER | (requiresCertificate ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), nil)
    for _ in 0..<10 {
      let step = client.handshake()
      switch step {
      case .waitsToRead, .waitsToWrite: run { SSL_do_handshake($0) }
      default:
        run { SSL_do_handshake($0) }
        return step
      }
    }
    throw Failure()
  }

  struct Failure: Error {}

  /// Takes what the client has sent. Returns the data in it.
  @discardableResult
  func receive() -> String {
    var text = ""
    run { session in
      var bytes = [UInt8](repeating: 0, count: 16_384)
      var count = SSL_read(session, &bytes, Int32(bytes.count))
      while count > 0 {
        text += String(decoding: bytes[..<Int(count)], as: UTF8.self)
        count = SSL_read(session, &bytes, Int32(bytes.count))
      }
      return count
    }
    return text
  }

  func send(_ text: String) { send(Array(text.utf8)) }

  func send(_ bytes: [UInt8]) {
    run { SSL_write($0, bytes, Int32(bytes.count)) }
  }

  /// Asks for another handshake (HelloRequest), and in it for a certificate.
  func renegotiate(requiresCertificate: Bool = false) {
    SSL_set_verify(
      session, SSL_VERIFY_PEER | (requiresCertificate ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), nil)
    run {
      SSL_renegotiate($0)
      return SSL_do_handshake($0)
    }
  }

  /// Sends a ticket of TLS 1.3.
  func sendTicket() {
    run {
      SSL_new_session_ticket($0)
      return SSL_do_handshake($0)
    }
  }

  /// Whether the client has shown a certificate.
  var hasClientCertificate: Bool {
    let certificate = SSL_get1_peer_certificate(session)
    defer { X509_free(certificate) }
    return certificate != nil
  }
}
