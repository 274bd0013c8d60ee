package import FoundationEssentials

/// Decides whether a server is trusted.
package protocol ServerEvaluator: Sendable {
  /// Called during a handshake, on the thread of the transport: pure and fast, without user code, files or network.
  /// If the decision needs any of these, it returns ``TrustVerdict/ask``.
  func evaluate(_ chain: PresentedChain, for profile: ConnectionProfile) -> TrustVerdict
  /// Whether it accepts exactly the servers that the trust store, the host name and the dates accept.
  var usesDefaultEvaluation: Bool { get }
  /// Whether it needs the stapled OCSP response of this host; then it is called at the end of the handshake.
  func wantsStapledResponse(ofHost host: String) -> Bool
  /// Whether a delegate has to choose the client identity if this server requests one.
  func wantsToChooseIdentity(forHost host: String, port: Int) -> Bool
}

package enum TrustVerdict: Sendable {
  case accept
  /// The trust store of the profile, the name and the dates decide, as without an evaluator.
  case usual
  /// The handshake fails; the request ends with this error.
  case refuse(any Error)
  /// The handshake fails; the session decides on another thread, and sends the request again.
  case ask
}

extension ServerEvaluator {
  package var usesDefaultEvaluation: Bool { false }
  package func wantsStapledResponse(ofHost host: String) -> Bool { false }
  package func wantsToChooseIdentity(forHost host: String, port: Int) -> Bool { false }
}

/// The certificates that a server presents in a TLS handshake, and the host of the request.
package struct PresentedChain: Sendable, Hashable {
  /// The host, as in the URL, without the brackets of an IPv6 address.
  package let host: String
  package let port: Int
  /// DER, the server's own certificate first, the others in the order of the server.
  package let certificates: [Data]
  /// The stapled OCSP response (RFC 6066 §8), if there is one and an evaluator needs it.
  package let stapledResponse: Data?

  package init(host: String, port: Int, certificates: [Data], stapledResponse: Data? = nil) {
    self.host = host
    self.port = port
    self.certificates = certificates
    self.stapledResponse = stapledResponse
  }
}
