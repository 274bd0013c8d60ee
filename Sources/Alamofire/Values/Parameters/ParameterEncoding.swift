public import Foundation
public import FoundationNetworking
package import HTTPWire

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
  /// - Throws: Any error; if it is not an ``AFError``, it is wrapped in ``AFError/parameterEncodingFailed(reason:)``
  ///   with `.customEncodingFailed`.
  func encode(
    _ urlRequest: any URLRequestConvertible, with parameters: Parameters?
  ) throws -> URLRequest
}

/// Encodes ``Parameters`` as JSON in the body.
///
/// ```swift
/// let request = AF.request(
///   url, method: .post, parameters: ["name": "Ada", "age": 36], encoding: JSONEncoding.default)
/// ```
///
/// The values are the ones that `JSONSerialization` accepts: text, numbers, bools, `NSNull`, and arrays and
/// dictionaries of these.
public struct JSONEncoding: ParameterEncoding {
  /// An error of this encoder; it is wrapped in ``AFError/parameterEncodingFailed(reason:)``.
  public enum Error: Swift.Error {
    /// JSON cannot represent the value.
    case invalidJSONObject
  }

  /// An encoding without whitespace; the order of names is undefined.
  public static var `default`: JSONEncoding { JSONEncoding() }
  /// An encoding that writes with line breaks and indentation.
  public static var prettyPrinted: JSONEncoding { JSONEncoding(options: .prettyPrinted) }

  /// The options of `JSONSerialization`.
  public let options: JSONSerialization.WritingOptions

  /// Makes an encoding.
  ///
  /// - Parameter options: The options of `JSONSerialization`; by default none, which writes no whitespace.
  public init(options: JSONSerialization.WritingOptions = []) {
    self.options = options
  }

  /// Returns the request with the parameters as its body. The content type `application/json` is set unless the
  /// request has one.
  ///
  /// - Throws: The error of `urlRequest`; ``AFError/parameterEncodingFailed(reason:)`` with `.jsonEncodingFailed` if
  ///   JSON cannot represent the parameters, with `.missingURL` if the request has no URL.
  public func encode(
    _ urlRequest: any URLRequestConvertible, with parameters: Parameters?
  ) throws -> URLRequest {
    try encode(urlRequest, withJSONObject: parameters)
  }

  /// Returns the request with a JSON object, such as an array, as its body. The content type `application/json` is
  /// set unless the request has one.
  ///
  /// - Parameters:
  ///   - urlRequest: The request.
  ///   - jsonObject: An array or a dictionary; with `nil`, the default, the request is returned unchanged.
  /// - Throws: The error of `urlRequest`; ``AFError/parameterEncodingFailed(reason:)`` with `.jsonEncodingFailed` if
  ///   JSON cannot represent the object, with `.missingURL` if the request has no URL.
  public func encode(
    _ urlRequest: any URLRequestConvertible, withJSONObject jsonObject: Any? = nil
  ) throws -> URLRequest {
    var request = try urlRequest.asURLRequest()
    guard let jsonObject else { return request }
    guard request.url != nil else { throw AFError.parameterEncodingFailed(reason: .missingURL) }
    guard JSONSerialization.isValidJSONObject(jsonObject) else {
      throw AFError.parameterEncodingFailed(
        reason: .jsonEncodingFailed(error: Error.invalidJSONObject))
    }
    do {
      let data = try JSONSerialization.data(withJSONObject: jsonObject, options: options)
      request.setContentTypeIfAbsent("application/json")
      request.httpBody = data
    } catch {
      throw AFError.parameterEncodingFailed(reason: .jsonEncodingFailed(error: error))
    }
    return request
  }
}

extension JSONEncoding.Error: LocalizedError {
  /// The error message: the values that JSON can represent.
  public var errorDescription: String? {
    switch self {
    case .invalidJSONObject:
      "JSON holds an array or a dictionary at its root, and in it text, finite numbers, bools and NSNull "
        + "only. Convert other values, such as dates and data, first."
    }
  }
}

extension JSONEncoding.Error: NSErrorConvertible {}

extension HTTPMethod {
  /// Whether parameters go into the query of a request with this method by default.
  package var placesParametersInQuery: Bool {
    self == .get || self == .head || self == .delete
  }
}

// The request must have a URL: Foundation on Linux traps when a copy of one without is changed.
extension URLRequest {
  /// Sets the content type, unless there is one already.
  package mutating func setContentTypeIfAbsent(_ type: String) {
    var fields = allHTTPHeaderFields ?? [:]
    guard !fields.keys.contains(where: { FieldName.equal($0, "Content-Type") }) else { return }
    fields["Content-Type"] = type
    allHTTPHeaderFields = fields
  }

  /// Makes a form (WHATWG URL §5) the body.
  package mutating func setFormBody(_ form: String) {
    setContentTypeIfAbsent("application/x-www-form-urlencoded; charset=utf-8")
    httpBody = Data(form.utf8)
  }
}

extension URL {
  /// Returns this URL with a percent-encoded text added to its query; `nil` if the URL cannot be parsed.
  ///
  /// Characters that are invalid in a query are encoded first, because Foundation traps on them.
  package func appending(toQuery text: String) -> URL? {
    guard !text.isEmpty else { return self }
    guard var components = URLComponents(url: self, resolvingAgainstBaseURL: baseURL != nil) else {
      return nil
    }
    let addition = PercentEncoding.query.repair(text)
    if let query = components.percentEncodedQuery, !query.isEmpty {
      components.percentEncodedQuery = "\(query)&\(addition)"
    } else {
      components.percentEncodedQuery = addition
    }
    return components.url
  }
}
