import Alamofire

#if IMPORTS_FOUNDATION
  import Foundation
#endif
#if IMPORTS_FOUNDATION_NETWORKING
  import FoundationNetworking
#endif

// Adapters, retriers, policies, authentication and compression.

private let url = "http://localhost"

/// An interceptor that compiles without warnings in both language modes.
private struct TokenInterceptor: RequestInterceptor {
  let token: String

  func adapt(
    _ urlRequest: URLRequest, for session: Session,
    completion: @escaping @Sendable (Result<URLRequest, Error>) -> Void
  ) {
    var urlRequest = urlRequest
    urlRequest.headers.add(.authorization(bearerToken: token))
    completion(.success(urlRequest))
  }

  func retry(
    _ request: Request, for session: Session, dueTo error: Error,
    completion: @escaping @Sendable (RetryResult) -> Void
  ) {
    guard request.retryCount < 3, request.response?.statusCode == 401 else { return completion(.doNotRetry) }
    completion(.retryWithDelay(1))
  }
}

#if swift(<6)
  /// An interceptor from before closures were `Sendable`: a class with variables and no annotation.
  private class OldInterceptor: RequestInterceptor, @unchecked Sendable {
    var count = 0

    func adapt(
      _ urlRequest: URLRequest, for session: Session,
      completion: @escaping (Result<URLRequest, Error>) -> Void
    ) {
      count += 1
      completion(.success(urlRequest))
    }

    func retry(
      _ request: Request, for session: Session, dueTo error: Error,
      completion: @escaping (RetryResult) -> Void
    ) {
      completion(.doNotRetryWithError(error))
    }
  }

  private func oldInterceptor() {
    AF.request(url, interceptor: OldInterceptor()).response { _ in }
  }
#endif

private struct StateAdapter: RequestAdapter {
  func adapt(
    _ urlRequest: URLRequest, for session: Session,
    completion: @escaping @Sendable (Result<URLRequest, any Error>) -> Void
  ) {
    completion(.success(urlRequest))
  }

  func adapt(
    _ urlRequest: URLRequest, using state: RequestAdapterState,
    completion: @escaping @Sendable (Result<URLRequest, any Error>) -> Void
  ) {
    print(state.requestID, state.session)
    completion(.failure(URLError(.userAuthenticationRequired)))
  }
}

private struct Never3Times: RequestRetrier {
  func retry(
    _ request: Request, for session: Session, dueTo error: any Error,
    completion: @escaping @Sendable (RetryResult) -> Void
  ) {
    completion(request.retryCount < 3 ? .retry : .doNotRetry)
  }
}

private func results(_ result: RetryResult) {
  switch result {
  case .retry: break
  case .retryWithDelay(let delay): print(delay)
  case .doNotRetry: break
  case .doNotRetryWithError(let error): print(error)
  }
}

private func interceptors() {
  let adapt: AdaptHandler = { request, _, completion in completion(.success(request)) }
  let retry: RetryHandler = { _, _, _, completion in completion(.doNotRetry) }
  let all: [RequestInterceptor] = [
    TokenInterceptor(token: "a"), Adapter(adapt), Retrier(retry), Interceptor(),
    Adapter { request, session, completion in completion(.success(request)) },
    Retrier { request, session, error, completion in completion(.retry) },
    Interceptor(adaptHandler: adapt, retryHandler: retry),
    Interceptor(adapter: StateAdapter(), retrier: Never3Times()),
    Interceptor(adapters: [StateAdapter()]),
    Interceptor(retriers: [Never3Times()], interceptors: [RetryPolicy()]),
    Interceptor(adapters: [StateAdapter()], retriers: [Never3Times()], interceptors: [RetryPolicy()]),
  ]
  print(all, Interceptor().adapters, Interceptor().retriers)
  AF.request(url, interceptor: .adapter(using: adapt)).response { _ in }
  AF.request(url, interceptor: .retrier(using: retry)).response { _ in }
  AF.request(url, interceptor: .interceptor(adapter: adapt, retrier: retry)).response { _ in }
  AF.request(url, interceptor: .interceptor(adapter: StateAdapter(), retrier: Never3Times()))
    .response { _ in }
  AF.request(url, interceptor: .interceptor(adapters: [StateAdapter()], retriers: [Never3Times()]))
    .response { _ in }
  AF.request(
    url, interceptor: .interceptor(adapters: [], retriers: [], interceptors: [TokenInterceptor(token: "a")])
  ).response { _ in }
  AF.request(url, interceptor: .adapter { request, _, completion in completion(.success(request)) })
    .response { _ in }
}

private final class LoudInterceptor: Interceptor, @unchecked Sendable {
  override func adapt(
    _ urlRequest: URLRequest, for session: Session,
    completion: @escaping @Sendable (Result<URLRequest, any Error>) -> Void
  ) {
    super.adapt(urlRequest, for: session, completion: completion)
  }

  override func adapt(
    _ urlRequest: URLRequest, using state: RequestAdapterState,
    completion: @escaping @Sendable (Result<URLRequest, any Error>) -> Void
  ) {
    super.adapt(urlRequest, using: state, completion: completion)
  }

  override func retry(
    _ request: Request, for session: Session, dueTo error: any Error,
    completion: @escaping @Sendable (RetryResult) -> Void
  ) {
    super.retry(request, for: session, dueTo: error, completion: completion)
  }
}

private final class LoudAdapter: Adapter, @unchecked Sendable {
  override func adapt(
    _ urlRequest: URLRequest, for session: Session,
    completion: @escaping @Sendable (Result<URLRequest, any Error>) -> Void
  ) {
    super.adapt(urlRequest, for: session, completion: completion)
  }
}

private final class LoudRetrier: Retrier, @unchecked Sendable {
  override func retry(
    _ request: Request, for session: Session, dueTo error: any Error,
    completion: @escaping @Sendable (RetryResult) -> Void
  ) {
    super.retry(request, for: session, dueTo: error, completion: completion)
  }
}

private final class Stubborn: RetryPolicy, @unchecked Sendable {
  override func shouldRetry(request: Request, dueTo error: any Error) -> Bool {
    super.shouldRetry(request: request, dueTo: error) || request.response?.statusCode == 418
  }

  override func retry(
    _ request: Request, for session: Session, dueTo error: any Error,
    completion: @escaping @Sendable (RetryResult) -> Void
  ) {
    super.retry(request, for: session, dueTo: error, completion: completion)
  }
}

private func subclasses() {
  _ = LoudInterceptor(adapters: [], retriers: [], interceptors: [])
  _ = LoudInterceptor(adapter: StateAdapter(), retrier: Never3Times())
  _ = LoudAdapter { request, _, completion in completion(.success(request)) }
  _ = LoudRetrier { _, _, _, completion in completion(.retry) }
  _ = Stubborn(retryLimit: 3)
}

private func policies() {
  let policy = RetryPolicy(
    retryLimit: 3, exponentialBackoffBase: 2, exponentialBackoffScale: 0.1, retryableHTTPMethods: [.get],
    retryableHTTPStatusCodes: Set(500...599), retryableURLErrorCodes: [.timedOut])
  print(policy.retryLimit, policy.exponentialBackoffBase, policy.exponentialBackoffScale)
  print(policy.retryableHTTPMethods, policy.retryableHTTPStatusCodes, policy.retryableURLErrorCodes)
  print(RetryPolicy.defaultRetryLimit, RetryPolicy.defaultExponentialBackoffBase)
  print(RetryPolicy.defaultExponentialBackoffScale, RetryPolicy.defaultRetryableHTTPMethods)
  print(RetryPolicy.defaultRetryableHTTPStatusCodes, RetryPolicy.defaultRetryableURLErrorCodes)
  _ = [RetryPolicy(), RetryPolicy(retryLimit: 1), Stubborn(), ConnectionLostRetryPolicy()]
  _ = ConnectionLostRetryPolicy(
    retryLimit: 1, exponentialBackoffBase: 2, exponentialBackoffScale: 1, retryableHTTPMethods: [.get])
  AF.request(url, interceptor: .retryPolicy).response { _ in }
  AF.request(url, interceptor: .retryPolicy(retryLimit: 1)).response { _ in }
  AF.request(
    url,
    interceptor: .retryPolicy(
      retryLimit: 1, exponentialBackoffBase: 3, exponentialBackoffScale: 1, retryableHTTPMethods: [.get],
      retryableHTTPStatusCodes: [500], retryableURLErrorCodes: [.timedOut])
  ).response { _ in }
  AF.request(url, interceptor: .connectionLostRetryPolicy).response { _ in }
  AF.request(url, interceptor: .connectionLostRetryPolicy(retryLimit: 1)).response { _ in }
  AF.request(
    url,
    interceptor: .connectionLostRetryPolicy(
      retryLimit: 1, exponentialBackoffBase: 3, exponentialBackoffScale: 1, retryableHTTPMethods: [.get])
  ).response { _ in }
}

private struct OAuthCredential: AuthenticationCredential {
  let accessToken: String
  let expiration: Date
  var requiresRefresh: Bool { Date(timeIntervalSinceNow: 60 * 5) > expiration }
}

private final class OAuthAuthenticator: Authenticator {
  func apply(_ credential: OAuthCredential, to urlRequest: inout URLRequest) {
    urlRequest.headers.add(.authorization(bearerToken: credential.accessToken))
  }

  func refresh(
    _ credential: OAuthCredential, for session: Session,
    completion: @escaping @Sendable (Result<OAuthCredential, any Error>) -> Void
  ) {
    completion(.success(OAuthCredential(accessToken: "b", expiration: .distantFuture)))
  }

  func didRequest(
    _ urlRequest: URLRequest, with response: HTTPURLResponse,
    failDueToAuthenticationError error: any Error
  ) -> Bool {
    response.statusCode == 401
  }

  func isRequest(_ urlRequest: URLRequest, authenticatedWith credential: OAuthCredential) -> Bool {
    urlRequest.headers["Authorization"] == HTTPHeader.authorization(bearerToken: credential.accessToken).value
  }
}

private func authentication() {
  let credential = OAuthCredential(accessToken: "a", expiration: Date())
  let interceptor = AuthenticationInterceptor(authenticator: OAuthAuthenticator(), credential: credential)
  interceptor.credential = nil
  let window = AuthenticationInterceptor<OAuthAuthenticator>.RefreshWindow(interval: 30, maximumAttempts: 5)
  print(window.interval, window.maximumAttempts)
  _ = AuthenticationInterceptor(authenticator: OAuthAuthenticator())
  _ = AuthenticationInterceptor(
    authenticator: OAuthAuthenticator(), credential: credential, refreshWindow: window)
  _ = AuthenticationInterceptor(
    authenticator: OAuthAuthenticator(), credential: nil, refreshWindow: .init(interval: 1))
  AF.request(url, interceptor: interceptor).validate().response { response in
    switch response.error?.underlyingError as? AuthenticationError {
    case .missingCredential?, .excessiveRefresh?: break
    case nil: break
    }
  }
}

private func compression() {
  AF.request(url, interceptor: .deflateCompressor).response { _ in }
  AF.request(url, interceptor: .deflateCompressor(duplicateHeaderBehavior: .skip)).response { _ in }
  AF.request(
    url,
    interceptor: .deflateCompressor(
      duplicateHeaderBehavior: .replace, shouldCompressBodyData: { $0.count > 10 })
  ).response { _ in }
  let compressor = DeflateRequestCompressor(duplicateHeaderBehavior: .error) { $0.count > 1_000 }
  switch compressor.duplicateHeaderBehavior {
  case .error, .replace, .skip: break
  }
  print(DeflateRequestCompressor(), compressor.shouldCompressBodyData(Data()))
  AF.request(url).response { response in
    if response.error?.underlyingError is DeflateRequestCompressor.DuplicateHeaderError { print("twice") }
  }
}
