import Foundation

extension Pipeline {
  /// Stage 5: asks the retriers what to do about a failure. Returns true when the request has been
  /// made ready for another attempt.
  nonisolated(nonsending) func mayRetry(after error: AFError) async -> Bool {
    let retriers = core.interceptorsInOrder
    guard !retriers.isEmpty, !core.isCancelled, let session = core.session.owner else { return false }
    let request = request
    let answer = await offLoop { () -> RetryResult in
      for retrier in retriers {
        let answer = await Self.answer(of: retrier, for: request, session, error)
        if case .doNotRetry = answer { continue }
        return answer
      }
      return .doNotRetry
    }
    switch answer {
    case .doNotRetry: return false
    case .doNotRetryWithError(let retryError):
      core.replaceError(.requestRetryFailed(retryError: retryError, originalError: error))
      return false
    case .retryWithDelay(let delay):
      // Cancelled while it waits, the request ends as cancelled.
      do { try await Task.sleep(for: .seconds(max(0, delay))) } catch { return false }
    case .retry: break
    }
    guard !core.isCancelled, !Task.isCancelled else { return false }
    core.resetForRetry()
    return true
  }

  nonisolated(nonsending) private static func answer(
    of retrier: any RequestInterceptor, for request: Request, _ session: Session, _ error: AFError
  ) async -> RetryResult {
    await withCheckedContinuation { continuation in
      let completion = CompletionOnce(continuation, whenForgotten: RetryResult.doNotRetry)
      retrier.retry(request, for: session, dueTo: error) { completion($0) }
    }
  }
}
