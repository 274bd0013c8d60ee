import Alamofire
public import FoundationNetworking

/// Something that can be a `URLRequest`: `URLRequest` itself, and users' routers.
public protocol URLRequestConvertible {
  /// Returns the request, or throws; the error reaches the handlers untouched. Asked once for a request, and
  /// not again when it is retried.
  func asURLRequest() throws -> URLRequest
}

extension URLRequestConvertible {
  /// The request, or `nil` if it could not be created; ``asURLRequest()`` says why.
  public var urlRequest: URLRequest? { try? asURLRequest() }
}

extension URLRequest: URLRequestConvertible {
  /// Returns itself.
  public func asURLRequest() throws -> URLRequest { self }
}

extension URLRequest {
  /// Makes a request.
  ///
  /// - Parameters:
  ///   - url:     The URL.
  ///   - method:  The method.
  ///   - headers: The header fields; `nil`, the default, sets none.
  /// - Throws: The error of `url`; ``AFError/invalidURL(url:)`` for the built-in types.
  public init(url: any URLConvertible, method: HTTPMethod, headers: HTTPHeaders? = nil) throws {
    self.init(url: try url.asURL())
    httpMethod = method.rawValue
    if let headers { allHTTPHeaderFields = headers }
  }
}
