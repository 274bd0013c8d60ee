import Foundation
import FoundationNetworking
import HTTPWire

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
        // A delegate that answers every challenge with the same password says nothing about certificates.
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
