import Foundation
import Synchronization

extension Pipeline {
  /// What becomes of a failure.
  enum RetryDecision {
    /// The request has been made ready for another attempt.
    case again
    /// The failure stays as it is.
    case stop
    /// This error takes the place of the failure.
    case replace(AFError)
  }

  /// Stage 5: asks the retriers what to do about a failure.
  ///
  /// - Parameter sink: The handler whose serializer has failed; its response counts as parsed when it is retried.
  nonisolated(nonsending) func retryDecision(
    after error: AFError, of sink: (any ResponseSink)? = nil
  ) async -> RetryDecision {
    // A part of one body, and then another one: nobody could tell them apart.
    guard core.pieces?.mayBeginAgain ?? true else { return .stop }
    let answer = await retriersAnswer(to: error, isOpen: true)
    // The session ended while a retrier was asked: that is why there is no other attempt.
    if core.isIntercepted, core.isAbandoned { return .replace(core.session.reasonOfEnd) }
    switch answer {
    case .doNotRetry: return .stop
    case .doNotRetryWithError(let retryError):
      return .replace(.requestRetryFailed(retryError: retryError, originalError: error))
    case .retryWithDelay(let delay):
      // Cancelled while it waits, the request ends with its failure.
      do { try await Task.sleep(for: Self.duration(delay)) } catch {
        return core.isAbandoned ? .replace(core.session.reasonOfEnd) : .stop
      }
    case .retry: break
    }
    return core.prepareRetry(of: request, because: .retrier, failedSink: sink) ? .again : .stop
  }

  /// The session is held while a retrier is called, and neither while its answer is awaited nor during a delay: else a
  /// retrier that never answers would keep the session alive.
  ///
  /// - Parameter isOpen: Whether ``RequestDelegate/retryRequest(_:withDelay:)`` may answer as well.
  nonisolated(nonsending) func retriersAnswer(to error: AFError, isOpen: Bool = false) async -> RetryResult {
    let retriers = core.interceptorsInOrder
    guard !retriers.isEmpty, !core.isCancelled, core.session.owner != nil else { return .doNotRetry }
    let (core, request) = (core, request)
    return await offLoop {
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

  /// A delay in seconds as a duration. What makes no sense is no delay, what never ends is a year.
  static func duration(_ delay: TimeInterval) -> Duration {
    guard delay > 0 else { return .zero }
    return .milliseconds(Int64(min(delay * 1000, 31_536_000_000).rounded(.up)))
  }
}
