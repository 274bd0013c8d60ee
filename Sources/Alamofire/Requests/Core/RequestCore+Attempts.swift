import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// The members of the core that attempts read and write.
extension RequestCore {
  var error: AFError? { state.withLock { $0.error } }

  var isCancelled: Bool { state.withLock { $0.lifecycle.state == .cancelled } }

  /// Whether the session ended before the request.
  var isAbandoned: Bool { state.withLock { $0.lifecycle.isAbandoned } }

  /// Whether the user wants the request to be sent as it is.
  var maySend: Bool { state.withLock { $0.lifecycle.state == .resumed && $0.error == nil } }

  /// Keeps the first error; a later one never takes its place.
  func fail(_ error: AFError) {
    state.withLock { state in
      if state.error == nil { state.error = error }
    }
  }

  /// Waits until the user has resumed the request; returns at once if that is so, or if it was cancelled.
  nonisolated(nonsending) func untilResumed() async {
    guard !state.withLock({ $0.lifecycle.readyToSend() }) else { return }
    await withCheckedContinuation { continuation in
      // Resumed or cancelled since: there is nothing to wait for.
      let isReady = state.withLock { state in
        if state.lifecycle.run == .gated, state.lifecycle.mayAttemptAgain {
          state.gate = continuation
          return false
        }
        return true
      }
      if isReady { continuation.resume() }
    }
  }

  /// Waits until a request without observers has been resumed; meanwhile its task can be seen. Returns false, and does
  /// not wait, if it has observers of its own, which have to be told of the task before.
  nonisolated(nonsending) func untilResumedUnobserved() async -> Bool {
    let mayWait = state.withLock { state -> Bool? in
      guard state.lifecycle.state == .initialized || state.lifecycle.state == .suspended else { return nil }
      guard !state.hasTaskObservers else { return false }
      state.attempts.begin()
      // Whoever is added from now on looks at the task by itself.
      state.attempts.isShown = true
      return true
    }
    guard let mayWait else { return true }
    if mayWait { await untilResumed() }
    return mayWait
  }

  /// Keeps the result of an attempt: its response, or the metrics and the part of the response before a failure.
  func keep(_ exchange: Exchange, body: Data?) {
    state.withLock { state in
      state.exchange = exchange
      state.data = body
    }
  }

  /// Makes the metrics of an attempt that ended before anything was handed to the transport.
  func endedUnsent() {
    state.withLock { state in
      guard state.exchange == nil else { return }
      state.exchange = Exchange(url: state.request?.url, head: nil, metrics: TaskMetrics(from: Date()))
    }
  }

  var outcome: RequestOutcome {
    state.withLock { state in
      var outcome = RequestOutcome(
        request: state.request, exchange: state.exchange, data: state.collected, error: state.error)
      if state.hasExtras {
        outcome.fileURL = state.extras.fileURL
        outcome.resumeData = state.extras.resumeData
      }
      return outcome
    }
  }

  /// The next handler whose response has to be made, or `nil` when all have one; then the request
  /// has ended, and its handlers are taken from it.
  func nextSink() -> (sink: (any ResponseSink)?, served: ShortList<any ResponseSink>) {
    let (sink, served, listeners, command) = takeSink()
    listeners?.finish()
    if let command { command.queue.async { command.closure(Request.missingCommand) } }
    return (sink, served)
  }

  private func takeSink() -> (
    (any ResponseSink)?, ShortList<any ResponseSink>, RequestListeners?, RequestWatchers.Handler<String>?
  ) {
    state.withLock { state in
      if state.serializedSinks < state.sinks.count {
        defer { state.serializedSinks += 1 }
        return (state.sinks[state.serializedSinks], [], nil, nil)
      }
      defer {
        if state.hasExtras { state.extras.listeners = nil }
        state.sinks = []
        state.serializedSinks = 0
        state.task = nil
        state.endings += 1
        state.endAttempt()
        state.lifecycle.ended()
      }
      guard state.hasExtras else { return (nil, state.sinks, nil, nil) }
      // A request that ends before it was made will have no command.
      let command = state.request == nil ? state.extras.watchers.creationFailed() : nil
      return (nil, state.sinks, state.extras.listeners, command)
    }
  }
}

extension RequestCore.State {
  /// Whether the request has handlers, sequences or monitors of its own that hear of its tasks.
  var hasTaskObservers: Bool {
    guard hasExtras else { return false }
    let hasMonitors = !extras.monitors.isEmpty || !extras.transferMonitors.isEmpty
    return hasMonitors || extras.taskHandler != nil || extras.listeners?.tasks.isEmpty == false
  }
}

extension RequestCore: TransferObserver {
  package var cancelsByControl: Bool { true }

  package func transferBegan(_ control: any TransferControl) -> TransferStart {
    state.withLock { state in
      state.control = control
      // Cancelled, or left by its session, since the attempt last looked.
      if state.lifecycle.state == .cancelled || state.error != nil { return .refuse }
      return state.lifecycle.state == .suspended ? .hold : .go
    }
  }

  package func transferEnded() {
    state.withLock { $0.control = nil }
  }

  package func bytesMoved(_ count: ByteCount) {
    guard has(.progress) || isWatched else { return }
    var count = count
    if let offset = download?.offset, offset > 0 {
      count.received += offset
      if count.expectedToReceive >= 0 { count.expectedToReceive += offset }
    }
    let (notices, before) = state.withLock { state in
      let before = state.extras.progress.count
      let listeners = state.extras.listeners
      return (state.extras.progress.moved(count, listeners), before)
    }
    for notice in notices { notice.deliver() }
    if isWatched { tellBytes(from: before, to: count) }
  }

  package func headReceived(_ head: ResponseHead) -> HeadDisposition {
    storeCookies(of: head)
    return headShown(head)
  }

  /// The same for a head that has not just come from a server: its cookies are those of another time.
  func headShown(_ head: ResponseHead) -> HeadDisposition {
    guard has([.head, .progress]) || hasBodySink || isWatched else { return .proceed }
    return headArrived(head)
  }
}
