package import FoundationEssentials

/// Decides whether a server is who it claims to be.
package protocol TrustJudge: Sendable {
  /// Called in the middle of a handshake, on a thread that other transfers wait for: pure and fast, without code
  /// of users, files or network. What needs any of these answers ``TrustVerdict/ask``.
  func judge(_ chain: PresentedChain, for profile: ConnectionProfile) -> TrustVerdict
  /// Whether it accepts exactly the servers that the trust store, the name and the dates accept.
  var judgesAsUsual: Bool { get }
  /// Whether it wants the stapled OCSP response of this host; then it is asked at the end of the handshake.
  func wantsStapledResponse(ofHost host: String) -> Bool
  /// Whether a delegate has still to choose the client's identity if this server asks for one.
  func wantsToChooseIdentity(forHost host: String, port: Int) -> Bool
}

package enum TrustVerdict: Sendable {
  case accept
  /// The trust store of the profile, the name and the dates decide, as without a judge.
  case usual
  /// The error is the one that the request ends with.
  case refuse(any Error)
  /// The handshake ends; the session decides on another thread, and sends the request again.
  case ask
}

extension TrustJudge {
  package var judgesAsUsual: Bool { false }
  package func wantsStapledResponse(ofHost host: String) -> Bool { false }
  package func wantsToChooseIdentity(forHost host: String, port: Int) -> Bool { false }
}

/// The certificates that a server presents in a TLS handshake, and the host that was to be reached.
package struct PresentedChain: Sendable, Hashable {
  /// The host that was to be reached, as in the URL, without the brackets of an IPv6 address.
  package let host: String
  package let port: Int
  /// DER, the server's own certificate first, the others in the order in which they came.
  package let certificates: [Data]
  /// The OCSP response that the server stapled to it (RFC 6066 §8), if it did and an evaluator needs it.
  package let stapledResponse: Data?

  package init(host: String, port: Int, certificates: [Data], stapledResponse: Data? = nil) {
    self.host = host
    self.port = port
    self.certificates = certificates
    self.stapledResponse = stapledResponse
  }
}
