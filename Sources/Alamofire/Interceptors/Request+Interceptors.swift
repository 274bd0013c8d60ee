/// Interceptors that are added to a request.
///
/// They run after those of the session and the one that the request was made with, in the order in which they were
/// added. Add them before the request starts. An adapter that is added later applies to the next attempt, a retrier
/// to later failures. After the end, these are only failures of handlers that are added even later.
extension Request {
  /// Adapts and retries the request with `interceptor`, after all that do so already.
  @discardableResult
  public func interceptor(_ interceptor: any RequestInterceptor) -> Self {
    core.add(interceptor)
    return self
  }

  /// Adapts the request with `adapter`, after all adapters that it has already.
  ///
  /// ```swift
  /// AF.request("https://example.com/user")
  ///   .adapt(using: TokenAdapter(token: token))
  ///   .retry(using: .retryPolicy)
  ///   .responseDecodable(of: User.self) { response in print(response.result) }
  /// ```
  @discardableResult
  public func adapt(using adapter: any RequestAdapter) -> Self {
    core.add(Interceptor(adapters: [adapter]))
    return self
  }

  /// Asks `retrier` about failures, after all retriers that the request has already.
  @discardableResult
  public func retry(using retrier: any RequestRetrier) -> Self {
    core.add(Interceptor(retriers: [retrier]))
    return self
  }
}
