import HTTPWire
import Synchronization

/// The elements of an asynchronous sequence, created on demand.
protocol StreamSource<Element>: AnyObject, Sendable {
  associatedtype Element: Sendable
  /// Called when iteration begins.
  func begin()
  /// Returns the next element if there is one already. `nil` does not mean the end, which only ``next()`` reports.
  /// Saves an asynchronous call, which costs more than the rest.
  func nextAtOnce() -> Element?
  /// Returns the next element; `nil` at the end, and if the surrounding task is cancelled.
  nonisolated(nonsending) func next() async -> Element?
  /// Ends the elements. Does nothing the second time.
  func finish()
}

/// The events of a stream request for a loop. Values are created on demand, so that few are held, however slow the loop
/// is.
///
/// The stream and its iterator own it; the request holds the ``LoopReader``.
final class PulledStream<Success: Sendable, Failure: Error>: StreamSource {
  typealias Element = DataStreamRequest.Stream<Success, Failure>

  private struct State {
    /// `nil` while a task decodes.
    var decoding: StreamDecoding<Success, Failure>?
    /// Whether another task waits for the decoding.
    var isAwaited = false
    /// The decoded events, the last one first.
    var ready: [Element] = []
    /// Whether the completion has been created.
    var isComplete = false
    /// Whether the iterator was released or its task cancelled.
    var isFinished = false

    /// Whether every element was taken, and no other will follow.
    var isOver: Bool { ready.isEmpty && (isComplete || isFinished) }

    /// Keeps only the completion. Returns the earlier events, whose values are released outside the lock.
    mutating func dropValues() -> [Element] { replace(&ready, with: ready.filter { $0.completion != nil }) }
  }

  private let request: DataStreamRequest
  private let reader: LoopReader
  private let cancels: Bool
  /// The unread events and the state of the decoding, for the readers.
  private let state: Mutex<State>

  /// Makes the stream of a loop.
  ///
  /// - Parameter cancels: Whether the request is cancelled when the loop is left early.
  init(_ request: DataStreamRequest, decoding: StreamDecoding<Success, Failure>, cancels: Bool) {
    self.request = request
    self.cancels = cancels
    state = Mutex(State(decoding: decoding))
    reader = LoopReader(request.flow)
    request.flow.fanout.add(reader, for: reader.runEnd, .afterBeginning)
    request.core.add(reader, for: request)
  }

  deinit { finish() }

  func begin() { request.flow.fanout.begin(reader) }

  func nextAtOnce() -> Element? {
    while !Task.isCancelled {
      // The request may have been cancelled since the values were decoded.
      let isMuted = reader.runEnd.isMuted
      let (element, isOver, _) = state.withLock { state in
        let dropped = isMuted ? state.dropValues() : []
        return (state.ready.popLast(), state.isOver, dropped)
      }
      if let element { return handedOut(element) }
      guard !isOver, readMore() else { return nil }
    }
    return nil
  }

  nonisolated(nonsending) func next() async -> Element? {
    while !Task.isCancelled {
      if let element = nextAtOnce() { return element }
      if state.withLock({ $0.isOver }) { return nil }
      // Only for waiting, because the operation leaves the actor of the loop.
      await withTaskCancellationHandler {
        await reader.signal.wait()
      } onCancel: {
        finish()
      }
    }
    finish()
    return nil
  }

  /// Decodes one chunk, because the request for the next one means that the loop has processed it. Returns false if
  /// there is none, or another task decodes; two loops over one stream share its chunks.
  private func readMore() -> Bool {
    guard var decoding = takeDecoding() else { return false }
    let (elements, isLast) = request.flow.fanout.take(reader, atMost: 1)
    // User code must not run under the lock.
    let values = reader.runEnd.isMuted ? [] : decoding.values(of: elements.compactMap(\.entry))
    let token = DataStreamRequest.CancellationToken(request: request, runEnd: reader.runEnd)
    var ready = values.map { Element(event: .stream($0), token: token) }
    if isLast { ready.append(Element(event: .complete(request.completion(at: reader.runEnd)), token: token)) }
    ready.reverse()
    let isAwaited = state.withLock { state in
      state.decoding = decoding
      if isLast { state.isComplete = true }
      if !state.isFinished { state.ready = ready + state.ready }
      defer { state.isAwaited = false }
      return state.isAwaited
    }
    if isLast { end() } else if isAwaited { reader.signal.wake() }
    return !elements.isEmpty || isLast
  }

  private func takeDecoding() -> StreamDecoding<Success, Failure>? {
    state.withLock { state in
      if state.decoding == nil { state.isAwaited = true }
      return state.decoding.take()
    }
  }

  private func handedOut(_ element: Element) -> Element {
    if case .stream(let value) = element.event { request.notifyParsed(value) }
    if case .stream(.failure) = element.event, request.automaticallyCancelOnStreamError {
      element.token.cancel()
      _ = state.withLock { $0.dropValues() }
    }
    return element
  }

  func finish() {
    let (isFirst, _) = state.withLock { state in
      defer { state.isFinished = true }
      return (!state.isFinished && !state.isComplete, replace(&state.ready, with: []))
    }
    guard isFirst else { return }
    if cancels, !reader.runEnd.isReached { request.cancel() }
    end()
  }

  private func end() {
    request.flow.fanout.remove(reader)
    request.core.remove(reader)
    reader.signal.end()
  }
}

/// The reader of a stream request for a loop: it wakes the waiting tasks.
final class LoopReader: MailboxConsumer, EventSink {
  let runEnd: RunEnd
  let signal = TaskSignal()
  private let fanout: Fanout<StreamElement>

  init(_ flow: StreamFlow) {
    runEnd = RunEnd(flow.delivery)
    fanout = flow.fanout
  }

  func wake(_ fanout: Fanout<StreamElement>) { signal.wake() }

  func deliver() {
    runEnd.reach()
    fanout.leave(runEnd)
  }
}

/// Wakes the tasks that wait for something.
final class TaskSignal: Sendable {
  private struct State {
    var isWoken = false
    /// Whether no task is waiting any longer.
    var isOver = false
    /// Usually one, because a stream is created for one loop.
    var waiters: [CheckedContinuation<Void, Never>] = []
  }

  /// The tasks that wait, for them and the threads that wake them.
  private let state = Mutex(State())

  /// Wakes all waiting tasks. Without any, the next wait returns at once.
  func wake() {
    take { if $0.waiters.isEmpty { $0.isWoken = true } }
  }

  /// Wakes all waiting tasks; later waits return at once.
  func end() {
    take { $0.isOver = true }
  }

  private func take(_ change: (inout sending State) -> Void) {
    let waiters = state.withLock { state in
      change(&state)
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.resume() }
  }

  /// Returns when there may be something.
  nonisolated(nonsending) func wait() async {
    await withCheckedContinuation { continuation in
      let mayGoOn = state.withLock { state in
        guard !state.isWoken, !state.isOver else {
          state.isWoken = false
          return true
        }
        state.waiters.append(continuation)
        return false
      }
      if mayGoOn { continuation.resume() }
    }
  }
}
