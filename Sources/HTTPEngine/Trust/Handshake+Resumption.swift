import COpenSSL
import FoundationEssentials
import HTTPWire

// OpenSSL verifies no certificate when a TLS session is resumed. So the server is evaluated again before its session is
// offered. Its certificate may have expired or been revoked since, and authorities may have changed.
extension Handshake {
  /// Evaluates the server of the session that is about to be offered. If it is not accepted, the session is not
  /// offered. Then the handshake is a full one, and its certificates decide.
  func checkResumption(of connection: OpaquePointer) {
    // After a renegotiation (TLS 1.2), the connection has a session of its own, which was evaluated when it began.
    guard SSL_in_before(connection) == 1, let session = SSL_get_session(connection) else { return }
    // A session does not contain a stapled response.
    let isAccepted =
      !waitsForStatus && failure(of: certificates(of: session, connection), stapled: nil) == nil
    if !isAccepted { SSL_set_session(connection, nil) }
  }

  /// The certificates that the server presented when `session` was made.
  private func certificates(of session: OpaquePointer, _ connection: OpaquePointer) -> [X509Certificate] {
    let presented = ServerJudgement.certificates(SSL_get_peer_cert_chain(connection))
    if presented.count > 1 { return presented }
    if let leaf = presented.first { return loop.presentedChains.chain(from: leaf) }
    guard let pointer = SSL_SESSION_get0_peer(session), X509_up_ref(pointer) == 1,
      let leaf = X509Certificate(owning: pointer)
    else { return [] }
    return loop.presentedChains.chain(from: leaf)
  }
}

/// The chains of accepted servers. The number is limited: the oldest chains are forgotten.
///
/// libcurl from 8.12 on keeps sessions as bytes, of which OpenSSL restores only the server's own certificate.
package struct PresentedChains {
  package static let capacity = 64

  private var chains: [Data: [X509Certificate]] = [:]
  private var order: [Data] = []

  package init() {}

  /// Remembers a chain in place of an earlier one from the same certificate.
  package mutating func remember(_ chain: [X509Certificate]) {
    guard chain.count > 1, let leaf = chain.first else { return }
    if chains.updateValue(chain, forKey: leaf.der) != nil { return }
    order.append(leaf.der)
    guard order.count > Self.capacity else { return }
    chains[order.removeFirst()] = nil
  }

  /// Returns the chain that was presented with `leaf`, or `leaf` alone.
  package func chain(from leaf: X509Certificate) -> [X509Certificate] { chains[leaf.der] ?? [leaf] }
}
