import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@Suite("Delegates that do not answer a challenge", .timeLimit(.minutes(1))) struct SilentDelegateTests {
  @Test("The request times out by timeoutIntervalForResource")
  func timeLimit() async {
    let configuration = URLSessionConfiguration.uncached
    configuration.timeoutIntervalForResource = 0.2
    let session = Session.retained(
      fake: FakeTransport(.challenge()), configuration: configuration,
      observers: SessionObservers(delegate: SilentDelegate()))
    let error = await session.request("http://a.test/").end().error
    #expect((error?.underlyingError as? URLError)?.code == .timedOut)
    #expect(error?.localizedDescription.contains("timeoutIntervalForResource") == true)
  }

  /// A delegate that stores completion handlers and never calls them.
  private final class UndecidedDelegate: SessionDelegate, @unchecked Sendable {
    // Unchecked: used on the queue of the session only.
    private var kept: [Any] = []

    override func urlSession(
      _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
      newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
    ) { kept.append(completionHandler) }

    override func urlSession(
      _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposed: CachedURLResponse,
      completionHandler: @escaping (CachedURLResponse?) -> Void
    ) { kept.append(completionHandler) }

    override func urlSession(
      _ session: URLSession, task: URLSessionTask,
      needNewBodyStream completionHandler: @escaping (InputStream?) -> Void
    ) { kept.append(completionHandler) }
  }

  private func undecided(_ fake: FakeTransport) -> Session {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.timeoutIntervalForResource = 0.2
    configuration.urlCache = HTTPCache(memoryCapacity: 1_000_000, diskCapacity: 0, directory: nil)
    return .retained(
      fake: fake, configuration: configuration, observers: SessionObservers(delegate: UndecidedDelegate()))
  }

  @Test("The request times out without an answer about a redirect") func redirect() async {
    let error = await undecided(FakeTransport(.redirect(302, to: "/there"))).request("http://a.test/").end()
      .error
    #expect((error?.underlyingError as? URLError)?.code == .timedOut)
  }

  @Test("The request times out without a stream for its body") func bodyStream() async {
    let request = undecided(FakeTransport()).upload(InputStream(data: Data("a".utf8)), to: "http://a.test/")
    let error = await request.end().error
    #expect((error?.underlyingError as? URLError)?.code == .timedOut)
  }

  @Test("Without an answer about its storage, a response is not stored") func storage() async {
    let reply = FakeReply.status(200, "a", headers: [("Cache-Control", "max-age=60")])
    let fake = FakeTransport { _, _ in reply }
    let session = undecided(fake)
    for _ in 0..<2 { #expect(await session.request("http://a.test/").end().data == Data("a".utf8)) }
    #expect(fake.requests.count == 2)
  }
}
