import Foundation
import FoundationNetworking
import HTTPWire

extension Pipeline {
  /// Stage 1: the user's description becomes a request, validated, adapted, validated again.
  nonisolated(nonsending) func adapted() async throws(AFError) -> URLRequest {
    let initial = try await converted()
    let adapters = core.interceptorsInOrder
    guard !adapters.isEmpty else {
      core.created(initial, of: self.request)
      return initial
    }
    guard let session = core.session.owner else { throw .sessionDeinitialized }
    let state = RequestAdapterState(requestID: core.id, session: session)
    let result = await offLoop { () -> Result<URLRequest, any Error> in
      var current = initial
      for adapter in adapters {
        switch await Self.answer(of: adapter, for: current, state) {
        case .success(let next): current = next
        case .failure(let error): return .failure(error)
        }
      }
      return .success(current)
    }
    let request: URLRequest
    do {
      request = try result.get()
      try check(request)
    } catch {
      core.adaptationFailed(initial, of: self.request)
      throw .requestAdaptationFailed(error: error)
    }
    core.created(request, of: self.request)
    return request
  }

  nonisolated(nonsending) private func converted() async throws(AFError) -> URLRequest {
    let convertible = core.convertible
    do {
      let request: URLRequest
      if core.convertsByUserCode {
        request = try await offLoop { Result { try convertible.asURLRequest() } }.get()
      } else {
        request = try convertible.asURLRequest()
      }
      try check(request)
      return request
    } catch {
      core.creationFailed(of: self.request)
      throw error as? AFError ?? .createURLRequestFailed(error: error)
    }
  }

  private func check(_ request: URLRequest) throws {
    try request.validate(allowingBodyInGET: core.options.allowsBodyInGETRequests)
  }

  nonisolated(nonsending) private static func answer(
    of adapter: any RequestInterceptor, for request: URLRequest, _ state: RequestAdapterState
  ) async -> Result<URLRequest, any Error> {
    await CompletionOnce.answer(
      whenForgotten: Result<URLRequest, any Error>.failure(ForgottenCompletion()),
      whenCancelled: .failure(CancellationError())
    ) { completion in
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
