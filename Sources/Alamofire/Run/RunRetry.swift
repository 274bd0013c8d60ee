import Foundation
import Synchronization

// The failure of an attempt: retriers decide whether another attempt follows.
extension AttemptLoop {
  private var failure: AFError {
    guard let error else { preconditionFailure("an attempt failed without an error") }
    return error
  }

  /// Records the failure. If the request is created within the factory call, the failure is handled once the request is
  /// resumed.
  mutating func recordFailure() -> Outcome<AttemptLoop> {
    guard core.session.makesRequestsAtOnce else { return storeFailure() }
    return .gate(.resumed) { loop in loop.storeFailure() }
  }

  private mutating func storeFailure() -> Outcome<AttemptLoop> {
    core.fail(failure)
    core.makeMissingExchange()
    if core.observers.contains(.task), !hasAnnouncedEnd { request.notify(.completed(core.error)) }
    hasAnnouncedEnd = false
    error = core.error ?? failure
    return .done
  }

  mutating func askRetriers() -> Outcome<AttemptLoop> {
    guard core.mayBeRetried else { return .event(.retry(isRequested: false)) }
    // After the end of its session no request starts, not even for a late handler. The readers have received a part of
    // the body and could not tell it apart from the body of another attempt.
    guard registryIndex != nil, core.kind.mayBeginAgain(core) else { return refuseRetry() }
    return .task { [core, request, failure] in
      guard core.servesLateHandlers else { return await request.retryDecision(about: failure) }
      return await core.askRetriers { await request.retryDecision(about: failure) }
    } then: { loop, decision in
      switch decision {
      case .retry: .event(.retry(isRequested: true))
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
    return .event(.retry(isRequested: false))
  }

  mutating func prepareRetry() -> Outcome<AttemptLoop> {
    guard core.prepareRetry(of: request, because: .retrier, failedSink: failedSink) else {
      failedSink = nil
      return .event(.failed)
    }
    (error, failedSink) = (nil, nil)
    return .done
  }

  /// Begins with the next request of a resumable upload. This is not a retry, because nothing has failed.
  mutating func prepareContinuation() throws(AFError) -> Outcome<AttemptLoop> {
    // A request that was cancelled by now announces the end of the task with its failure.
    if core.observers.contains(.task), core.state.withLock({ $0.lifecycle.mayAttemptAgain }) {
      request.notify(.completed(nil))
      hasAnnouncedEnd = true
    }
    guard core.prepareRetry(of: request, because: .continuation) else {
      throw core.error ?? (core.isAbandoned ? core.session.reasonOfEnd : .explicitlyCancelled)
    }
    hasAnnouncedEnd = false
    return .done
  }
}

extension Duration {
  /// Returns the duration of a delay in seconds: zero for negative values and NaN, at most a year.
  static func retryDelay(_ delay: TimeInterval) -> Duration {
    guard delay > 0 else { return .zero }
    return .milliseconds(Int64(min(delay * 1000, 31_536_000_000).rounded(.up)))
  }
}
