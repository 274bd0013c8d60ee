import COpenSSL
import Glibc
import HTTPTestServer

/// A TLS client of OpenSSL over a blocking socket.
final class TLSClient {
  enum Failure: Error {
    case setUp
    /// OpenSSL's result for the certificate of the server; `X509_V_OK` if the handshake failed for another reason.
    case handshake(verification: Int)
  }

  private let socket: RawClient
  private let context: OpaquePointer
  private let session: OpaquePointer

  /// Performs the handshake. It trusts `authority` (PEM) and expects `name`, a host name or an address.
  init(
    _ server: HTTPTestServer, authority: String, name: String = "localhost",
    identity: TestIdentity? = nil, offers: [String] = []
  ) throws {
    // OpenSSL writes without `MSG_NOSIGNAL`, and some servers of these tests close early.
    signal(SIGPIPE, SIG_IGN)
    socket = try RawClient(server)
    guard let context = SSL_CTX_new(TLS_client_method()),
      let session = Self.session(context, authority, identity)
    else { throw Failure.setUp }
    self.context = context
    self.session = session
    var address = in6_addr()
    let isAddress = inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1
    if isAddress {
      X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), name)
    } else {
      SSL_set1_host(session, name)
      _ = openssl_set_requested_server_name(session, name)
    }
    let protocols = offers.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
    if !protocols.isEmpty { SSL_set_alpn_protos(session, protocols, UInt32(protocols.count)) }
    SSL_set_fd(session, socket.descriptor)
    ERR_clear_error()
    if SSL_connect(session) != 1 { throw Failure.handshake(verification: SSL_get_verify_result(session)) }
  }

  deinit {
    SSL_free(session)
    SSL_CTX_free(context)
  }

  private static func session(
    _ context: OpaquePointer, _ authority: String, _ identity: TestIdentity?
  ) -> OpaquePointer? {
    guard let root = certificate(authority) else { return nil }
    defer { X509_free(root) }
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), root)
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
    if let identity {
      guard let own = certificate(identity.certificatePEM), let key = key(identity.privateKeyPEM) else {
        return nil
      }
      SSL_CTX_use_certificate(context, own)
      SSL_CTX_use_PrivateKey(context, key)
      X509_free(own)
      EVP_PKEY_free(key)
    }
    return SSL_new(context)
  }

  static func certificate(_ text: String) -> OpaquePointer? {
    reading(text) { PEM_read_bio_X509($0, nil, nil, nil) }
  }

  static func key(_ text: String) -> OpaquePointer? {
    reading(text) { PEM_read_bio_PrivateKey($0, nil, nil, nil) }
  }

  private static func reading(_ text: String, _ read: (OpaquePointer?) -> OpaquePointer?) -> OpaquePointer? {
    let bytes = Array(text.utf8)
    let memory = BIO_new_mem_buf(bytes, Int32(bytes.count))
    defer { BIO_free(memory) }
    return read(memory)
  }

  var version: String { String(cString: SSL_get_version(session)) }

  func write(_ text: String) { SSL_write(session, text, Int32(text.utf8.count)) }

  /// Closes the socket without the alert `close_notify`. Only for clients that are not used any more.
  func closeNow() { socket.closeNow() }

  /// Sends a request that ends the connection, and returns all received bytes. `isClosedInOrder` is false without the
  /// alert `close_notify`.
  func exchange(_ target: String) -> (text: String, isClosedInOrder: Bool) {
    let request = Array("GET \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8)
    SSL_write(session, request, Int32(request.count))
    var received: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 16_384)
    while true {
      ERR_clear_error()
      let count = SSL_read(session, &buffer, Int32(buffer.count))
      guard count > 0 else {
        let isInOrder = SSL_get_error(session, count) == SSL_ERROR_ZERO_RETURN
        return (String(decoding: received, as: UTF8.self), isInOrder)
      }
      received += buffer.prefix(Int(count))
    }
  }
}
