import Foundation
import FoundationNetworking
import HTTPWire

// The caller's description becomes a `URLRequest`, which is validated, adapted and validated again.
extension AttemptDriver {
  func convertAtOnce() throws(AFError) -> AttemptEvent? {
    guard !core.convertsByUserCode, core.resumer == nil else { return nil }
    values.urlRequest = try converted()
    return .done
  }

  nonisolated(nonsending) func convert() async throws(AFError) -> AttemptEvent {
    let driver = self
    values.urlRequest = try await core.session.offLoop { () -> Result<URLRequest, AFError> in
      do throws(AFError) { return .success(try driver.converted()) } catch { return .failure(error) }
    }.get()
    return .done
  }

  @inline(never)
  private func converted() throws(AFError) -> URLRequest {
    do {
      var request = try core.convertible.asURLRequest()
      if core.transfer?.isDescribed == false { core.state.withLock { $0.extras.initialRequest = request } }
      if let body = core.body, let resumer = body.resumer, core.transfer?.completed == nil {
        request = try resumer.request(from: request) { Self.made(body) }
      }
      try check(request)
      return request
    } catch {
      let failure = error as? AFError ?? .createURLRequestFailed(error: error)
      core.fail(failure)
      core.creationFailed(of: request)
      if core.notifiesMonitors { tellCreationFailure(failure) }
      throw failure
    }
  }

  private func check(_ request: URLRequest) throws {
    try request.validate(allowingBodyInGET: core.profile.options.allowsBodyInGETRequests)
  }

  func adaptAtOnce() -> AttemptEvent? {
    // A monitor is notified of an adaptation that changes nothing, too.
    guard !core.has(.adapters), !core.isIntercepted || !core.notifiesMonitors else { return nil }
    core.created(values.urlRequest, of: request)
    if core.notifiesMonitors { tellInitial(values.urlRequest) }
    return .done
  }

  @inline(never)
  nonisolated(nonsending) func adapt() async throws(AFError) -> AttemptEvent {
    let initial = values.urlRequest
    if core.notifiesMonitors { tellInitial(initial) }
    do {
      let adapted = try await adapted(initial).get()
      try check(adapted)
      core.created(adapted, of: request)
      if core.notifiesMonitors { tellAdapted(initial, adapted) }
      values.urlRequest = adapted
      return .done
    } catch {
      if let ended = error as? AFError, ended.isSessionDeinitializedError { throw ended }
      let failure = AFError.requestAdaptationFailed(error: error)
      core.fail(failure)
      core.adaptationFailed(initial, of: request)
      if core.notifiesMonitors { tellAdaptationFailure(initial, failure) }
      throw failure
    }
  }

  nonisolated(nonsending) private func adapted(_ initial: URLRequest) async -> Result<URLRequest, any Error> {
    let adapters = core.interceptorsInOrder
    guard core.session.owner != nil else { return .failure(AFError.sessionDeinitialized) }
    let core = core
    return await core.session.offLoop {
      var current = initial
      for adapter in adapters {
        switch await Self.answer(of: adapter, for: current, core) {
        case .success(let next): current = next
        case .failure(let error): return .failure(error)
        }
      }
      return .success(current)
    }
  }

  nonisolated(nonsending) private static func answer(
    of adapter: any RequestInterceptor, for request: URLRequest, _ core: RequestCore
  ) async -> Result<URLRequest, any Error> {
    await SingleCompletion.answer(
      whenForgotten: Result<URLRequest, any Error>.failure(ForgottenCompletion()),
      whenCancelled: .failure(CancellationError())
    ) { completion in
      // The session is retained during the call alone, so that an adapter that never answers cannot keep it alive.
      guard let session = core.session.owner else {
        return completion(.failure(AFError.sessionDeinitialized))
      }
      adapter.adapt(request, using: RequestAdapterState(of: core, in: session)) { completion($0) }
    }
  }
}
