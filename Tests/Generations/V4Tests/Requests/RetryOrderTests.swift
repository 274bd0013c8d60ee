import AlamofireV4
import Dispatch
import Foundation
import HTTPTestServer
import Testing

/// Retries without a delay are performed in order.
@Suite("Order of retries", .timeLimit(.minutes(2))) struct RetryOrderTests {
  /// Holds the second attempt of the request to `/status/500?first`.
  private final class HoldingAdapter: RequestAdapter {
    let attempts = Notes<String>()
    let released = DispatchSemaphore(value: 0)

    var isHolding: Bool { attempts.all.filter { $0 == "first" }.count == 2 }

    func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
      let name = urlRequest.url?.query ?? ""
      attempts.add(name)
      if name == "first", isHolding { released.wait() }
      return urlRequest
    }
  }

  /// Retries each request once. It delays its completion for `late` on demand, and keeps the last one for `twice`.
  private final class Retrier: RequestRetrier {
    let answered = Notes<String>()
    private let kept = Mutex<UncheckedBox<RequestRetryCompletion>?>(nil)

    func should(
      _ manager: SessionManager, retry request: Request, with error: any Error,
      completion: @escaping RequestRetryCompletion
    ) {
      let name = request.request?.url?.query ?? ""
      if name == "late" || name == "twice" {
        let carried = UncheckedBox(value: completion)
        kept.withLock { $0 = carried }
      }
      if name != "late" { completion(request.retryCount == 0, 0) }
      answered.add(name)
    }

    func answerKept() { kept.withLock { $0 }?.value(true, 0) }
  }

  /// Notes how many retries it adapts at a time.
  private final class CountingAdapter: RequestAdapter {
    private struct State {
      var names: Set<String> = []
      var count = 0
      var peak = 0
    }

    private let state = Mutex(State())

    var peak: Int { state.withLock { $0.peak } }

    func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
      let name = urlRequest.url?.query ?? ""
      let isRetry = state.withLock { state in
        guard !state.names.insert(name).inserted else { return false }
        state.count += 1
        state.peak = max(state.peak, state.count)
        return true
      }
      guard isRetry else { return urlRequest }
      for _ in 0..<1000 { sched_yield() }
      state.withLock { $0.count -= 1 }
      return urlRequest
    }
  }

  private let server: HTTPTestServer
  private let manager = SessionManager.isolated()
  private let retrier = Retrier()

  init() throws {
    server = try HTTPTestServer()
    manager.retrier = retrier
  }

  private func request(_ name: String) -> DataRequest {
    manager.request(server.url("/status/500?\(name)")).validate()
  }

  @Test("One retry is adapted at a time") func oneAtATime() async {
    let adapter = CountingAdapter()
    manager.adapter = adapter
    let requests = (0..<40).map { request("\($0)") }
    for request in requests { #expect((await request.ended().error as? AFError)?.responseCode == 500) }
    #expect(requests.allSatisfy { $0.retryCount == 1 } && adapter.peak == 1)
  }

  @Test("A cancelled request that waits for its retry does not delay others")
  func cancelledInTheQueue() async {
    let adapter = HoldingAdapter()
    manager.adapter = adapter
    let first = request("first")
    #expect(await eventually { adapter.isHolding })
    let second = request("second")
    #expect(await eventually { retrier.answered.all.contains("second") })
    second.cancel()
    #expect((await second.ended().error as? AFError)?.responseCode == 500)
    adapter.released.signal()
    #expect((await first.ended().error as? AFError)?.responseCode == 500)
    #expect((await request("third").ended().error as? AFError)?.responseCode == 500)
    #expect(adapter.attempts.all == ["first", "first", "second", "third", "third"])
  }

  /// Cancels a request about which the retrier was asked, and expects that a later answer does not delay others.
  private func expectNoDelay(by late: DataRequest) async {
    #expect(await eventually { retrier.answered.all == ["late"] })
    late.cancel()
    #expect((await late.ended().error as? AFError)?.responseCode == 500)
    retrier.answerKept()
    let other = request("other")
    #expect((await other.ended().error as? AFError)?.responseCode == 500)
    #expect(other.retryCount == 1 && late.retryCount == 0)
  }

  @Test("A retrier that completes for a cancelled request does not delay others")
  func answeredAfterTheEnd() async {
    let late = request("late")
    await expectNoDelay(by: late)
  }

  @Test("A retrier that completes after a late validation has ended does not delay others")
  func answeredAfterALateCheck() async {
    let late = manager.request(server.url("/status/500?late"))
    #expect(await late.ended().error == nil)
    late.validate()
    await expectNoDelay(by: late)
  }

  @Test("The second call of a completion is ignored") func answeredTwice() async {
    let twice = request("twice")
    #expect((await twice.ended().error as? AFError)?.responseCode == 500)
    retrier.answerKept()
    let (other, ends) = (request("other"), Notes<Bool>())
    other.response { ends.add($0.error != nil) }
    #expect(await eventually { ends.all == [true] })
    #expect(other.retryCount == 1 && twice.retryCount == 1 && server.requestCount == 4)
  }
}
