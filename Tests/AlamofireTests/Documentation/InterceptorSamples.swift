import Alamofire

// Samples of the comments on interceptors; see `SampleTests`.

private struct User: Codable, Sendable {
  var name: String
}

private func show(_ value: Any) {}

private func closures() {
  do {
    let adapter = Adapter { urlRequest, session, completion in
      var urlRequest = urlRequest
      urlRequest.headers.add(.userAgent("Weather/2.0"))
      completion(.success(urlRequest))
    }
    let session = Session(interceptor: adapter)
    show(session)
  }
  let retrier = Retrier { request, session, error, completion in
    completion(request.retryCount < 3 ? .retryWithDelay(1) : .doNotRetry)
  }
  let session = Session(interceptor: retrier)
  show(session)
}

private func rows(token: String) {
  let interceptor = Interceptor(
    adapters: [TokenAdapter(token: token)], retriers: [RetryPolicy(retryLimit: 3)])
  let session = Session(interceptor: interceptor)
  show(session)
}

private func chained(token: String) {
  AF.request("https://example.com/user")
    .adapt(using: TokenAdapter(token: token))
    .retry(using: .retryPolicy)
    .responseDecodable(of: User.self) { response in print(response.result) }
}

private func policies() {
  do {
    let session = Session(interceptor: RetryPolicy(retryLimit: 4, maximumRetryAfter: 60, jitter: .full))
    show(session)
  }
  let session = Session(interceptor: ConnectionLostRetryPolicy(retryLimit: 1))
  show(session)
}

/// Uses every shorthand in the place of an interceptor.
private func shorthands(adapt: @escaping AdaptHandler, retry: @escaping RetryHandler) {
  show(Session(interceptor: .adapter(using: adapt)))
  show(Session(interceptor: .retrier(using: retry)))
  show(Session(interceptor: .interceptor(adapter: adapt, retrier: retry)))
  show(Session(interceptor: .interceptor(adapter: Adapter(adapt), retrier: Retrier(retry))))
  show(Session(interceptor: .interceptor(adapters: [Adapter(adapt)], retriers: [.retryPolicy])))
  show(Session(interceptor: .retryPolicy))
  show(Session(interceptor: .retryPolicy(retryLimit: 1)))
  show(Session(interceptor: .connectionLostRetryPolicy))
  show(Session(interceptor: .connectionLostRetryPolicy(retryLimit: 1)))
  AF.request("https://example.com/user")
    .adapt(using: .adapter(using: adapt))
    .retry(using: .retrier(using: retry))
    .interceptor(.interceptor(interceptors: [.retryPolicy, Adapter(adapt)]))
}

struct OAuthCredential: AuthenticationCredential, Decodable {
  let accessToken: String
  let refreshToken: String
  let expiration: Date

  var requiresRefresh: Bool { Date(timeIntervalSinceNow: 60) > expiration }
}

final class OAuthAuthenticator: Authenticator {
  // Not the session that the interceptor belongs to: its requests wait for the refresh.
  let tokens = Session()

  func apply(_ credential: OAuthCredential, to urlRequest: inout URLRequest) {
    urlRequest.headers.add(.authorization(bearerToken: credential.accessToken))
  }

  func refresh(
    _ credential: OAuthCredential, for session: Session,
    completion: @escaping @Sendable (Result<OAuthCredential, any Error>) -> Void
  ) {
    let parameters = ["refresh_token": credential.refreshToken]
    tokens.request("https://example.com/token", method: .post, parameters: parameters)
      .validate()
      .responseDecodable(of: OAuthCredential.self, queue: .global()) { response in
        completion(response.result.mapError { $0 })
      }
  }

  func didRequest(
    _ urlRequest: URLRequest, with response: HTTPURLResponse,
    failDueToAuthenticationError error: any Error
  ) -> Bool {
    response.statusCode == 401
  }

  func isRequest(_ urlRequest: URLRequest, authenticatedWith credential: OAuthCredential) -> Bool {
    urlRequest.headers["Authorization"] == "Bearer \(credential.accessToken)"
  }
}

private func authentication(credential: OAuthCredential) async throws {
  let interceptor = AuthenticationInterceptor(
    authenticator: OAuthAuthenticator(), credential: credential)
  let session = Session(interceptor: interceptor)
  let user = try await session.request("https://example.com/me")
    .validate()
    .serializingDecodable(User.self)
    .value
  show(user)
}

private func windows() {
  let window = AuthenticationInterceptor<OAuthAuthenticator>.RefreshWindow(
    interval: 60, maximumAttempts: 2)
  show(window)
}

private func compressors() {
  let session = Session(interceptor: .deflateCompressor)
  let compressor = GzipRequestCompressor { $0.count > 1024 }
  print(session, compressor)
}
