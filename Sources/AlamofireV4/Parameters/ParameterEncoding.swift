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
  /// Returns the request with the parameters in it. Called once for a request, on the thread that makes it.
  ///
  /// - Parameters:
  ///   - urlRequest: The request.
  ///   - parameters: What to put into it; the built-in encodings leave the request alone for `nil`.
  /// - Throws: What goes wrong; it reaches the handlers untouched.
  func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest
}
