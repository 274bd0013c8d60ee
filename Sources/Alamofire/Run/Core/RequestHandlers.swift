import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// The validators of a request and the handlers of its response, each in the order in which they were added.
///
/// The handlers of heads, created requests and progress, which few requests have, are in ``AddedObservers``.
struct RequestHandlers: Sendable {
  private(set) var validators: [Validator] = []
  private var sinks: ShortList<any ResponseSink> = []
  /// The number of handlers whose response was created since the last attempt.
  private var servedCount = 0
  /// The ends of readers that have left before the end of the run, as long as something can still ask for them.
  private var left: [ReaderEnd] = []

  private struct ReaderEnd: Sendable {
    weak let runEnd: RunEnd?
  }

  /// Whether a handler waits for the response.
  var hasSinks: Bool { !sinks.isEmpty }

  mutating func add(_ validator: Validator) { validators.append(validator) }

  mutating func add(_ sink: any ResponseSink) { sinks.append(sink) }

  /// Removes a reader that takes no more events. Returns it, to be released outside the lock; `nil` if it is not there.
  mutating func remove(_ reader: any EventSink) -> (any ResponseSink)? {
    guard let index = sinks.firstIndex(where: { $0 === reader }) else { return nil }
    if index < servedCount { servedCount -= 1 }
    left.removeAll { $0.runEnd == nil }
    left.append(ReaderEnd(runEnd: reader.runEnd))
    return sinks.remove(at: index)
  }

  /// Returns the ends of the readers that have left, and removes them.
  mutating func takeLeft() -> [RunEnd] {
    defer { left = [] }
    return left.compactMap(\.runEnd)
  }

  /// Whether a handler waits for its response.
  var hasNext: Bool { servedCount < sinks.count }

  /// Returns the next handler whose response has to be created; `nil` if each has one.
  mutating func next() -> (any ResponseSink)? {
    guard servedCount < sinks.count else { return nil }
    defer { servedCount += 1 }
    return sinks[servedCount]
  }

  /// The handlers whose response was created since the last attempt, in their order.
  var served: ShortList<any ResponseSink> { ShortList(sinks.prefix(servedCount)) }

  /// Begins with the first handler again, because another attempt follows.
  mutating func restart() { servedCount = 0 }

  /// Returns all handlers of responses and removes them.
  mutating func takeServed() -> ShortList<any ResponseSink> {
    defer {
      sinks = []
      servedCount = 0
    }
    return sinks
  }
}

/// The end of a run: the handlers that were served, and the ones to notify outside the lock.
private struct RunResult: Sendable {
  let served: ShortList<any ResponseSink>
  /// The ends of readers that have left before.
  let left: [RunEnd]
  let listeners: RequestListeners?
  /// A body whose iteration ends.
  let source: InputStreamSource?
  /// A handler that waits for the cURL command of a request that was never created.
  let commandHandler: RequestWatchers.Handler<(any RunOwner)?>?
}

extension RequestCore.CoreState {
  /// Ends the run of the request, because every handler has its response. The handlers are called next, outside the
  /// lock.
  ///
  /// - Parameter isOnLoop: Whether the run is on the loop's thread. Otherwise its handlers are called until
  ///   ``RequestCore/endDelivery(of:)``.
  fileprivate mutating func endRun(isOnLoop: Bool) -> RunResult {
    let (served, left) = (handlers.takeServed(), handlers.takeLeft())
    let source = bodies.read { $0.streamSource }
    var listeners: RequestListeners?
    var commandHandler: RequestWatchers.Handler<(any RunOwner)?>?
    if observed.added.isChanged {
      listeners = observed.added.value.listeners.take()
      if results.request == nil { commandHandler = observed.added.value.watchers.creationFailed() }
    }
    run.end()
    endAttempt()
    lifecycle.ended()
    // A run for late handlers begins in a later turn of the loop, when the handlers of this turn have been called.
    if !isOnLoop { lifecycle.beginDelivery() }
    return RunResult(
      served: served, left: left, listeners: listeners, source: source, commandHandler: commandHandler)
  }
}

extension RequestCore {
  func add(_ validator: Validator) { state.withLock { $0.handlers.add(validator) } }

  /// Removes a reader that takes no more events, so that a request which goes on does not retain it.
  func remove(_ reader: any EventSink) {
    let removed = state.withLock { $0.handlers.remove(reader) }
    // Released outside the lock.
    _ = removed
  }

  /// Whether a handler waits for its response.
  var hasPendingSinks: Bool { state.withLock { $0.handlers.hasNext } }

  /// The next step of a run that serves its handlers.
  enum NextSink: Sendable {
    /// The response of a handler has to be created.
    case sink(any ResponseSink)
    /// Monitors have yet to be notified of a change of the state.
    case pendingChange
    /// The run has ended, with these handlers.
    case ended(ShortList<any ResponseSink>)
  }

  /// Notes that the handlers of a run that has ended are called, and serves those that were added since then. Not for a
  /// run on the loop's thread, which begins no delivery.
  func endDelivery(of request: any RunOwner) {
    let action = state.withLock { $0.lifecycle.endDelivery() }
    perform(action, for: request)
  }

  /// Returns the next handler whose response has to be created. Without one, ends the run and returns its handlers.
  ///
  /// - Parameter isOnLoop: Whether the run is on the loop's thread. Otherwise ``endDelivery(of:)`` has to follow its
  ///   end.
  func nextSink(isOnLoop: Bool) -> NextSink {
    let (next, ended) = state.withLock { state -> (NextSink, RunResult?) in
      if let sink = state.handlers.next() { return (.sink(sink), nil) }
      // Another thread may change the state after the gate. Otherwise monitors could be notified of the end first.
      if state.observed.hasPendingChanges { return (.pendingChange, nil) }
      let ended = state.endRun(isOnLoop: isOnLoop)
      return (.ended(ended.served), ended)
    }
    guard let ended else { return next }
    for end in ended.left { end.reach() }
    ended.source?.endSequence()
    ended.listeners?.finish()
    if let command = ended.commandHandler {
      command.queue.async { command.closure(nil) }
    }
    return next
  }
}

/// The asynchronous sequences of a request. Each of them receives everything, and so does each closure; all end with
/// the request.
struct RequestListeners: Sendable {
  typealias Continuation<Element: Sendable> = AsyncStream<Element>.Continuation

  var uploads: [Continuation<Progress>] = []
  var downloads: [Continuation<Progress>] = []
  var requests: [Continuation<URLRequest>] = []
  var tasks: [Continuation<URLSessionTask>] = []
  /// The continuations for each redaction; `nil` is the command with its secrets.
  var commands: [Redaction?: [Continuation<String>]] = [:]
  var responses: [Continuation<HTTPURLResponse>] = []

  func finish() {
    for continuation in uploads + downloads { continuation.finish() }
    for continuation in requests { continuation.finish() }
    for continuation in tasks { continuation.finish() }
    for continuation in commands.values.joined() { continuation.finish() }
    for continuation in responses { continuation.finish() }
  }

  subscript(commands redaction: Redaction?) -> [Continuation<String>] {
    get { commands[redaction] ?? [] }
    set { commands[redaction] = newValue.isEmpty ? nil : newValue }
  }

  /// The number of sequences; for tests.
  var count: Int {
    uploads.count + downloads.count + requests.count + tasks.count + commands.values.joined().count
      + responses.count
  }
}

extension RequestCore.CoreState {
  /// Adds the continuation of a sequence, unless the request has ended.
  fileprivate mutating func add<Element: Sendable>(
    _ continuation: AsyncStream<Element>.Continuation, to place: ListenerPath<Element>
  ) {
    guard lifecycle.run != .ended else { return }
    var listeners = observed.added.value.listeners ?? RequestListeners()
    listeners[keyPath: place].append(continuation)
    observed.added.value.listeners = listeners
  }
}

extension RequestCore {
  /// Adds an asynchronous sequence, beginning with the current element, if there is one. The sequence of a request that
  /// has ended ends at once. A sequence that was left is removed.
  ///
  /// The current element is yielded before the sequence is added, so that neither a newer element nor the end precedes
  /// it. If there is another one by then, it follows.
  ///
  /// - Parameters:
  ///   - number: Returns the number of the current element; 0 if there is none.
  ///   - current: Makes the current element, outside the lock.
  func listen<Element: Sendable>(
    _ continuation: AsyncStream<Element>.Continuation, _ place: ListenerPath<Element>,
    of request: any RunOwner, after number: (CoreState) -> Int = { _ in 0 }, current: () -> Element? = { nil }
  ) {
    continuation.onTermination = { [weak self] _ in self?.remove(continuation, from: place) }
    var yielded = 0
    var next = state.withLock { number($0) }
    while true {
      while next != yielded {
        let element = current()
        let present = state.withLock { number($0) }
        // Otherwise the element may be a newer one already.
        if present == next {
          if let element { continuation.yield(element) }
          yielded = next
        }
        next = present
      }
      let run = state.withLock { state -> RequestLifecycle.Run? in
        next = number(state)
        guard next == yielded else { return nil }
        state.add(continuation, to: place)
        return state.lifecycle.run
      }
      switch run {
      case nil: continue
      case .notStarted: awaitStart(of: request)
      case .gated, .running: break
      case .ended: continuation.finish()
      }
      return
    }
  }

  private func remove<Element: Sendable>(
    _ continuation: AsyncStream<Element>.Continuation, from place: ListenerPath<Element>
  ) {
    state.withLock { state in
      guard state.observed.added.isChanged else { return }
      state.observed.added.value.listeners?[keyPath: place].removeAll { $0 == continuation }
    }
  }

  /// The number of sequences that have not ended; for tests.
  var listenerCount: Int { state.withLock { $0.observed.added.read { $0.listeners?.count } } ?? 0 }
}

/// The place of a kind of sequence among all of a request.
typealias ListenerPath<Element: Sendable> =
  any WritableKeyPath<RequestListeners, [AsyncStream<Element>.Continuation]> & Sendable

/// The handlers that wait for a `URLRequest` to be created.
struct RequestWatchers: Sendable {
  typealias Handler<Value> = (queue: DispatchQueue, closure: @Sendable (Value) -> Void)

  /// The handlers to call, outside the lock.
  struct Notices {
    let request: Handler<URLRequest>?
    let cURL: Handler<(any RunOwner)?>?
  }

  var requestHandler: Handler<URLRequest>?
  /// Called without a request if none was created.
  var cURLHandler: Handler<(any RunOwner)?>?
  /// Whether the request could not be created, so that handlers need not wait for it.
  private(set) var hasFailed = false

  mutating func requestCreated() -> Notices? {
    guard requestHandler != nil || cURLHandler != nil else { return nil }
    defer { cURLHandler = nil }
    return Notices(request: requestHandler, cURL: cURLHandler)
  }

  mutating func creationFailed() -> Handler<(any RunOwner)?>? {
    hasFailed = true
    defer { cURLHandler = nil }
    return cURLHandler
  }
}
