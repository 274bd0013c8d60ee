public import FoundationNetworking
public import HTTPWire

extension URLRequest {
  // The member of an older generation takes precedence where both are visible.
  /// Makes a request.
  ///
  /// - Parameters:
  ///   - url:     The URL.
  ///   - method:  The method.
  ///   - headers: The header fields; `nil`, the default, sets none. A `URLRequest` does not keep their order.
  /// - Throws: The error of `url`; ``AFError/invalidURL(url:)`` for the built-in types.
  @_disfavoredOverload
  public init(url: any URLConvertible, method: HTTPMethod, headers: HTTPHeaders? = nil) throws {
    self.init(url: try url.asURL())
    if method != .get { httpMethod = method.rawValue }  // Each change of a URLRequest costs microseconds.
    if let headers { allHTTPHeaderFields = headers.dictionary }
  }

  /// The method, as a value; `nil` when the request has none. Foundation reads a `nil` that is set here
  /// as `GET`.
  public var method: HTTPMethod? {
    get { httpMethod.map(HTTPMethod.init(rawValue:)) }
    set { httpMethod = newValue?.rawValue }
  }

  /// Checks that the request may be sent.
  ///
  /// A body that is a stream is not looked at.
  ///
  /// - Throws: ``AFError/urlRequestValidationFailed(reason:)`` when a `GET` has a body (RFC 9110 §9.3.1
  ///   gives it no meaning, and servers and proxies treat it differently).
  public func validate() throws {
    try validate(allowingBodyInGET: false)
  }

  /// Checks that the request may be sent; a `GET` with a body passes when it is allowed.
  package func validate(allowingBodyInGET allowed: Bool) throws {
    guard !allowed, httpMethod == HTTPMethod.get.rawValue, let httpBody else { return }
    throw AFError.urlRequestValidationFailed(reason: .bodyDataInGETRequest(httpBody))
  }
}

extension URLRequest {
  /// The header fields. Reading gives them in no particular order, since a `URLRequest` keeps none;
  /// writing replaces all of them.
  public var headers: HTTPHeaders {
    get { allHTTPHeaderFields.map(HTTPHeaders.init) ?? HTTPHeaders() }
    set { allHTTPHeaderFields = newValue.dictionary }
  }
}

extension HTTPURLResponse {
  /// The header fields, in no particular order; empty when they are not all text.
  public var headers: HTTPHeaders {
    (allHeaderFields as? [String: String]).map(HTTPHeaders.init) ?? HTTPHeaders()
  }
}
