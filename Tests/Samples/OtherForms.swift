import Alamofire

// Forms of the API that the samples do not show. They are never called; they only have to compile.

/// Uses every shorthand for an interceptor.
func interceptorShorthands(adapt: @escaping AdaptHandler, retry: @escaping RetryHandler) {
  show(Session(interceptor: .adapter(using: adapt)))
  show(Session(interceptor: .retrier(using: retry)))
  show(Session(interceptor: .interceptor(adapter: adapt, retrier: retry)))
  show(Session(interceptor: .interceptor(adapter: Adapter(adapt), retrier: Retrier(retry))))
  show(Session(interceptor: .interceptor(adapters: [Adapter(adapt)], retriers: [.retryPolicy])))
  show(Session(interceptor: .retryPolicy))
  show(Session(interceptor: .retryPolicy(retryLimit: 1)))
  show(Session(interceptor: .connectionLostRetryPolicy))
  show(Session(interceptor: .connectionLostRetryPolicy(retryLimit: 1)))
  show(Session(interceptor: .offlineRetrier(prohibitedInterfaceTypes: [.cellular])))
  AF.request("https://example.com/user")
    .adapt(using: .adapter(using: adapt))
    .retry(using: .retrier(using: retry))
    .interceptor(.interceptor(interceptors: [.retryPolicy, Adapter(adapt)]))
}

/// Makes a trust of certificates of this library, with a policy as the only value.
func trustOfCertificates(leaf: Certificate, issuer: Certificate) {
  var trust: SecTrust?
  let status = SecTrustCreateWithCertificates(
    [leaf, issuer], SecPolicyCreateSSL(true, "example.com"), &trust)
  print(status)
}
