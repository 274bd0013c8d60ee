import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire
import Testing

@testable import Alamofire

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

  /// A delegate that never decides about a redirect, and answers other questions when the time is over.
  private final class UndecidedDelegate: SessionDelegate, @unchecked Sendable {
    // Unchecked: used on the queue of the session only.
    private var kept: [Any] = []

    /// Calls `answer` after a timer of the library that began before, for a deadline that was over.
    private func callLate(_ answer: @escaping @Sendable () -> Void) {
      kept.append(DispatchSource.timer(at: DispatchTime(MonotonicTime.now), answer))
    }

    override func urlSession(
      _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
      newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
    ) { kept.append(completionHandler) }

    override func urlSession(
      _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposed: CachedURLResponse,
      completionHandler: @escaping (CachedURLResponse?) -> Void
    ) {
      // Unchecked: only the timer calls it, once.
      nonisolated(unsafe) let answer = completionHandler
      callLate { answer(proposed) }
    }

    override func urlSession(
      _ session: URLSession, task: URLSessionTask,
      needNewBodyStream completionHandler: @escaping (InputStream?) -> Void
    ) {
      // Unchecked: only the timer calls it, once.
      nonisolated(unsafe) let answer = completionHandler
      callLate { answer(InputStream(data: Data("late".utf8))) }
    }
  }

  private func undecided(_ fake: FakeTransport) -> Session {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = HTTPCache(memoryCapacity: 1_000_000, diskCapacity: 0, directory: nil)
    var options = TransportOptions()
    // Over at once. The fake transport observes no deadline.
    options.timeLimits.total = .nanoseconds(1)
    return .retained(
      fake: fake, configuration: configuration, options: options,
      observers: SessionObservers(delegate: UndecidedDelegate()))
  }

  @Test("The request times out without an answer about a redirect") func redirect() async {
    let error = await undecided(FakeTransport(.redirect(302, to: "/there"))).request("http://a.test/").end()
      .error
    #expect((error?.underlyingError as? URLError)?.code == .timedOut)
    #expect(error?.localizedDescription.contains("a.test") == true)
    #expect(error?.localizedDescription.contains("before timeLimits.total was over") == true)
    #expect(error?.localizedDescription.contains("a redirect handler") == true)
  }

  @Test("The total time begins with the body, however late the delegate provides its stream")
  func bodyStream() async {
    let request = undecided(FakeTransport()).upload(InputStream(data: Data("a".utf8)), to: "http://a.test/")
    #expect(await request.end().error == nil)
  }

  @Test("The total time ends with the response, which is stored after a late answer") func storage() async {
    let reply = FakeReply.status(200, "a", headers: [("Cache-Control", "max-age=60")])
    let fake = FakeTransport { _, _ in reply }
    let session = undecided(fake)
    for _ in 0..<2 { #expect(await session.request("http://a.test/").end().data == Data("a".utf8)) }
    #expect(fake.requests.count == 1)
  }
}
