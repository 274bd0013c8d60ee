public import FoundationNetworking

/// A way to put an `Encodable` value into a request.
///
/// ```swift
/// struct Search: Encodable {
///   var query: String
///   var page: Int
/// }
/// let search = Search(query: "a b", page: 1)
///
/// let query = AF.request(url, parameters: search)
/// let json = AF.request(url, method: .post, parameters: search, encoder: .json)
/// let form = AF.request(url, method: .post, parameters: search, encoder: .urlEncodedForm)
/// ```
@preconcurrency
public protocol ParameterEncoder: Sendable {
  /// Returns the request with the value in it.
  ///
  /// - Parameters:
  ///   - parameters: What to put into the request; the built-in encoders leave it alone for `nil`.
  ///   - request:    The request.
  /// - Throws: What goes wrong. An error that is not an ``AFError`` reaches the user as
  ///   ``AFError/parameterEncoderFailed(reason:)`` with `.encoderFailed`.
  func encode<Parameters: Encodable & Sendable>(
    _ parameters: Parameters?, into request: URLRequest
  ) throws -> URLRequest
}
