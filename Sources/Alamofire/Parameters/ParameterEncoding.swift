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
  /// Returns the request with the encoded parameters.
  ///
  /// - Parameters:
  ///   - urlRequest: The request.
  ///   - parameters: The parameters; for `nil`, the built-in encodings return the request unchanged.
  /// - Throws: Any error; one that is no ``AFError`` is wrapped in ``AFError/parameterEncodingFailed(reason:)`` with
  ///   `.customEncodingFailed`.
  func encode(
    _ urlRequest: any URLRequestConvertible, with parameters: Parameters?
  ) throws -> URLRequest
}
