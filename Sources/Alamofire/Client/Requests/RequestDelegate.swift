public import Foundation
public import FoundationNetworking
import HTTPWire
import Synchronization

/// The requirements of a ``Request`` on its creator. ``Session`` conforms; each request has its creator as its
/// ``Request/delegate``.
///
/// ```swift
/// request.delegate?.retryResult(for: request, dueTo: .explicitlyCancelled) { print($0) }
/// ```
@preconcurrency
public protocol RequestDelegate: AnyObject, Sendable {
  /// The configuration that requests are sent with.
  var sessionConfiguration: URLSessionConfiguration { get }

  /// Whether the first response handler resumes a request, unless the request has its own option.
  var startImmediately: Bool { get }

  /// Begins to make a request that has not begun: it is converted and adapted, and waits to be resumed before it
  /// is sent. Does nothing for a request that has begun or ended.
  func readyToPerform(request: Request)

  /// Removes the rest of a request that has ended, such as the file that was created from its body. Has no effect on a
  /// request that is still running, or when called again.
  func cleanup(after request: Request)

  /// Asks the session's retriers, then the request's, about a failure of `request`.
  ///
  /// - Parameters:
  ///   - request: The request that has failed.
  ///   - error: The failure.
  ///   - completion: Called once, on ``Request/underlyingQueue``, with the first answer other than `.doNotRetry`. An
  ///     error of a retrier is passed as `AFError.requestRetryFailed`. A request that was cancelled is not retried, and
  ///     its retriers are not asked.
  @preconcurrency
  func retryResult(
    for request: Request, dueTo error: AFError, completion: @escaping @Sendable (RetryResult) -> Void)

  /// Sends a request again.
  ///
  /// - If a retrier of the request is being asked, this call is its answer. A later answer of the retrier does not
  ///   count.
  /// - A finished request is sent again. Response handlers that are added from then on get the new outcome. Handlers
  ///   and loops over streams that were served keep the outcome that they received.
  /// - A request of a background session gets a new journal. If it is one of ``Session/restoredRequests`` and its
  ///   handlers have returned, a body that the session had stored no longer exists, and the request fails.
  /// - Has no effect on a request that was cancelled, has not begun or is in progress, or whose session has ended.
  ///
  /// - Parameters:
  ///   - request: The request, which is retained until then.
  ///   - timeDelay: The delay in seconds; `nil` for none.
  func retryRequest(_ request: Request, withDelay timeDelay: TimeInterval?)
}

extension Session: RequestDelegate {
  /// The value of ``startRequestsImmediately``.
  public var startImmediately: Bool { startRequestsImmediately }

  /// Begins to make a request of this session that has not begun, as ``RequestSetup/eager`` does at its creation.
  public func readyToPerform(request: Request) {
    request.core.setUp(request, isEager: true)
  }

  /// Removes the file that was created from the body of a request that has ended. The end of the request removes it as
  /// well, and the session retains no request longer than it runs.
  public func cleanup(after request: Request) {
    guard request.core.state.withLock({ $0.lifecycle.run == .ended }) else { return }
    request.core.kind.leftovers?()
  }

  /// Asks the retriers of the session and of the request; see ``RequestDelegate``.
  @preconcurrency
  public func retryResult(
    for request: Request, dueTo error: AFError, completion: @escaping @Sendable (RetryResult) -> Void
  ) {
    Task {
      var result = await request.retriersAnswer(to: error)
      if case .doNotRetryWithError(let retryError) = result {
        result = .doNotRetryWithError(
          AFError.requestRetryFailed(retryError: retryError, originalError: error))
      }
      let answer = result
      request.underlyingQueue.async { completion(answer) }
    }
  }

  /// Sends a request again; see ``RequestDelegate``.
  public func retryRequest(_ request: Request, withDelay timeDelay: TimeInterval?) {
    guard let timeDelay, timeDelay > 0 else { return request.sendAgain() }
    Task {
      // This task is never cancelled.
      try? await Task.sleep(for: .retryDelay(timeDelay))
      request.sendAgain()
    }
  }
}

extension Request {
  /// The ``Session`` of the request, as long as it exists.
  public var delegate: (any RequestDelegate)? { session.owner }
}

extension Request {
  /// Answers instead of the retrier that is being asked, or sends a finished request again.
  fileprivate func sendAgain() {
    if let answer = additions.withLock({ $0.value.retryAnswer }) { return answer() }
    // The outcome of a request stays if its session has ended.
    guard session.owner != nil, session.runs.registry.reasonOfEnd == nil else { return }
    guard core.prepareRetry(of: self, because: .demand) else { return }
    core.perform(.start, for: self)
  }
}
