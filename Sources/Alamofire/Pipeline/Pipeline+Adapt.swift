import Foundation
import FoundationNetworking
import HTTPWire

extension Pipeline {
  /// Stage 1: the user's description becomes a request, validated, adapted, validated again.
  nonisolated(nonsending) func adapted() async throws(AFError) -> URLRequest {
    let initial = core.convertsByUserCode ? try await convertedOffLoop() : try converted()
    let isAdapted = core.isIntercepted
    if !isAdapted { core.created(initial, of: request) }
    if core.isMonitored { tellInitial(initial) }
    return isAdapted ? try await adaptedOffLoop(initial) : initial
  }

  nonisolated(nonsending) private func adaptedOffLoop(_ initial: URLRequest) async throws(AFError)
    -> URLRequest
  {
    let adapters = core.interceptorsInOrder
    guard core.session.owner != nil else { throw .sessionDeinitialized }
    let core = core
    let result = await offLoop { () -> Result<URLRequest, any Error> in
      var current = initial
      for adapter in adapters {
        switch await Self.answer(of: adapter, for: current, core) {
        case .success(let next): current = next
        case .failure(let error): return .failure(error)
        }
      }
      return .success(current)
    }
    do {
      let adapted = try result.get()
      try check(adapted)
      core.created(adapted, of: request)
      if core.isMonitored { tellAdapted(initial, adapted) }
      return adapted
    } catch {
      if let ended = error as? AFError, ended.isSessionDeinitializedError { throw ended }
      let failure = AFError.requestAdaptationFailed(error: error)
      core.fail(failure)
      core.adaptationFailed(initial, of: request)
      if core.isMonitored { tellAdaptationFailure(initial, failure) }
      throw failure
    }
  }

  nonisolated(nonsending) private func convertedOffLoop() async throws(AFError) -> URLRequest {
    let pipeline = self
    return try await offLoop { () -> Result<URLRequest, AFError> in
      do throws(AFError) { return .success(try pipeline.converted()) } catch { return .failure(error) }
    }.get()
  }

  @inline(never)
  func converted() throws(AFError) -> URLRequest {
    do {
      let request = try core.convertible.asURLRequest()
      try check(request)
      return request
    } catch {
      let failure = error as? AFError ?? .createURLRequestFailed(error: error)
      core.fail(failure)
      core.creationFailed(of: request)
      if core.isMonitored { tellCreationFailure(failure) }
      throw failure
    }
  }

  private func check(_ request: URLRequest) throws {
    try request.validate(allowingBodyInGET: core.profile.options.allowsBodyInGETRequests)
  }

  nonisolated(nonsending) private static func answer(
    of adapter: any RequestInterceptor, for request: URLRequest, _ core: RequestCore
  ) async -> Result<URLRequest, any Error> {
    await SingleCompletion.answer(
      whenForgotten: Result<URLRequest, any Error>.failure(ForgottenCompletion()),
      whenCancelled: .failure(CancellationError())
    ) { completion in
      // The session is held during the call alone: an adapter that never answers must not keep it alive.
      guard let session = core.session.owner else {
        return completion(.failure(AFError.sessionDeinitialized))
      }
      let state = RequestAdapterState(requestID: core.id, session: session)
      adapter.adapt(request, using: state) { completion($0) }
    }
  }
}

/// An adapter released its completion without calling it, so that nobody can know what it wanted.
struct ForgottenCompletion: LocalizedError {
  var errorDescription: String? {
    "A RequestAdapter released its completion without calling it; call it exactly once on every path."
  }
}
