public import FoundationNetworking

/// Parameters by name, of any types.
public typealias Parameters = [String: Any]

/// A way to put ``Parameters`` into a request.
///
/// ```swift
/// struct JSONStringArrayEncoding: ParameterEncoding {
///   let array: [String]
///
///   func encode(_ urlRequest: URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest {
///     var request = try urlRequest.asURLRequest()
///     request.httpBody = try JSONSerialization.data(withJSONObject: array)
///     return request
///   }
/// }
/// ```
public protocol ParameterEncoding {
  /// Returns the request with the encoded parameters. Called once for a request, on the thread that makes it.
  ///
  /// - Parameters:
  ///   - urlRequest: The request.
  ///   - parameters: The parameters; for `nil`, the built-in encodings return the request unchanged.
  /// - Throws: Any error; the handlers get it unchanged.
  func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest
}

/// The methods of a request (RFC 9110 §9).
///
/// The list is closed, as it was in this generation. For another method, set `httpMethod` of a `URLRequest`.
public enum HTTPMethod: String, Sendable {
  /// Asks which methods a resource supports.
  case options = "OPTIONS"
  /// Read it.
  case get = "GET"
  /// Read its header fields.
  case head = "HEAD"
  /// Have it processed.
  case post = "POST"
  /// Replace it.
  case put = "PUT"
  /// Change a part of it (RFC 5789).
  case patch = "PATCH"
  /// Remove it.
  case delete = "DELETE"
  /// Show what arrives.
  case trace = "TRACE"
  /// Make a tunnel.
  case connect = "CONNECT"
}

/// Header fields by name. Names that differ only in case are different keys here, and the same field on the
/// wire: which one is sent is then not said.
public typealias HTTPHeaders = [String: String]
