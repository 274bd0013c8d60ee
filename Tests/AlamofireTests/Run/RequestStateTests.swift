import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@testable import Alamofire

/// The parts of the state of a request, without a transfer.
@Suite("State of a request") struct RequestStateTests {
  private func request(_ path: String) -> URLRequest {
    URLRequest(url: URL(fileURLWithPath: "/\(path)"))
  }

  private let exchange = Exchange(url: nil, head: ResponseHead(status: 200))

  // MARK: Results

  @Test("The first error stays, unless a retrier replaces it") func errors() {
    var results = RequestResults()
    results.fail(.explicitlyCancelled)
    results.fail(.sessionDeinitialized)
    #expect(results.error?.isExplicitlyCancelledError == true)
    _ = results.replaceError(with: .sessionDeinitialized)
    #expect(results.error?.isSessionDeinitializedError == true)
  }

  @Test("A retry forgets everything but the request, and only a retry is counted") func retry() {
    var results = RequestResults()
    _ = results.replaceRequest(with: request("a"))
    _ = results.store(exchange, body: Data("x".utf8))
    results.fail(.explicitlyCancelled)
    let earlier = results.beginRetry()
    #expect(earlier === exchange && results.retryCount == 1)
    #expect(results.exchange == nil && results.data == nil && results.error == nil)
    #expect(results.request == request("a"))
    let nothing = results.beginRetry(counts: false)
    #expect(nothing == nil && results.retryCount == 1)
  }

  @Test("An attempt that sent nothing has metrics, and one with a response keeps its own") func missing() {
    var results = RequestResults()
    _ = results.replaceRequest(with: request("a"))
    let start = Date()
    results.makeMissingExchange(protecting: [])
    #expect(results.exchange?.head == nil && results.exchange?.url == request("a").url)
    #expect((results.exchange?.metrics?.taskInterval.start).map { $0 >= start } == true)
    _ = results.store(exchange, body: nil)
    results.makeMissingExchange(protecting: [])
    #expect(results.exchange === exchange)
  }

  @Test("Earlier requests and responses are kept, unless they are forgotten", arguments: [false, true])
  func history(isForgotten: Bool) {
    var state = RequestCore.CoreState()
    if isForgotten { state.results.history.value.isForgotten = true }
    _ = state.add(request("a"))
    _ = state.add(request("b"))
    #expect(state.requests == (isForgotten ? [request("b")] : [request("a"), request("b")]))
    #expect(state.keepsEarlierAttempts == !isForgotten)
    state.results.history.value.add(exchange)
    _ = state.results.store(exchange, body: nil)
    #expect(state.exchanges.count == 2)
  }

  @Test("A request keeps its last hundred requests and responses") func longHistory() {
    var state = RequestCore.CoreState()
    for index in 0..<250 {
      #expect(state.add(request("\(index)")) == (index < 100 ? nil : request("\(index - 100)")))
      state.results.history.value.add(Exchange(url: nil, head: ResponseHead(status: 200 + index)))
    }
    _ = state.results.store(exchange, body: nil)
    #expect(state.requests == (150..<250).map { request("\($0)") })
    #expect(state.exchanges.compactMap { $0.head?.status } == (351..<450) + [200])
  }

  @Test("A body that chunk readers receive is not one of the response") func collectedBody() {
    var state = RequestCore.CoreState()
    _ = state.results.store(exchange, body: Data("x".utf8))
    #expect(state.collectedBody == Data("x".utf8) && state.outcome.data == Data("x".utf8))
    state.bodies.value.chunks = ResponseChunks(executor: nil)
    #expect(state.collectedBody == nil && state.outcome.data == nil)
  }

  // MARK: Cancellation

  @Test("The first cancellation has the error, and one during or after a closing handshake has none")
  func cancellations() {
    var cancelled = RequestCore.CoreState()
    #expect(cancelled.cancel(because: .sessionDeinitialized) == .finish)
    #expect(cancelled.cancel(because: .explicitlyCancelled) == .nothing)
    #expect(cancelled.results.error?.isSessionDeinitializedError == true)
    var closing = RequestCore.CoreState()
    _ = closing.lifecycle.resumed()
    _ = closing.lifecycle.closed()
    var closed = closing
    #expect(closing.cancel(because: .explicitlyCancelled) == .cancel)
    #expect(closing.results.error == nil, "the end of the connection has the error")
    closed.lifecycle.ended()
    #expect(closed.cancel(because: .explicitlyCancelled) == .nothing)
    #expect(closed.results.error == nil, "the request has ended well")
    var finished = RequestCore.CoreState()
    _ = finished.lifecycle.resumed()
    finished.lifecycle.ended()
    #expect(finished.cancel(because: .explicitlyCancelled) == .nothing)
    #expect(finished.results.error == nil)
  }

  // MARK: What a task shows

  @Test("A task shows the response of the results, or else the one whose body is being read") func taskView()
  {
    var state = RequestCore.CoreState()
    func response() -> URLResponse? { state.taskView.response }
    #expect(response() == nil)
    let url = URL(fileURLWithPath: "/x")
    _ = state.add(request("x"))
    state.results.beginResponse(ResponseHead(status: 201))
    #expect((response() as? HTTPURLResponse)?.statusCode == 201)
    _ = state.results.store(Exchange(url: url, head: ResponseHead(status: 202)), body: nil)
    #expect((response() as? HTTPURLResponse)?.statusCode == 202)
    let other = URLResponse(url: url, mimeType: "a/b", expectedContentLength: 1, textEncodingName: nil)
    _ = state.results.store(Exchange(url: url, other: other), body: nil)
    #expect(response() === other)
    _ = state.results.beginRetry()
    #expect(response() == nil)
    state.results.beginResponse(ResponseHead(status: 201))
    _ = state.results.beginRetry()
    #expect(response() == nil, "the attempt whose body was being read has ended")
  }

  @Test("A task shows the state and the counts of its request, and at its end the error") func taskState() {
    var state = RequestCore.CoreState()
    func view() -> TaskRecord.View { state.taskView }
    func end() -> TaskRecord.View { state.endedView }
    #expect(view().state == .suspended)
    _ = state.lifecycle.resumed()
    #expect(view().state == .running)
    _ = state.lifecycle.suspended()
    #expect(view().state == .suspended)
    var count = ByteCount()
    count.received = 5
    _ = state.observed.added.value.progress.moved(count, nil)
    #expect(view().count == count)
    state.results.fail(.sessionTaskFailed(error: URLError(.timedOut)))
    #expect(view().error == nil)
    #expect((end().error as? URLError)?.code == .timedOut && end().state == .completed)
    _ = state.lifecycle.cancelled()
    #expect(view().state == .canceling)
    state.lifecycle.ended()
    #expect(view().state == .completed)
  }

  // MARK: Handlers

  private final class Sink: ResponseSink {
    var runsUserCode: Bool { false }
    func serialize(_ outcome: RequestOutcome) -> AFError? { nil }
    func replaceFailure(with error: AFError, parsed: AFError?) {}
    func deliver() {}
    func announce(to request: any RunOwner) {}
  }

  @Test("Handlers are served in their order, again after a retry, and once") func sinks() {
    var handlers = RequestHandlers()
    let sinks = [Sink(), Sink(), Sink()]
    handlers.add(sinks[0])
    handlers.add(sinks[1])
    func next() -> Int? { handlers.next().flatMap { sink in sinks.firstIndex { $0 === sink } } }
    let first = [next(), next(), next()]
    #expect(first == [0, 1, nil])
    handlers.restart()
    let again = [next(), next(), next()]
    #expect(again == [0, 1, nil])
    let served = handlers.takeServed()
    #expect(served.count == 2)
    let nothing = next()
    handlers.add(sinks[2])
    let late = [next(), next()]
    #expect(nothing == nil && late == [2, nil])
  }

  @Test("The handler of the cURL command is called once, with or without a request") func watchers() {
    var watchers = RequestWatchers()
    let nothing = watchers.requestCreated()
    #expect(nothing == nil)
    watchers.requestHandler = (.global(), { _ in })
    watchers.cURLHandler = (.global(), { _ in })
    let first = watchers.requestCreated()
    #expect(first?.request != nil && first?.cURL != nil)
    let second = watchers.requestCreated()
    #expect(second?.request != nil && second?.cURL == nil, "each attempt has a request")
    #expect(!watchers.hasFailed)
    watchers.cURLHandler = (.global(), { _ in })
    let failed = (watchers.creationFailed(), watchers.creationFailed())
    #expect(failed.0 != nil && failed.1 == nil && watchers.hasFailed)
  }

  // MARK: Observers

  @Test("Tasks are announced to monitors, handlers and sequences of tasks") func taskObservers() {
    #expect(!RequestCore.CoreState().hasTaskObservers)
    var monitored = RequestCore.CoreState()
    monitored.observed.hasMonitors = true
    #expect(monitored.hasTaskObservers)
    var handled = RequestCore.CoreState()
    handled.observed.added.value.taskHandler = (.global(), { _ in })
    #expect(handled.hasTaskObservers)
    var listened = RequestCore.CoreState()
    listened.observed.added.value.listeners = RequestListeners()
    #expect(!listened.hasTaskObservers)
    listened.observed.added.value.listeners?.tasks = [AsyncStream<URLSessionTask>.makeStream().continuation]
    #expect(listened.hasTaskObservers)
  }

  @Test("A run that waits for notifications goes on after the last of them") func notifications() {
    var state = RequestCore.CoreState()
    let calls = Recorder<Bool>()
    state.observed.beginNotification()
    state.observed.beginNotification()
    #expect(state.observed.hasPendingChanges)
    state.run.park(at: .notifications) { calls.add(true) }
    let first = state.endNotification()
    #expect(first == nil && state.observed.hasPendingChanges)
    let last = state.endNotification()
    last?()
    #expect(calls.count == 1 && !state.observed.hasPendingChanges)
  }

  // MARK: The run

  @Test("A run leaves the gate at which it waits, once", arguments: Gate.allCases)
  func gates(gate: Gate) {
    var run = ActiveRun()
    run.park(at: gate) {}
    for other in Gate.allCases where other != gate {
      let left = run.leave(other)
      #expect(left == nil, "\(other)")
    }
    let (first, second) = (run.leave(gate), run.leave(gate))
    #expect(first != nil && second == nil)
  }

  @Test(
    "A cancellation ends the waits for a resumption and for a decision, and no others",
    arguments: Gate.allCases)
  func cancellation(gate: Gate) async {
    var run = ActiveRun()
    let (calls, control) = (Recorder<Bool>(), FakeTransferControl())
    let task = Task<Void, Never> {}
    _ = run.add(task, at: run.startTask())
    run.control = control
    run.openHeadDecision()
    run.park(at: gate) { calls.add(true) }
    run.takeCancellation().perform()
    #expect(task.isCancelled && control.isCancelled && !run.isHeadUndecided)
    #expect(calls.count == (gate == .resumed || gate == .headDecision ? 1 : 0))
    run.end()
    #expect(run.task == nil)
  }
}
