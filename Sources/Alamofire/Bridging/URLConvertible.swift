public import Foundation

/// Something that can be a URL.
///
/// `String`, `URL` and `URLComponents` are; a type of one's own can be, for example an enum of endpoints:
///
/// ```swift
/// enum Endpoint: URLConvertible {
///   case user(Int)
///
///   func asURL() throws -> URL {
///     switch self {
///     case .user(let id): try "https://example.com/users/\(id)".asURL()
///     }
///   }
/// }
/// ```
@preconcurrency
public protocol URLConvertible: Sendable {
  /// Returns the URL, or throws; the errors of the built-in types are ``AFError/invalidURL(url:)``.
  func asURL() throws -> URL
}

extension String: URLConvertible {
  // The member of an older generation takes precedence where both are visible.
  /// Returns the URL of this text (RFC 3986).
  ///
  /// Only a text that is no URL reference at all fails. `"invalid"` is one (a relative path), so it
  /// passes here and fails when it is sent.
  ///
  /// - Throws: ``AFError/invalidURL(url:)``.
  @_disfavoredOverload
  public func asURL() throws -> URL {
    guard let url = URL(string: self) else { throw AFError.invalidURL(url: self) }
    return url
  }
}

extension URL: URLConvertible {
  // The member of an older generation takes precedence where both are visible.
  /// Returns itself.
  @_disfavoredOverload
  public func asURL() throws -> URL { self }
}

extension URLComponents: URLConvertible {
  // The member of an older generation takes precedence where both are visible.
  /// Returns the URL of the components.
  ///
  /// - Throws: ``AFError/invalidURL(url:)`` when they do not go together, such as a host and a path that
  ///   does not begin with a slash.
  @_disfavoredOverload
  public func asURL() throws -> URL {
    guard let url else { throw AFError.invalidURL(url: self) }
    return url
  }
}
