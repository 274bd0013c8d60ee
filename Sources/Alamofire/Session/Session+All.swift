public import Foundation

// All requests of a session at once.
extension Session {
  /// Calls `action` on ``rootQueue`` with the requests that are running then.
  @preconcurrency
  public func withAllRequests(perform action: @escaping @Sendable (Set<Request>) -> Void) {
    let core = core
    rootQueue.async { action(Set(core.activeRequests)) }
  }

  /// Cancels the requests that are running and the streams of bytes that are not over, then calls `completion`.
  ///
  /// - Parameters:
  ///   - queue: The queue of `completion`. Default: the main queue.
  ///   - completion: Called once, when all have been cancelled; their handlers may still be to come.
  @preconcurrency
  public func cancelAllRequests(
    completingOnQueue queue: DispatchQueue = .main, completion: (@Sendable () -> Void)? = nil
  ) {
    for request in core.activeRequests { request.cancel() }
    for stream in core.activeStreams { stream.cancel() }
    if let completion { queue.async(execute: completion) }
  }
}

/// The session of the whole program: `Session.default`.
public let AF = Session.default
