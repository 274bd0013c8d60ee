import Alamofire
import Foundation
import FoundationNetworking

/// A delegate that chooses a client certificate, or none, or cancels.
final class IdentityChooser: SessionDelegate, @unchecked Sendable {
  /// The hosts of the calls, with the kind of the calling task.
  let calls = Recorder<String>()
  let identity: ClientIdentity?
  let cancels: Bool

  init(_ identity: ClientIdentity?, cancels: Bool = false) {
    self.identity = identity
    self.cancels = cancels
    super.init()
  }

  override func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    guard challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodClientCertificate else {
      return completionHandler(.performDefaultHandling, nil)
    }
    calls.add("\(challenge.protectionSpace.host) \(task is ByteStreamTask ? "stream" : "request")")
    if cancels { return completionHandler(.cancelAuthenticationChallenge, nil) }
    guard let identity else { return completionHandler(.performDefaultHandling, nil) }
    completionHandler(.useCredential, ClientIdentityCredential(identity))
  }
}
