import Alamofire
import Foundation
import FoundationNetworking

/// A delegate that stores the completion handlers of challenges and never calls them.
final class SilentDelegate: SessionDelegate, @unchecked Sendable {
  // Unchecked: used on the queue of the session only.
  private var kept: [(URLSession.AuthChallengeDisposition, URLCredential?) -> Void] = []

  override func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) { kept.append(completionHandler) }
}
