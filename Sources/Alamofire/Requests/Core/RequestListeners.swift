import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// The asynchronous sequences of a request. Each of them receives everything, as does each closure beside them; all end
/// with the request.
struct RequestListeners: Sendable {
  typealias Continuation<Element: Sendable> = AsyncStream<Element>.Continuation

  var uploads: [Continuation<Progress>] = []
  var downloads: [Continuation<Progress>] = []
  var requests: [Continuation<URLRequest>] = []
  var tasks: [Continuation<URLSessionTask>] = []
  var commands: [Continuation<String>] = []
  var responses: [Continuation<HTTPURLResponse>] = []

  func finish() {
    for continuation in uploads + downloads { continuation.finish() }
    for continuation in requests { continuation.finish() }
    for continuation in tasks { continuation.finish() }
    for continuation in commands { continuation.finish() }
    for continuation in responses { continuation.finish() }
  }
}

extension RequestCore {
  /// Adds an asynchronous sequence. The sequence receives the element that `current` makes of the present state,
  /// outside the lock. The sequence of a request that has ended ends at once.
  func listen<Element: Sendable, Present>(
    _ continuation: AsyncStream<Element>.Continuation,
    _ place: any WritableKeyPath<RequestListeners, [AsyncStream<Element>.Continuation]> & Sendable,
    of request: Request, to present: (State) -> Present, current: (Present) -> Element?
  ) {
    let (present, run) = state.withLock { state in
      let isOver = state.lifecycle.run == .ended
      if !isOver {
        var listeners = state.extras.listeners ?? RequestListeners()
        listeners[keyPath: place].append(continuation)
        state.extras.listeners = listeners
      }
      return (present(state), state.lifecycle.run)
    }
    if let element = current(present) { continuation.yield(element) }
    switch run {
    case .notStarted: awaitStart(of: request)
    case .gated, .running: break
    case .ended: continuation.finish()
    }
  }
}
