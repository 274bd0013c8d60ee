public import Foundation
public import FoundationNetworking
public import HTTPWire

/// The method of a challenge with the certificates of a server; Foundation's own constant is unavailable on Linux.
public let NSURLAuthenticationMethodServerTrust = "NSURLAuthenticationMethodServerTrust"
/// The method of a challenge for a client certificate; Foundation's own constant is unavailable on Linux.
public let NSURLAuthenticationMethodClientCertificate = "NSURLAuthenticationMethodClientCertificate"

extension URLProtectionSpace {
  /// The certificates of the server in a challenge of ``NSURLAuthenticationMethodServerTrust``; otherwise `nil`.
  public var serverTrust: ServerTrust? { (self as? ServerProtectionSpace)?.trust }
}

extension URLCredential {
  /// Makes the answer to a challenge of ``NSURLAuthenticationMethodServerTrust`` that accepts the server, regardless
  /// of the evaluators.
  ///
  /// - Parameter trust: The trust of the challenge. The accepted chain is always the challenge's.
  public convenience init(trust: ServerTrust) {
    self.init(user: Self.markOfTrust, password: "", persistence: .none)
  }

  /// The user name of credentials that accept a server. It differs in each process, so that no password is taken for
  /// one.
  private static let markOfTrust = "trust " + UUID().uuidString

  /// Whether the credential accepts a server, because ``init(trust:)`` made it.
  var meansTrust: Bool { user == Self.markOfTrust }
}

/// A credential with a client certificate: for ``Request/authenticate(with:)``, and the answer to a challenge of
/// ``NSURLAuthenticationMethodClientCertificate``. The certificate is used for one origin: after a redirect to another
/// one it is not sent.
///
/// ```swift
/// session.request("https://example.com/").authenticate(with: ClientIdentityCredential(identity))
/// ```
public final class ClientIdentityCredential: URLCredential, @unchecked Sendable {
  // Unchecked as its superclass is; its own property is a constant.
  /// The client certificate and its key.
  public let clientIdentity: ClientIdentity

  /// Makes a credential for a client certificate.
  public init(_ identity: ClientIdentity) {
    clientIdentity = identity
    super.init(user: identity.subject, password: "", persistence: .none)
  }

  /// Returns `nil`, because client certificates are not archived.
  public required init?(coder: NSCoder) { nil }
}

/// The protection space of a server whose certificates are evaluated.
final class ServerProtectionSpace: URLProtectionSpace, @unchecked Sendable {
  // Unchecked as its superclass is; its own property is a constant.
  let trust: ServerTrust

  init(_ trust: ServerTrust, _ chain: PresentedChain) {
    self.trust = trust
    super.init(
      host: chain.host, port: chain.port, protocol: "https", realm: nil,
      authenticationMethod: NSURLAuthenticationMethodServerTrust)
  }

  required init?(coder: NSCoder) { nil }
}

/// The decision of a delegate about a server.
enum TrustAnswer: Sendable {
  case accept
  /// The client certificate to present.
  case identity(ClientIdentity)
  /// The evaluators decide.
  case usual
  case refuse
  case cancel

  init(_ disposition: URLSession.AuthChallengeDisposition, _ credential: URLCredential?) {
    switch disposition {
    case .useCredential:
      if let credential = credential as? ClientIdentityCredential {
        self = .identity(credential.clientIdentity)
      } else {
        // A delegate that answers every challenge with the same password, even an empty one, says nothing about
        // certificates.
        self = credential?.meansTrust == true ? .accept : .usual
      }
    case .performDefaultHandling: self = .usual
    case .cancelAuthenticationChallenge: self = .cancel
    case .rejectProtectionSpace: self = .refuse
    @unknown default: self = .refuse
    }
  }
}

extension URLAuthenticationChallenge {
  /// Makes the challenge that shows a delegate the certificates of a server.
  static func challenge(_ trust: ServerTrust, _ chain: PresentedChain) -> URLAuthenticationChallenge {
    URLAuthenticationChallenge(
      protectionSpace: ServerProtectionSpace(trust, chain), proposedCredential: nil,
      previousFailureCount: 0, failureResponse: nil, error: nil, sender: SilentSender())
  }

  /// Makes the challenge that asks a delegate for a client certificate.
  static func challengeForIdentity(of origin: Origin) -> URLAuthenticationChallenge {
    let space = URLProtectionSpace(
      host: origin.host, port: origin.port, protocol: "https", realm: nil,
      authenticationMethod: NSURLAuthenticationMethodClientCertificate)
    return URLAuthenticationChallenge(
      protectionSpace: space, proposedCredential: nil, previousFailureCount: 0, failureResponse: nil,
      error: nil, sender: SilentSender())
  }
}

/// The sender of our challenges. It does nothing, because challenges are answered by the completion handler of the
/// delegate's method.
final class SilentSender: NSObject, URLAuthenticationChallengeSender, Sendable {
  func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {}
  func continueWithoutCredential(for challenge: URLAuthenticationChallenge) {}
  func cancel(_ challenge: URLAuthenticationChallenge) {}
  func performDefaultHandling(for challenge: URLAuthenticationChallenge) {}
  func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {}
}
