import COpenSSL
import HTTPSystem
import HTTPWire

/// The state of a connection of TLS 1.2 on which the server may begin another handshake (RFC 5246 §7.4.1.1). Servers do
/// so to ask for a client certificate when they know what is requested.
struct TLSRenegotiation {
  /// Whether the server may begin one now.
  fileprivate(set) var isAllowed = false
  fileprivate(set) var isGoingOn = false
  /// The number of those that have begun.
  fileprivate var count = 0
  /// Whether the client has refused one since the last request began.
  fileprivate(set) var wasRefused = false
  /// The messages of handshakes since the last data.
  var messages = 0
  /// Whether the server has sent too many of them.
  fileprivate(set) var isCut = false
  /// The certificate of the server that was accepted.
  fileprivate var certificate: X509Certificate?
}

extension TLSConnection {
  /// The messages of handshakes that a server may send without data in between: the handshake itself, tickets, updates
  /// of keys, a renegotiation. OpenSSL processes them within one read, and has no limit.
  private static let mostMessages = 100

  /// Allows one renegotiation, within the request that begins. A client without an identity sends an empty list of
  /// certificates (RFC 5246 §7.4.6), and the server decides whether that is enough. It must not be called for HTTP/2
  /// (RFC 9113 §9.2.1).
  func allowRenegotiation() {
    renegotiation.wasRefused = false
    guard !renegotiation.isAllowed, peer.proxy == nil, SSL_version(session) < TLS1_3_VERSION else { return }
    openssl_allow_renegotiation(session)
    renegotiation.isAllowed = true
  }

  func forbidRenegotiation() {
    guard renegotiation.isAllowed else { return }
    openssl_forbid_renegotiation(session)
    renegotiation.isAllowed = false
  }

  /// Notes an event of the handshakes after the first one. OpenSSL reports it within a read or a write.
  func noteEvent(at location: Int32, _ value: Int32) {
    switch location {
    case SSL_CB_HANDSHAKE_START:
      renegotiation.isGoingOn = renegotiation.isAllowed
      guard renegotiation.isGoingOn else { return }
      SSL_set_msg_callback(session, Self.countMessage)
      // Until the server presents a certificate, the session still has the certificate of the last handshake.
      if renegotiation.certificate == nil {
        renegotiation.certificate = ServerEvaluation.certificates(SSL_get_peer_cert_chain(session)).first
      }
    case SSL_CB_HANDSHAKE_DONE where renegotiation.isGoingOn:
      renegotiation.isGoingOn = false
      SSL_set_msg_callback(session, nil)
      let count = openssl_renegotiation_count(session)
      // If bytes have arrived after the server's request, OpenSSL reads them first, and begins later.
      guard count > renegotiation.count else { return }
      renegotiation.count = count
      forbidRenegotiation()
    case SSL_CB_WRITE_ALERT where value & 0xFF == SSL_AD_NO_RENEGOTIATION: renegotiation.wasRefused = true
    case SSL_CB_CONNECT_LOOP where !renegotiation.isGoingOn: messageReceived()
    default: break
    }
  }

  /// Ends the connection if its server sends nothing but messages of handshakes.
  func messageReceived() {
    renegotiation.messages += 1
    guard renegotiation.messages > Self.mostMessages, !renegotiation.isCut else { return }
    failure = TransportFailure(
      .secureConnectionFailed,
      "\(peer.description) sent more than \(Self.mostMessages) messages of TLS handshakes without data, so the connection was closed."
    )
    // The next read fails, because this callback cannot return an error.
    renegotiation.isCut = true
  }

  /// Returns the failure of a server that presents another certificate than before. The request was sent to the first
  /// one.
  func changedCertificate(_ certificates: [X509Certificate]) -> TransportFailure? {
    if let shown = certificates.first, shown.der == renegotiation.certificate?.der { return nil }
    return TransportFailure(
      .secureConnectionFailed,
      "\(peer.description) presented another certificate when it renegotiated TLS, so the connection was closed."
    )
  }

  /// Returns the failure of a renegotiation that OpenSSL or the server has ended.
  func renegotiationFailure(_ said: String) -> TransportFailure {
    guard peer.profile.options.clientIdentity != nil else { return refusedRenegotiation(" (\(said))") }
    return TransportFailure(
      .clientCertificateRejected,
      "\(peer.description) did not accept the client certificate for this request. (\(said))")
  }

  /// The failure of a request, if the handshakes are the reason why its connection ended without a complete response.
  var refusal: TransportFailure? {
    if renegotiation.isCut { return failure }
    return renegotiation.wasRefused ? refusedRenegotiation() : nil
  }

  /// Returns the failure of a request that the server did not answer because the client has refused a renegotiation.
  func refusedRenegotiation(_ detail: String = "") -> TransportFailure {
    TransportFailure(
      .clientCertificateRequired,
      "\(peer.description) asks for a client certificate for this request (TLS renegotiation).\(detail)")
  }
}
