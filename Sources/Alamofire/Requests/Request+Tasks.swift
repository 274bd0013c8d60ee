public import Foundation
public import FoundationNetworking
import Synchronization

extension Request {
  /// The tasks of all attempts that were sent, in their order. Resuming, suspending or cancelling the last one does
  /// so to the request.
  public var tasks: [URLSessionTask] { core.tasks(of: self) }
  /// The task of the first attempt.
  public var firstTask: URLSessionTask? { tasks.first }
  /// The task of the last attempt.
  public var lastTask: URLSessionTask? { tasks.last }
  /// The task of the last attempt; `nil` before the first is sent.
  public var task: URLSessionTask? { lastTask }

  /// The requests that were sent: the current requests of ``tasks``, after redirects.
  public var performedRequests: [URLRequest] { tasks.compactMap(\.currentRequest) }

  /// Calls `handler` on `queue` (default: main) with the task of the current attempt, if there is one. The handler is
  /// called again for each later attempt, before the request is sent. The last handler set is used.
  @preconcurrency
  @discardableResult
  public func onURLSessionTaskCreation(
    on queue: DispatchQueue = .main, perform handler: @escaping @Sendable (URLSessionTask) -> Void
  ) -> Self {
    let hasTask = core.state.withLock { state in
      state.observed.tasks.owner = self
      state.extras.taskHandler = (queue, handler)
      return state.observed.tasks.count > 0
    }
    core.add(.events)
    if hasTask, let current = task { queue.async { handler(current) } }
    return self
  }

  /// Enables events for the handlers and sequences of this request, and keeps the request for them.
  func watch(for interests: RequestInterests = [], _ change: (inout RequestCore.State) -> Void) {
    core.state.withLock { state in
      state.observed.tasks.owner = self
      change(&state)
    }
    core.add(interests.union(.events))
  }
}
