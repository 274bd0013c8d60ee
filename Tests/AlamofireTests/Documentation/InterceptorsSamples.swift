import Alamofire

// Samples of Interceptors.md; see `SampleTests`.

private struct User: Codable, Sendable {
  var name: String
}

private func show(_ value: Any) {}

private struct RequestIDAdapter: RequestInterceptor {
  func adapt(
    _ urlRequest: URLRequest, for session: Session,
    completion: @escaping @Sendable (Result<URLRequest, any Error>) -> Void
  ) {
    var urlRequest = urlRequest
    urlRequest.headers.update(name: "X-Request-ID", value: UUID().uuidString)
    completion(.success(urlRequest))
  }
}

private func adapters() {
  let session = Session(interceptor: RequestIDAdapter())
  let request = session.request("https://example.com/users", interceptor: .retryPolicy)
  show(request)
}

private actor TokenStore {
  func token() throws -> String { "secret" }
}
private struct BearerAdapter: RequestInterceptor {
  let store: TokenStore

  func adapt(
    _ urlRequest: URLRequest, for session: Session,
    completion: @escaping @Sendable (Result<URLRequest, any Error>) -> Void
  ) {
    Task {
      do {
        var urlRequest = urlRequest
        urlRequest.headers.add(.authorization(bearerToken: try await store.token()))
        completion(.success(urlRequest))
      } catch {
        completion(.failure(error))
      }
    }
  }
}

private struct MaintenanceRetrier: RequestInterceptor {
  func retry(
    _ request: Request, for session: Session, dueTo error: any Error,
    completion: @escaping @Sendable (RetryResult) -> Void
  ) {
    let isMaintenance = request.response?.statusCode == 503 && request.retryCount < 3
    completion(isMaintenance ? .retryWithDelay(5) : .doNotRetry)
  }
}

private func policies() {
  let policy = RetryPolicy(
    retryLimit: 4, exponentialBackoffBase: 2, exponentialBackoffScale: 0.5,
    retryableHTTPStatusCodes: [408, 429, 500, 502, 503, 504],
    maximumRetryAfter: 60, jitter: .full)
  let session = Session(interceptor: policy)
  show(session)
}

private func combining() {
  let interceptor = Interceptor(
    adapters: [RequestIDAdapter()], retriers: [RetryPolicy(retryLimit: 3)],
    interceptors: [MaintenanceRetrier()])
  let session = Session(interceptor: interceptor)

  let request = session.request("https://example.com/users")
    .adapt(using: RequestIDAdapter())
    .retry(using: .connectionLostRetryPolicy)
  show((session, request))
}
