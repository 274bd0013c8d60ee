public import FoundationNetworking

/// Something that can be a `URLRequest`.
///
/// `URLRequest` is; a type of one's own, such as a router, can be:
///
/// ```swift
/// enum Router: URLRequestConvertible {
///   case createUser(Data)
///
///   func asURLRequest() throws -> URLRequest {
///     switch self {
///     case .createUser(let body):
///       var request = try URLRequest(url: "https://example.com/users", method: .post)
///       request.httpBody = body
///       return request
///     }
///   }
/// }
/// ```
@preconcurrency
public protocol URLRequestConvertible: Sendable {
  /// Returns the request, or throws. An error that is not an ``AFError`` reaches the user as
  /// ``AFError/createURLRequestFailed(error:)``.
  func asURLRequest() throws -> URLRequest
}

extension URLRequestConvertible {
  // The member of an older generation takes precedence where both are visible.
  /// The request, or `nil` when it could not be made; ``asURLRequest()`` says why.
  @_disfavoredOverload
  public var urlRequest: URLRequest? { try? asURLRequest() }
}

extension URLRequest: URLRequestConvertible {
  // The member of an older generation takes precedence where both are visible.
  /// Returns itself.
  @_disfavoredOverload
  public func asURLRequest() throws -> URLRequest { self }
}
