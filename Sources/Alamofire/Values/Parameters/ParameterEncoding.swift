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
  ///   - parameters: The parameters. An encoding of your own is also called for a request without parameters, with
  ///     `nil`; the built-in encodings return such a request unchanged.
  /// - Throws: Any error; if it is not an ``AFError``, the request fails with
  ///   ``AFError/createURLRequestFailed(error:)``, which contains it.
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

/// Writes ``Parameters`` as `name=value` pairs joined by `&`, into the query or the body.
///
/// ```swift
/// let request = AF.request("https://example.com/search", parameters: ["q": "a b", "tags": ["x", "y"]])
/// // …/search?q=a%20b&tags%5B%5D=x&tags%5B%5D=y
///
/// let encoding = URLEncoding(arrayEncoding: .noBrackets, boolEncoding: .literal)
/// ```
///
/// Nested values have no standard encoding. The common one is used: `name[]` for the items of an array, `name[key]` for
/// the entries of a dictionary. Names are sorted at every level, items keep their order. A query that the URL already
/// has stays, before the new pairs.
///
/// Numbers that are whole are written without a fraction (`1.0` as `1`). A value of another type than
/// dictionary, array, number, bool and text is written as its description.
public struct URLEncoding: ParameterEncoding {
  /// The part of the request that receives the pairs.
  public enum Destination: Sendable {
    /// Into the query for `GET`, `HEAD` and `DELETE`, else into the body.
    case methodDependent
    /// Into the query.
    case queryString
    /// Into the body.
    case httpBody
  }

  /// The encoding of the name of an array item.
  public enum ArrayEncoding: Sendable {
    /// `name[]`
    case brackets
    /// `name`
    case noBrackets
    /// `name[0]`, counted from 0.
    case indexInBrackets
    /// The result of the closure, given the name and the index, counted from 0.
    @preconcurrency
    case custom(@Sendable (_ key: String, _ index: Int) -> String)

    func encode(key: String, atIndex index: Int) -> String {
      switch self {
      case .brackets: "\(key)[]"
      case .noBrackets: key
      case .indexInBrackets: "\(key)[\(index)]"
      case .custom(let encoding): encoding(key, index)
      }
    }
  }

  /// The encoding of a bool.
  public enum BoolEncoding: Sendable {
    /// `1` and `0`.
    case numeric
    /// `true` and `false`.
    case literal

    func encode(_ value: Bool) -> String {
      switch self {
      case .numeric: value ? "1" : "0"
      case .literal: value ? "true" : "false"
      }
    }
  }

  /// An encoding with all the defaults.
  public static var `default`: URLEncoding { URLEncoding() }
  /// An encoding that always writes into the query.
  public static var queryString: URLEncoding { URLEncoding(destination: .queryString) }
  /// An encoding that always writes into the body.
  public static var httpBody: URLEncoding { URLEncoding(destination: .httpBody) }

  /// The destination of the pairs.
  public let destination: Destination
  /// The encoding of the names of array items.
  public let arrayEncoding: ArrayEncoding
  /// The encoding of bools.
  public let boolEncoding: BoolEncoding

  /// Makes an encoding.
  ///
  /// - Parameters:
  ///   - destination:   The part of the request that receives the pairs; by default as the method says.
  ///   - arrayEncoding: The encoding of the names of items; by default with brackets.
  ///   - boolEncoding:  The encoding of bools; by default as `1` and `0`.
  public init(
    destination: Destination = .methodDependent, arrayEncoding: ArrayEncoding = .brackets,
    boolEncoding: BoolEncoding = .numeric
  ) {
    self.destination = destination
    self.arrayEncoding = arrayEncoding
    self.boolEncoding = boolEncoding
  }

  /// Returns the request with the parameters in its query or body.
  ///
  /// Without pairs, as for `[:]`, the query is not changed, but an empty body is set. With a body, the content type
  /// `application/x-www-form-urlencoded; charset=utf-8` is set unless the request has one.
  ///
  /// - Throws: The error of `urlRequest`; ``AFError/parameterEncodingFailed(reason:)`` with `.missingURL` if the
  ///   request has no URL.
  public func encode(
    _ urlRequest: any URLRequestConvertible, with parameters: Parameters?
  ) throws -> URLRequest {
    var request = try urlRequest.asURLRequest()
    guard let parameters else { return request }
    guard let url = request.url else { throw AFError.parameterEncodingFailed(reason: .missingURL) }
    if writesQuery(method: request.method ?? .get) {
      guard let url = url.appending(toQuery: query(parameters)) else {
        throw AFError.parameterEncodingFailed(reason: .missingURL)
      }
      request.url = url
    } else {
      request.setFormBody(query(parameters))
    }
    return request
  }

  private func writesQuery(method: HTTPMethod) -> Bool {
    switch destination {
    case .methodDependent: method.placesParametersInQuery
    case .queryString: true
    case .httpBody: false
    }
  }
}

extension URLEncoding {
  /// Returns the percent-encoded pairs that a value becomes.
  ///
  /// ```swift
  /// let pairs = URLEncoding().queryComponents(fromKey: "a", value: ["x": 1])  // [("a%5Bx%5D", "1")]
  /// ```
  ///
  /// - Parameters:
  ///   - key:   The name, not yet encoded.
  ///   - value: The value; a dictionary becomes a pair for each entry, an array one for each item.
  public func queryComponents(fromKey key: String, value: Any) -> [(String, String)] {
    var pairs: [(String, String)] = []
    append(value, key: key, to: &pairs)
    return pairs
  }

  /// Percent-encodes a text (RFC 3986 §2.1), but for the characters of
  /// `CharacterSet.afURLQueryAllowed`.
  public func escape(_ string: String) -> String {
    PercentEncoding.queryComponent.encode(string)
  }

  /// Returns all pairs in the order of their names, joined.
  func query(_ parameters: Parameters) -> String {
    var pairs: [(String, String)] = []
    for key in parameters.keys.sorted() {
      if let value = parameters[key] { append(value, key: key, to: &pairs) }
    }
    return pairs.map { "\($0)=\($1)" }.joined(separator: "&")
  }

  private func append(_ value: Any, key: String, to pairs: inout [(String, String)]) {
    if let text = value as? String {
      pairs.append((escape(key), escape(text)))
    } else if let dictionary = value as? [String: Any] {
      for (subkey, value) in dictionary.sorted(by: { $0.key < $1.key }) {
        append(value, key: "\(key)[\(subkey)]", to: &pairs)
      }
    } else if let array = value as? [Any] {
      for (index, value) in array.enumerated() {
        append(value, key: arrayEncoding.encode(key: key, atIndex: index), to: &pairs)
      }
    } else {
      pairs.append((escape(key), escape(text(of: value))))
    }
  }

  private func text(of value: Any) -> String {
    // Compares exact types first, because a cast of a number to Bool or to Int succeeds as well.
    if type(of: value) == Int.self { return "\(value)" }
    if type(of: value) == Bool.self, let bool = value as? Bool { return boolEncoding.encode(bool) }
    guard let number = value as? NSNumber else { return "\(value)" }
    return text(of: number)
  }

  /// Returns the text of a number. Linux and Apple's systems print numbers differently (`1.0` and `1`); requests must
  /// not depend on that.
  private func text(of number: NSNumber) -> String {
    guard !(number is NSDecimalNumber) else { return "\(number)" }
    // On Linux only bools have this type: an Int8 has the type of a wider integer.
    switch UInt8(bitPattern: number.objCType.pointee) {
    case UInt8(ascii: "c"), UInt8(ascii: "B"): return boolEncoding.encode(number.boolValue)
    case UInt8(ascii: "d"): return withoutEmptyFraction("\(number.doubleValue)")
    case UInt8(ascii: "f"): return withoutEmptyFraction("\(number.floatValue)")
    default: return number.stringValue
    }
  }

  private func withoutEmptyFraction(_ text: String) -> String {
    text.hasSuffix(".0") ? String(text.dropLast(2)) : text
  }
}
