public import Foundation
public import FoundationNetworking
import HTTPWire
import Synchronization

/// What a ``Request`` may ask of whoever made it. ``Session`` conforms; a request reaches its own by
/// ``Request/delegate``.
///
/// ```swift
/// request.delegate?.retryResult(for: request, dueTo: .explicitlyCancelled) { print($0) }
/// ```
@preconcurrency
public protocol RequestDelegate: AnyObject, Sendable {
  /// The configuration that requests are sent with.
  var sessionConfiguration: URLSessionConfiguration { get }

  /// Whether adding the first response handler resumes a request that does not say itself.
  var startImmediately: Bool { get }

  /// Begins to make a request that has not begun: it is converted and adapted, and waits to be resumed before it
  /// is sent. Does nothing for one that has begun or ended.
  func readyToPerform(request: Request)

  /// Removes what is left of a request that is over, such as the file that was made of its body. Does nothing for
  /// one that still runs, and nothing the second time.
  func cleanup(after request: Request)

  /// Asks who would decide about a failure of `request`: retriers of the session, then those of the request.
  ///
  /// - Parameters:
  ///   - request: The request that has failed.
  ///   - error: Why.
  ///   - completion: Called once, on ``Request/underlyingQueue``, with the first answer other than
  ///     `.doNotRetry`. An error of a retrier comes as `AFError.requestRetryFailed`. A request that was
  ///     cancelled is not retried, and its retriers are not asked.
  @preconcurrency
  func retryResult(
    for request: Request, dueTo error: AFError, completion: @escaping @Sendable (RetryResult) -> Void)

  /// Sends a request again.
  ///
  /// One whose retrier is being asked is answered for: the retrier's own answer, if it still comes, does not count.
  /// One that is finished is sent anew: response handlers that are added once it is sent get the new outcome,
  /// those that were served are not called again. Nothing happens to one that was cancelled, to one whose session
  /// is gone, and to one that has not begun or is on its way.
  ///
  /// - Parameters:
  ///   - request: The request; it is held until then.
  ///   - timeDelay: After how many seconds; `nil` is at once.
  func retryRequest(_ request: Request, withDelay timeDelay: TimeInterval?)
}

extension Session: RequestDelegate {
  /// The same as ``startRequestsImmediately``.
  public var startImmediately: Bool { startRequestsImmediately }

  /// Begins to make a request of this session that has not begun, as ``RequestSetup/eager`` does at its creation.
  public func readyToPerform(request: Request) {
    request.core.setUp(request, .eager)
  }

  /// Removes the file that was made of the body of a request that is over. Its own end has done so already, and
  /// the session holds no request longer than it runs.
  public func cleanup(after request: Request) {
    guard request.core.state.withLock({ $0.lifecycle.run == .ended }) else { return }
    request.core.removeUploadedFile()
  }

  /// Asks the retriers of the session and of the request; see ``RequestDelegate``.
  @preconcurrency
  public func retryResult(
    for request: Request, dueTo error: AFError, completion: @escaping @Sendable (RetryResult) -> Void
  ) {
    Task {
      var result = await request.core.retriersAnswer(to: error, of: request)
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
    guard let timeDelay, timeDelay > 0 else { return request.core.sendAgain(request) }
    Task {
      // Nobody cancels this task.
      try? await Task.sleep(for: .retryDelay(timeDelay))
      request.core.sendAgain(request)
    }
  }
}

extension Request {
  /// Who made the request: its ``Session``, as long as it lives.
  public var delegate: (any RequestDelegate)? { core.session.owner }
}

extension RequestCore {
  /// Answers for the retrier that is being asked, or sends a request anew that is finished.
  fileprivate func sendAgain(_ request: Request) {
    if let answer = state.withLock({ $0.extras.retryAnswer }) { return answer() }
    guard session.owner != nil else { return }
    guard prepareRetry(of: request, because: .demand) else { return }
    perform(.start, for: request)
  }
}
