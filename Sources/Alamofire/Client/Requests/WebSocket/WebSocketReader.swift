import Foundation
import HTTPWire
import Synchronization

extension WebSocketNotice {
  /// Whether the event is delivered after a cancellation.
  var isCompletion: Bool {
    if case .completed = self { true } else { false }
  }
}

/// Makes the values of a handler or a sequence from events; `nil` for an event that it ignores.
struct WebSocketReading<Element: Sendable>: Sendable {
  let element: @Sendable (WebSocketNotice, WebSocketEventSource) -> Element?
}

/// The request of an event, and the run to which the event belongs.
struct WebSocketEventSource: Sendable {
  let request: WebSocketRequest
  let runEnd: RunEnd
}

/// A handler of a WebSocket request. It is called on its queue, with one event at a time, in their order.
///
/// Events that arrive together are one work item of the queue. Each item handles only the events of its own turn. So
/// the completion of a sent message, which comes before the answer, also runs before the answer is handled.
final class WebSocketHandler<Element: Sendable>: WebSocketReader {
  private struct Batch {
    let arrival: WebSocketArrival
    /// Retains the request until the events are handled, because other owners may release it at its end.
    let source: WebSocketEventSource
  }

  private struct State {
    /// The events that are not handled yet, with the ones that arrived together as one element.
    var batches = Backlog<Batch>()
    /// Whether a thread handles events. The caller's queue may be concurrent.
    var isBusy = false
    /// The number of batches left to another thread, which was busy when their work item ran.
    var postponedCount = 0
  }

  let runEnd: RunEnd
  /// Weak, because the request holds this object.
  private weak let request: WebSocketRequest?
  private let queue: DispatchQueue
  private let reading: WebSocketReading<Element>
  private let handler: @Sendable (Element) -> Void
  /// The events that the queue has not handled, for the loop and handlers.
  private let state = Mutex(State())

  init(
    _ request: WebSocketRequest, queue: DispatchQueue, _ reading: WebSocketReading<Element>,
    handler: @escaping @Sendable (Element) -> Void
  ) {
    self.request = request
    runEnd = RunEnd(request.flow.delivery)
    self.queue = queue
    self.reading = reading
    self.handler = handler
  }

  func receive(_ arrival: WebSocketArrival) {
    guard let request else { return }
    let source = WebSocketEventSource(request: request, runEnd: runEnd)
    state.withLock { $0.batches.append(Batch(arrival: arrival, source: source), weight: 0) }
    queue.async { [self] in handleNext() }
  }

  private func handleNext() {
    var batch = state.withLock { state -> Batch? in
      guard !state.isBusy else {
        state.postponedCount += 1
        return nil
      }
      state.isBusy = true
      return state.batches.takeFirst()
    }
    while let current = batch {
      handle(current)
      // Released outside the lock, because the connection may continue to read.
      batch = nil
      batch = state.withLock { state in
        guard state.postponedCount > 0 else {
          state.isBusy = false
          return nil
        }
        state.postponedCount -= 1
        return state.batches.takeFirst()
      }
    }
  }

  private func handle(_ batch: Batch) {
    switch batch.arrival {
    case .other(let notice): handle(notice, batch.source)
    case .messages(var messages):
      while let message = messages.takeFirst() { handle(.message(message), batch.source) }
    }
  }

  private func handle(_ notice: WebSocketNotice, _ source: WebSocketEventSource) {
    guard notice.isCompletion || !source.runEnd.isMuted else { return }
    if let element = reading.element(notice, source) { handler(element) }
  }
}

/// The events of a WebSocket request that a sequence has not read yet.
///
/// After a cancellation they are dropped when they are read.
final class WebSocketMailbox: WebSocketReader {
  /// An event that was taken.
  struct Item: Sendable {
    let notice: WebSocketNotice
    /// The receipt of a message that was the last one to be taken of those that arrived together. Its owner releases it
    /// outside of the lock, because the connection may continue to read.
    let receipt: WebSocketReceipt?
  }

  fileprivate struct State {
    var arrivals = Backlog<WebSocketArrival>()
    /// The messages that are being taken, before all arrivals.
    var messages: WebSocketMessages?
    var waiters: [CheckedContinuation<Void, Never>] = []
    var isFinished = false
  }

  let runEnd: RunEnd
  /// The events that no loop has read, for the loop and readers.
  private let state = Mutex(State())

  init(_ delivery: EventDelivery) { runEnd = RunEnd(delivery) }

  func receive(_ arrival: WebSocketArrival) {
    let waiters = state.withLock { state in
      defer { state.waiters = [] }
      if !state.isFinished { state.arrivals.append(arrival, weight: 0) }
      return state.waiters
    }
    for waiter in waiters { waiter.resume() }
  }

  /// Returns the next event, if there is one already.
  func nextAtOnce() -> Item? { state.withLock { $0.takeFirst() } }

  /// Returns the next event; waits for it. `nil` after ``finish()``.
  nonisolated(nonsending) func next() async -> Item? {
    while true {
      let (item, isFinished) = state.withLock { ($0.takeFirst(), $0.isFinished) }
      if item != nil || isFinished { return item }
      await wait()
    }
  }

  private nonisolated(nonsending) func wait() async {
    await withCheckedContinuation { continuation in
      let mayContinue = state.withLock { state in
        guard state.isEmpty, !state.isFinished else { return true }
        state.waiters.append(continuation)
        return false
      }
      if mayContinue { continuation.resume() }
    }
  }

  /// Drops all events. Returns whether this is the first call.
  @discardableResult
  func finish() -> Bool {
    let (isFirst, waiters, dropped) = state.withLock { state in
      defer {
        state.isFinished = true
        state.waiters = []
        state.arrivals = Backlog()
        state.messages = nil
      }
      return (!state.isFinished, state.waiters, (state.arrivals, state.messages))
    }
    for waiter in waiters { waiter.resume() }
    // Released outside the lock, because the connection may continue to read.
    _ = dropped
    return isFirst
  }
}

extension WebSocketMailbox.State {
  fileprivate var isEmpty: Bool { messages == nil && arrivals.isEmpty }

  fileprivate mutating func takeFirst() -> WebSocketMailbox.Item? {
    if messages == nil {
      switch arrivals.takeFirst() {
      case .messages(let arrived): messages = arrived
      case .other(let notice): return WebSocketMailbox.Item(notice: notice, receipt: nil)
      case nil: return nil
      }
    }
    guard let message = messages?.takeFirst() else { return nil }
    guard messages?.isEmpty == true else {
      return WebSocketMailbox.Item(notice: .message(message), receipt: nil)
    }
    return WebSocketMailbox.Item(notice: .message(message), receipt: messages.take()?.receipt)
  }
}

/// The events of a WebSocket request for a loop. The sequence and its iterator own it; the request holds the mailbox.
final class WebSocketEvents<Element: Sendable>: StreamSource {
  private let request: WebSocketRequest
  private let source: WebSocketEventSource
  private let mailbox: WebSocketMailbox
  private let reading: WebSocketReading<Element>
  private let cancels: Bool

  /// Makes the events of a request.
  ///
  /// - Parameter cancels: Whether the request is cancelled when the loop is left early.
  init(_ request: WebSocketRequest, _ reading: WebSocketReading<Element>, cancels: Bool) {
    self.request = request
    self.reading = reading
    self.cancels = cancels
    mailbox = WebSocketMailbox(request.flow.delivery)
    source = WebSocketEventSource(request: request, runEnd: mailbox.runEnd)
    request.add(mailbox)
  }

  deinit { finish() }

  func begin() {}

  func nextAtOnce() -> Element? {
    guard !Task.isCancelled, let item = mailbox.nextAtOnce() else { return nil }
    return element(of: item.notice)
  }

  nonisolated(nonsending) func next() async -> Element? {
    while !Task.isCancelled {
      if let element = nextAtOnce() { return element }
      let mailbox = mailbox
      let item = await withTaskCancellationHandler {
        await mailbox.next()
      } onCancel: {
        finish()
      }
      guard let item else { return nil }
      if let element = element(of: item.notice) { return element }
    }
    finish()
    return nil
  }

  /// Returns the element of an event; `nil` if the loop does not see the event.
  private func element(of notice: WebSocketNotice) -> Element? {
    guard notice.isCompletion || !mailbox.runEnd.isMuted else { return nil }
    if notice.isCompletion { mailbox.finish() }
    return reading.element(notice, source)
  }

  func finish() {
    guard mailbox.finish() else { return }
    request.flow.remove(mailbox)
    defer { request.core.remove(mailbox) }
    // A closing handshake that the caller has begun is not cut short.
    if cancels, !mailbox.runEnd.isReached, !request.isCancelled { request.cancel() }
  }
}
