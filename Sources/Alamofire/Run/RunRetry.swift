import Foundation
import Synchronization

// The failure of an attempt: retriers decide whether another attempt follows.
extension AttemptLoop {
  private var failure: AFError {
    guard let error else { preconditionFailure("an attempt failed without an error") }
    return error
  }

  /// Records the failure. That of a request which is made within the call of the factory is handled once the request is
  /// resumed.
  mutating func recordFailure() -> Outcome<AttemptLoop> {
    guard core.session.makesRequestsAtOnce else { return keepFailure() }
    return .gate(.resumed) { loop in loop.keepFailure() }
  }

  private mutating func keepFailure() -> Outcome<AttemptLoop> {
    core.fail(failure)
    core.makeMissingExchange()
    if core.observers.contains(.task) { core.tellCompleted(core.error, of: request) }
    error = core.error ?? failure
    return .done
  }

  mutating func askRetriers() -> Outcome<AttemptLoop> {
    guard core.mayBeRetried else { return .event(.retry(isWanted: false)) }
    // The readers have received a part of the body and could not tell that of another attempt apart.
    guard core.kind.mayBeginAgain(core) else { return refuseRetry() }
    return .task { [core, request, failure] in
      await core.retryDecision(about: failure, of: request)
    } then: { loop, decision in
      switch decision {
      case .retry: .event(.retry(isWanted: true))
      case .refuse(let error): loop.refuseRetry(with: error)
      }
    }
  }

  /// Ends the request without another attempt.
  ///
  /// - Parameter error: Replaces the failure.
  private mutating func refuseRetry(with error: AFError? = nil) -> Outcome<AttemptLoop> {
    if let error = error ?? core.kind.finalError(of: core) {
      if let sink = failedSink { sink.replaceFailure(with: error) } else { core.replaceError(error) }
    }
    failedSink = nil
    return .event(.retry(isWanted: false))
  }

  mutating func prepareRetry() -> Outcome<AttemptLoop> {
    guard core.prepareRetry(of: request, because: .retrier, failedSink: failedSink) else {
      failedSink = nil
      return .event(.failed)
    }
    (error, failedSink) = (nil, nil)
    return .done
  }

  /// Begins with the next request of a resumable upload. It is no retry, because nothing has failed.
  func prepareContinuation() throws(AFError) -> Outcome<AttemptLoop> {
    if core.observers.contains(.task) { core.tellCompleted(nil, of: request) }
    guard core.prepareRetry(of: request, because: .continuation) else {
      throw core.error ?? (core.isAbandoned ? core.session.reasonOfEnd : .explicitlyCancelled)
    }
    return .done
  }
}

/// The decision of the retriers about a failure, after the delay that they have asked for.
private enum RetryDecision: Sendable {
  case retry
  /// The failure stays, or the error replaces it.
  case refuse(AFError?)
}

extension RequestCore {
  fileprivate func retryDecision(about failure: AFError, of request: Request) async -> RetryDecision {
    let answer = await retriersAnswer(to: failure, of: request, isOpen: true)
    // The session ended while a retrier was asked, which is why there is no other attempt.
    if isAbandoned { return .refuse(session.reasonOfEnd) }
    switch answer {
    case .retry: return .retry
    case .doNotRetry: return .refuse(nil)
    case .doNotRetryWithError(let retryError):
      return .refuse(.requestRetryFailed(retryError: retryError, originalError: failure))
    case .retryWithDelay(let delay):
      transfer?.endTurn()
      // A request that is cancelled during the delay ends with its failure.
      do { try await Task.sleep(for: .retryDelay(delay)) } catch {
        return .refuse(isAbandoned ? session.reasonOfEnd : nil)
      }
      return .retry
    }
  }

  /// Asks the retriers in their order. The first answer other than `.doNotRetry` counts.
  ///
  /// The session is retained while a retrier is called. It is not retained while its answer is awaited nor during a
  /// delay, so that a retrier that never answers cannot keep the session alive.
  ///
  /// - Parameter isOpen: Whether ``RequestDelegate/retryRequest(_:withDelay:)`` may answer as well.
  func retriersAnswer(
    to error: AFError, of request: Request, isOpen: Bool = false
  ) async -> RetryResult {
    let retriers = interceptorsInOrder
    guard !retriers.isEmpty, !isCancelled, session.owner != nil else { return .doNotRetry }
    defer { if isOpen { state.withLock { $0.extras.retryAnswer = nil } } }
    for retrier in retriers {
      let answer = await SingleCompletion.answer(
        whenForgotten: RetryResult.doNotRetry, whenCancelled: .doNotRetry
      ) { completion in
        if isOpen {
          state.withLock { $0.extras.retryAnswer = { [weak completion] in completion?(.retry) } }
        }
        guard let session = session.owner else { return completion(.doNotRetry) }
        retrier.retry(request, for: session, dueTo: error) { completion($0) }
      }
      if case .doNotRetry = answer { continue }
      return answer
    }
    return .doNotRetry
  }
}

extension Duration {
  /// Returns the duration of a delay in seconds: zero for negative values and NaN, at most a year.
  static func retryDelay(_ delay: TimeInterval) -> Duration {
    guard delay > 0 else { return .zero }
    return .milliseconds(Int64(min(delay * 1000, 31_536_000_000).rounded(.up)))
  }
}
