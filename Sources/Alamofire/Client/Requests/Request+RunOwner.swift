import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire

extension Request: RunOwner {
  var hopDelegate: any HopDelegate { RequestOwner(core: core, request: self) }

  func wasLastOfSession() { session.notifyInvalidOnce() }

  func questionAboutBodyStream(
    deadline: MonotonicTime?
  ) -> (@Sendable () async throws(AFError) -> Void)? {
    guard let body = (self as? UploadRequest)?.body, let ours = body.content, ours.stream != nil,
      let task = tasks.last
    else { return nil }
    return { [core, session] () throws(AFError) in
      let answer: UploadContent? = await session.delegateAnswer(
        whenForgotten: ours, whenCancelled: nil, deadline: deadline
      ) { delegate, facade, completion in
        delegate.urlSession(
          facade, task: task, needNewBodyStream: { stream in completion(stream.map { .stream($0) }) })
      }
      try core.checkAlive()
      if answer == nil, let deadline, deadline <= .now {
        throw .unansweredQuestion(to: core.state.withLock { $0.results.request }?.url?.absoluteString)
      }
      try body.use(answer, of: core.state.withLock { $0.results.request })
    }
  }
}

// Adapters and retriers. The session is retained while one is called. It is not retained while an answer is awaited nor
// during a delay, so that an interceptor that never answers cannot keep the session alive.
extension Request {
  func adapted(_ initial: URLRequest) async -> Result<URLRequest, any Error> {
    let adapters = interceptorsInOrder
    guard session.owner != nil else { return .failure(AFError.sessionDeinitialized) }
    var current = initial
    for adapter in adapters {
      switch await answer(of: adapter, for: current) {
      case .success(let next): current = next
      case .failure(let error): return .failure(error)
      }
    }
    return .success(current)
  }

  private func answer(of adapter: any RequestInterceptor, for request: URLRequest) async
    -> Result<URLRequest, any Error>
  {
    await SingleCompletion.answer(
      whenForgotten: Result<URLRequest, any Error>.failure(ForgottenCompletion()),
      whenCancelled: .failure(CancellationError())
    ) { completion in
      guard let session = session.owner else { return completion(.failure(AFError.sessionDeinitialized)) }
      adapter.adapt(request, using: RequestAdapterState(of: core, in: session)) { completion($0) }
    }
  }

  func retryDecision(about failure: AFError) async -> RetryDecision {
    if core.refusesRetry { return .refuse(nil) }
    let answer = await retriersAnswer(to: failure, isOpen: true)
    // The session ended while a retrier was being asked, so there is no further attempt.
    if core.isAbandoned { return .refuse(reasonToRefuse) }
    switch answer {
    case .retry: return .retry
    case .doNotRetry: return .refuse(nil)
    case .doNotRetryWithError(let retryError):
      return .refuse(.requestRetryFailed(retryError: retryError, originalError: failure))
    case .retryWithDelay(let delay):
      // Other transfers of a discretionary session do not wait for this one.
      core.kind.held()
      // A request that is cancelled during the delay ends with its failure.
      do { try await Task.sleep(for: .retryDelay(delay)) } catch {
        return .refuse(core.isAbandoned ? reasonToRefuse : nil)
      }
      return .retry
    }
  }

  /// The error that replaces a failure because the session has ended. A late handler keeps its failure.
  private var reasonToRefuse: AFError? { core.refusesRetry ? nil : core.session.reasonOfEnd }

  /// Asks the retriers in their order. The first answer other than `.doNotRetry` counts.
  ///
  /// - Parameter isOpen: Whether ``RequestDelegate/retryRequest(_:withDelay:)`` may answer as well.
  func retriersAnswer(to error: AFError, isOpen: Bool = false) async -> RetryResult {
    let retriers = interceptorsInOrder
    guard !retriers.isEmpty, !isCancelled, session.owner != nil else { return .doNotRetry }
    defer { if isOpen { additions.withLock { $0.value.retryAnswer = nil } } }
    for retrier in retriers {
      let answer = await SingleCompletion.answer(
        whenForgotten: RetryResult.doNotRetry, whenCancelled: .doNotRetry
      ) { completion in
        if isOpen {
          additions.withLock { $0.value.retryAnswer = { [weak completion] in completion?(.retry) } }
        }
        guard let owner = session.owner else { return completion(.doNotRetry) }
        retrier.retry(self, for: owner, dueTo: error) { completion($0) }
      }
      if case .doNotRetry = answer { continue }
      return answer
    }
    return .doNotRetry
  }
}
