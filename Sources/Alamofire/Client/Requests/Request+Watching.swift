public import Foundation
public import FoundationNetworking
import Synchronization

extension Request {
  /// Calls `handler` on `queue` (default: main) with the request of the current attempt, if there is one, and with the
  /// request of each later attempt. The last handler set is used.
  @preconcurrency
  @discardableResult
  public func onURLRequestCreation(
    on queue: DispatchQueue = .main, perform handler: @escaping @Sendable (URLRequest) -> Void
  ) -> Self {
    let (current, _) = core.state.withLock { state in
      let earlier = replace(&state.observed.added.value.watchers.requestHandler, with: (queue, handler))
      return (state.results.request, earlier)
    }
    if let current { queue.async { handler(current) } }
    return self
  }

  /// Calls `handler` once with the cURL command of the request. If there is no `URLRequest` yet, the handler is called
  /// when it has been created, its creation has failed, or the request has ended without it. Only the last waiting
  /// handler is called.
  @preconcurrency
  @discardableResult
  public func cURLDescription(
    on queue: DispatchQueue, calling handler: @escaping @Sendable (String) -> Void
  ) -> Self {
    callOnCreation(on: queue, nil, handler)
  }

  /// Calls `handler` once with the cURL command of the request, its secrets masked; see
  /// ``cURLDescription(on:calling:)`` and ``cURLDescription(redacting:)``.
  ///
  /// ```swift
  /// request.cURLDescription(redacting: .standard, on: .global()) { print($0) }
  /// ```
  @discardableResult
  public func cURLDescription(
    redacting redaction: Redaction, on queue: DispatchQueue,
    calling handler: @escaping @Sendable (String) -> Void
  ) -> Self {
    callOnCreation(on: queue, redaction, handler)
  }

  /// Calls `handler` with the command when the `URLRequest` has been created or its creation has failed. Only the last
  /// waiting handler is called.
  private func callOnCreation(
    on queue: DispatchQueue, _ redaction: Redaction?, _ handler: @escaping @Sendable (String) -> Void
  ) -> Self {
    let report: @Sendable ((any RunOwner)?) -> Void = { request in
      handler(request?.command(redacting: redaction) ?? Request.missingCommand)
    }
    let (isReady, isUnstarted, _) = core.state.withLock { state in
      // A request that ended before its creation is not created any more.
      guard state.results.request == nil, state.lifecycle.run != .ended,
        !state.observed.added.value.watchers.hasFailed
      else { return (true, false, nil as RequestWatchers.Handler<(any RunOwner)?>?) }
      let earlier = replace(&state.observed.added.value.watchers.cURLHandler, with: (queue, report))
      return (false, state.lifecycle.run == .notStarted, earlier)
    }
    if isUnstarted { core.awaitStart(of: self) }
    if isReady {
      let request = self
      queue.async { report(request) }
    }
    return self
  }

  /// Calls `handler` once with the cURL command of the request, on ``underlyingQueue``.
  @preconcurrency
  @discardableResult
  public func cURLDescription(calling handler: @escaping @Sendable (String) -> Void) -> Self {
    cURLDescription(on: underlyingQueue, calling: handler)
  }

  /// Calls `handler` once with the cURL command of the request, its secrets masked, on ``underlyingQueue``.
  @discardableResult
  public func cURLDescription(
    redacting redaction: Redaction, calling handler: @escaping @Sendable (String) -> Void
  ) -> Self {
    cURLDescription(redacting: redaction, on: underlyingQueue, calling: handler)
  }
}

extension Request {
  /// The monitors of this request: its session's, then its own.
  public var eventMonitor: (any EventMonitor)? {
    let own = ownMonitors
    guard !own.isEmpty else { return session.eventMonitor }
    return CompositeEventMonitor(monitors: session.eventMonitor.monitors + own)
  }

  /// Adds a monitor of this request, which is called after the session's. It is called for later events of this request
  /// and its handlers, but not for the `urlSession(…)` events.
  @discardableResult
  public func eventMonitor(_ monitor: any EventMonitor) -> Self {
    additions.withLock { $0.value.monitors.append(monitor) }
    watch { $0.observed.hasMonitors = true }
    return self
  }

  /// Adds a monitor that receives the events of this request only, including the `urlSession(…)` events.
  ///
  /// Those events cost more than the others: a body is shown to the monitor as it arrives. Use
  /// ``eventMonitor(_:)`` if you do not need them. Callable from any thread, any number of times; events that have
  /// passed are not repeated.
  ///
  /// - Parameter monitor: Receives the events on its own queue.
  /// - Returns: The request.
  @discardableResult
  public func transferMonitor(_ monitor: any EventMonitor) -> Self {
    additions.withLock { $0.value.transferMonitors.append(monitor) }
    watch(for: .transfers) { $0.observed.hasMonitors = true }
    return self
  }
}

extension Request {
  /// The progress of the request body. Its total is −1 if the length is unknown. Each retry has a new object.
  ///
  /// Attach a parent before the first request of its tree is resumed; see ``downloadProgress``.
  public var uploadProgress: Progress { core.progress { $0.uploadProgress() } }

  /// The progress of the response body. Its total is −1 if the length is unknown, as for a chunked or an encoded
  /// body. Each retry has a new object.
  ///
  /// The objects can be the children of one parent, also if their requests belong to several sessions: they are changed
  /// one at a time. On Linux, `Progress.addChild(_:withPendingUnitCount:)` has no lock. Call it for all children before
  /// the first of their requests is resumed, which a handler of its response does, too.
  public var downloadProgress: Progress { core.progress { $0.downloadProgress() } }

  /// The closure and the queue last set by ``uploadProgress(queue:closure:)``.
  public var uploadProgressHandler: (handler: ProgressHandler, queue: DispatchQueue)? {
    core.state.withLock { $0.observed.added.value.progress.uploadHandler }.map { ($0.closure, $0.queue) }
  }

  /// The closure and the queue last set by ``downloadProgress(queue:closure:)``.
  public var downloadProgressHandler: (handler: ProgressHandler, queue: DispatchQueue)? {
    core.state.withLock { $0.observed.added.value.progress.downloadHandler }.map { ($0.closure, $0.queue) }
  }

  /// Calls `closure` on `queue` (default: main) while the request body is sent. The last closure set is used.
  @preconcurrency
  @discardableResult
  public func uploadProgress(queue: DispatchQueue = .main, closure: @escaping ProgressHandler) -> Self {
    core.watchProgress { replace(&$0.uploadHandler, with: (queue, closure)) }
    return self
  }

  /// Calls `closure` on `queue` (default: main) while the response body is received. The last closure set is used.
  @preconcurrency
  @discardableResult
  public func downloadProgress(queue: DispatchQueue = .main, closure: @escaping ProgressHandler) -> Self {
    core.watchProgress { replace(&$0.downloadHandler, with: (queue, closure)) }
    return self
  }
}
