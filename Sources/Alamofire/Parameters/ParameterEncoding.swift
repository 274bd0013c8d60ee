public import FoundationNetworking

/// Parameters by name, of any types that can cross threads.
///
/// ```swift
/// let parameters: Parameters = ["name": "Ada", "tags": ["a", "b"], "page": 1]
/// ```
///
/// For types of one's own that are `Encodable` there is ``ParameterEncoder``.
public typealias Parameters = [String: any Any & Sendable]

/// A way to put ``Parameters`` into a request.
///
/// ```swift
/// struct CommaSeparated: ParameterEncoding {
///   func encode(
///     _ urlRequest: any URLRequestConvertible, with parameters: Parameters?
///   ) throws -> URLRequest {
///     var request = try urlRequest.asURLRequest()
///     request.httpBody = parameters.map { Data($0.keys.sorted().joined(separator: ",").utf8) }
///     return request
///   }
/// }
/// ```
@preconcurrency
public protocol ParameterEncoding: Sendable {
  /// Returns the request with the parameters in it.
  ///
  /// - Parameters:
  ///   - urlRequest: The request.
  ///   - parameters: What to put into it; the built-in encodings leave the request alone for `nil`.
  /// - Throws: What goes wrong. An error that is not an ``AFError`` reaches the user as
  ///   ``AFError/parameterEncodingFailed(reason:)`` with `.customEncodingFailed`.
  func encode(
    _ urlRequest: any URLRequestConvertible, with parameters: Parameters?
  ) throws -> URLRequest
}
