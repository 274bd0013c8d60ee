import HTTPWire
import Synchronization

/// The elements of an asynchronous sequence, made on demand.
protocol StreamSource<Element>: AnyObject, Sendable {
  associatedtype Element: Sendable
  /// Called when iteration begins.
  func begin()
  /// Returns the next element; `nil` at the end, and if the surrounding task is cancelled.
  nonisolated(nonsending) func next() async -> Element?
  /// Ends the elements. Does nothing the second time.
  func finish()
}

/// The events of a stream request for a loop. Values are made on demand, so that few are held, however slow the loop
/// is.
///
/// The stream and its iterator own it; the request holds the ``PullReader``.
final class PulledStream<Success: Sendable, Failure: Error>: StreamSource {
  typealias Element = DataStreamRequest.Stream<Success, Failure>

  private struct State {
    /// `nil` while a task decodes.
    var decoding: StreamDecoding<Success, Failure>?
    /// Whether another task waits for the decoding.
    var isAwaited = false
    /// The decoded events, the last one first.
    var ready: [Element] = []
    /// Whether the completion has been made.
    var isComplete = false
    /// Whether the iterator was released or its task cancelled.
    var isFinished = false
  }

  private let request: DataStreamRequest
  private let reader: PullReader
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
    reader = request.flow.add(.pulling, holdsBack: false) { PullReader(request.flow, id: $0) }
    request.core.add(reader, for: request)
  }

  deinit { finish() }

  func begin() { request.flow.beginPulling(reader.id) }

  nonisolated(nonsending) func next() async -> Element? {
    while !Task.isCancelled {
      // The request may have been cancelled since the values were decoded.
      let isMuted = request.flow.isMuted(reader.id)
      let (element, isOver) = state.withLock { state in
        if isMuted { state.ready.removeAll { $0.completion == nil } }
        let element = state.ready.popLast()
        return (element, element == nil && (state.isComplete || state.isFinished))
      }
      if let element { return handedOut(element) }
      if isOver { return nil }
      if readMore() { continue }
      // Only for waiting, because the operation leaves the actor of the loop.
      await withTaskCancellationHandler {
        await reader.wait()
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
    let (entries, isLast, _) = request.flow.read(reader.id, atMost: 1)
    // User code must not run under the lock.
    let values = decoding.values(of: entries)
    let token = DataStreamRequest.CancellationToken(
      request: request, reader: reader.id, runEnd: reader.runEnd)
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
    if isLast { reader.end() } else if isAwaited { reader.wake() }
    return !entries.isEmpty || isLast
  }

  private func takeDecoding() -> StreamDecoding<Success, Failure>? {
    state.withLock { state in
      if state.decoding == nil { state.isAwaited = true }
      return state.decoding.take()
    }
  }

  private func handedOut(_ element: Element) -> Element {
    if case .stream(.failure) = element.event, request.automaticallyCancelOnStreamError {
      element.token.cancel()
      state.withLock { $0.ready.removeAll() }
    }
    return element
  }

  func finish() {
    let isFirst = state.withLock { state in
      defer {
        state.isFinished = true
        state.ready = []
      }
      return !state.isFinished && !state.isComplete
    }
    guard isFirst else { return }
    if cancels, !reader.runEnd.isReached { request.cancel() }
    request.flow.remove(reader.id)
    reader.end()
  }
}

/// The reader of a stream request for a loop: it wakes the waiting tasks.
final class PullReader: StreamSink {
  private struct State {
    var isWoken = false
    /// Whether the stream is over, so that no task waits any more.
    var isOver = false
    var waiter: CheckedContinuation<Void, Never>?
    /// Continuations of further tasks; mostly empty, because a stream is made for one loop.
    var others: [CheckedContinuation<Void, Never>] = []
  }

  let id: Int
  let flow: StreamFlow
  let runEnd = RunEnd()
  /// The task that waits for bytes, for the loop and readers.
  private let state = Mutex(State())

  init(_ flow: StreamFlow, id: Int) {
    self.flow = flow
    self.id = id
  }

  func wake() {
    let (waiter, others) = take { state in
      if state.waiter == nil { state.isWoken = true }
    }
    waiter?.resume()
    for other in others { other.resume() }
  }

  /// Wakes all waiting tasks; later waits return at once.
  func end() {
    let (waiter, others) = take { $0.isOver = true }
    waiter?.resume()
    for other in others { other.resume() }
  }

  private func take(
    _ change: (inout sending State) -> Void
  ) -> (CheckedContinuation<Void, Never>?, [CheckedContinuation<Void, Never>]) {
    state.withLock { state in
      change(&state)
      defer {
        state.waiter = nil
        state.others = []
      }
      return (state.waiter, state.others)
    }
  }

  /// Returns when there may be something to read.
  nonisolated(nonsending) func wait() async {
    await withCheckedContinuation { continuation in
      let mayGoOn = state.withLock { state in
        guard !state.isWoken, !state.isOver else {
          state.isWoken = false
          return true
        }
        if state.waiter == nil {
          state.waiter = continuation
        } else {
          state.others.append(continuation)
        }
        return false
      }
      if mayGoOn { continuation.resume() }
    }
  }
}
