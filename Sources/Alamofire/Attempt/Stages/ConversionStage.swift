import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

// The caller's description becomes a `URLRequest`, which is validated, adapted and validated again.
extension RequestRun {
  func convert() throws(AFError) -> Outcome {
    guard core.convertsByUserCode || core.resumer != nil else {
      values.urlRequest = try core.converted(for: request)
      return .done
    }
    return .task { [core, request] () throws(AFError) in
      try core.converted(for: request)
    } then: { run, converted in
      run.values.urlRequest = converted
      return .done
    }
  }

  func adapt() -> Outcome {
    let initial = values.urlRequest
    // A monitor is notified of an adaptation that changes nothing, too.
    guard core.has(.adapters) || core.isIntercepted && core.notifiesMonitors else {
      core.created(initial, of: request)
      if core.notifiesMonitors { core.tellInitial(initial, of: request) }
      return .done
    }
    if core.notifiesMonitors { core.tellInitial(initial, of: request) }
    return .task { [core, request] () throws(AFError) in
      try await core.adapted(initial, for: request)
    } then: { run, adapted in
      run.values.urlRequest = adapted
      return .done
    }
  }
}

extension RequestCore {
  @inline(never)
  fileprivate func converted(for owner: Request) throws(AFError) -> URLRequest {
    do {
      var request = try convertible.asURLRequest()
      if transfer?.isDescribed == false { state.withLock { $0.extras.initialRequest = request } }
      if let body, let resumer = body.resumer, transfer?.completed == nil {
        request = try resumer.request(from: request) { body.made() }
      }
      try check(request)
      return request
    } catch {
      let failure = error as? AFError ?? .createURLRequestFailed(error: error)
      fail(failure)
      creationFailed(of: owner)
      if notifiesMonitors { tellCreationFailure(failure, of: owner) }
      throw failure
    }
  }

  private func check(_ request: URLRequest) throws {
    try request.validate(allowingBodyInGET: profile.options.allowsBodyInGETRequests)
  }

  fileprivate func adapted(_ initial: URLRequest, for owner: Request) async throws(AFError) -> URLRequest {
    do {
      let adapted = try await answerOfAdapters(to: initial).get()
      try check(adapted)
      created(adapted, of: owner)
      if notifiesMonitors { tellAdapted(initial, adapted, of: owner) }
      return adapted
    } catch {
      if let ended = error as? AFError, ended.isSessionDeinitializedError { throw ended }
      let failure = AFError.requestAdaptationFailed(error: error)
      fail(failure)
      adaptationFailed(initial, of: owner)
      if notifiesMonitors { tellAdaptationFailure(initial, failure, of: owner) }
      throw failure
    }
  }

  private func answerOfAdapters(to initial: URLRequest) async -> Result<URLRequest, any Error> {
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
      // The session is retained during the call alone, so that an adapter that never answers cannot keep it alive.
      guard let session = session.owner else { return completion(.failure(AFError.sessionDeinitialized)) }
      adapter.adapt(request, using: RequestAdapterState(of: self, in: session)) { completion($0) }
    }
  }
}
