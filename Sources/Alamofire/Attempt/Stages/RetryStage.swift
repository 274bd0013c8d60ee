import Foundation
import Synchronization

// The failure of an attempt: retriers decide whether another attempt follows.
extension AttemptDriver {
  private var failure: AFError {
    guard let error = values.error else { preconditionFailure("an attempt failed without an error") }
    return error
  }

  /// Records the failure, unless the request was made within the call of the factory. The failure is then handled once
  /// the request is resumed.
  func recordFailureAtOnce() -> AttemptEvent? {
    core.session.makesRequestsAtOnce ? nil : keepFailure()
  }

  @inline(never)
  nonisolated(nonsending) func recordFailure() async -> AttemptEvent {
    await core.untilResumed()
    return keepFailure()
  }

  private func keepFailure() -> AttemptEvent {
    core.fail(failure)
    core.makeMissingExchange()
    if core.observers.contains(.task) { tellCompleted(core.error) }
    values.error = core.error ?? failure
    return .done
  }

  @inline(never)
  nonisolated(nonsending) func askRetriers() async -> AttemptEvent {
    // The readers have received a part of the body and could not tell that of another attempt apart.
    guard core.chunks?.mayBeginAgain ?? true else { return refuseRetry() }
    let answer = await core.retriersAnswer(to: failure, of: request, isOpen: true)
    // The session ended while a retrier was asked, which is why there is no other attempt.
    if core.isAbandoned { return refuseRetry(with: core.session.reasonOfEnd) }
    switch answer {
    case .doNotRetry: return refuseRetry()
    case .doNotRetryWithError(let retryError):
      return refuseRetry(with: .requestRetryFailed(retryError: retryError, originalError: failure))
    case .retryWithDelay(let delay):
      core.transfer?.endTurn()
      // A request that is cancelled during the delay ends with its failure.
      do { try await Task.sleep(for: .retryDelay(delay)) } catch {
        return core.isAbandoned ? refuseRetry(with: core.session.reasonOfEnd) : refuseRetry()
      }
      return .retry(isWanted: true)
    case .retry: return .retry(isWanted: true)
    }
  }

  /// Ends the request without another attempt.
  ///
  /// - Parameter error: Replaces the failure.
  private func refuseRetry(with error: AFError? = nil) -> AttemptEvent {
    // The end of a connection is not the outcome of an event source that its owner has cancelled.
    let isCancelledSource = core.stream?.eventSource != nil && core.isCancelled
    if let error = error ?? (isCancelledSource ? .explicitlyCancelled : nil) {
      if let sink = values.failedSink { sink.replaceFailure(with: error) } else { core.replaceError(error) }
    }
    values.failedSink = nil
    return .retry(isWanted: false)
  }

  func prepareRetry() -> AttemptEvent {
    guard core.prepareRetry(of: request, because: .retrier, failedSink: values.failedSink) else {
      values.failedSink = nil
      return .failed
    }
    core.transfer?.noteRetry()
    values = AttemptValues()
    return .done
  }
}

extension RequestCore {
  /// Asks the retriers in their order. The first answer other than `.doNotRetry` counts.
  ///
  /// The session is retained while a retrier is called. It is not retained while its answer is awaited nor during a
  /// delay, so that a retrier that never answers cannot keep the session alive.
  ///
  /// - Parameter isOpen: Whether ``RequestDelegate/retryRequest(_:withDelay:)`` may answer as well.
  nonisolated(nonsending) func retriersAnswer(
    to error: AFError, of request: Request, isOpen: Bool = false
  ) async -> RetryResult {
    let retriers = interceptorsInOrder
    guard !retriers.isEmpty, !isCancelled, session.owner != nil else { return .doNotRetry }
    let core = self
    return await session.offLoop {
      defer { if isOpen { core.state.withLock { $0.extras.retryAnswer = nil } } }
      for retrier in retriers {
        let answer = await SingleCompletion.answer(
          whenForgotten: RetryResult.doNotRetry, whenCancelled: .doNotRetry
        ) { completion in
          if isOpen {
            core.state.withLock { $0.extras.retryAnswer = { [weak completion] in completion?(.retry) } }
          }
          guard let session = core.session.owner else { return completion(.doNotRetry) }
          retrier.retry(request, for: session, dueTo: error) { completion($0) }
        }
        if case .doNotRetry = answer { continue }
        return answer
      }
      return .doNotRetry
    }
  }
}

extension Duration {
  /// Returns the duration of a delay in seconds: zero for negative values and NaN, at most a year.
  static func retryDelay(_ delay: TimeInterval) -> Duration {
    guard delay > 0 else { return .zero }
    return .milliseconds(Int64(min(delay * 1000, 31_536_000_000).rounded(.up)))
  }
}
