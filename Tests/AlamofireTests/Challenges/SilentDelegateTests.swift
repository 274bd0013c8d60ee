import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@Suite("Delegates that do not answer a challenge", .timeLimit(.minutes(1))) struct SilentDelegateTests {
  /// Stores completion handlers and never calls them.
  private final class Silent: SessionDelegate, @unchecked Sendable {
    // Unchecked: used on the queue of the session only.
    private var kept: [(URLSession.AuthChallengeDisposition, URLCredential?) -> Void] = []

    override func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) { kept.append(completionHandler) }
  }

  @Test("The request times out by timeoutIntervalForResource")
  func timeLimit() async {
    let configuration = URLSessionConfiguration.uncached
    configuration.timeoutIntervalForResource = 0.2
    let session = Session.retained(
      fake: FakeTransport(.challenge()), configuration: configuration,
      observers: SessionObservers(delegate: Silent()))
    let error = await session.request("http://a.test/").end().error
    #expect((error?.underlyingError as? URLError)?.code == .timedOut)
    #expect(error?.localizedDescription.contains("timeoutIntervalForResource") == true)
  }
}
