import Alamofire
public import Foundation

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
