import Alamofire
public import Foundation
public import FoundationNetworking

/// Something that can be a URL: `String`, `URL`, `URLComponents`, and types of users.
public protocol URLConvertible {
  /// Returns the URL, or throws. The error of the built-in types is ``AFError/invalidURL(url:)``; the handlers get
  /// the error of another type unchanged.
  func asURL() throws -> URL
}

extension String: URLConvertible {
  /// Returns the URL of this text (RFC 3986).
  ///
  /// - Throws: ``AFError/invalidURL(url:)`` when the text is not a URL reference at all.
  public func asURL() throws -> URL {
    guard let url = URL(string: self) else { throw AFError.invalidURL(url: self) }
    return url
  }
}

extension URL: URLConvertible {
  /// Returns itself.
  public func asURL() throws -> URL { self }
}

extension URLComponents: URLConvertible {
  /// Returns the URL of the components.
  ///
  /// - Throws: ``AFError/invalidURL(url:)`` when they do not go together.
  public func asURL() throws -> URL {
    guard let url else { throw AFError.invalidURL(url: self) }
    return url
  }
}

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

/// The `URLRequest` that users' routers and encodings have created: once, and not again for a retry.
enum OriginalRequest: Sendable {
  case made(URLRequest)
  /// An error, because the request could not be created.
  case refused(any Error)
  /// The core knows it.
  case unknown

  init(_ make: () throws -> URLRequest) {
    do { self = .made(try make()) } catch { self = .refused(error) }
  }

  /// The request, if it was created.
  var request: URLRequest? { if case .made(let request) = self { request } else { nil } }

  /// The error of the conversion.
  var refusal: (any Error)? { if case .refused(let error) = self { error } else { nil } }

  /// The value to hand to the core.
  var convertible: any Alamofire::URLRequestConvertible {
    request ?? Refusal(error: refusal ?? URLError(.badURL))
  }
}

/// A request that could not be created; it throws its error when the core converts it.
private struct Refusal: Alamofire::URLRequestConvertible {
  let error: any Error

  func asURLRequest() throws -> URLRequest { throw error }
}
