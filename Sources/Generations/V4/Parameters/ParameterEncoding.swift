import Alamofire
public import Foundation
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

/// Writes ``Parameters`` as `name=value` pairs joined by `&`, into the query or the body.
///
/// Names are sorted at every level, items keep their order. A query that the URL already has stays, before the new
/// pairs.
public struct URLEncoding: ParameterEncoding, Sendable {
  /// The part of the request that receives the pairs.
  public enum Destination: Sendable {
    /// Into the query for `GET`, `HEAD` and `DELETE`, else into the body.
    case methodDependent
    /// Into the query.
    case queryString
    /// Into the body.
    case httpBody
  }

  /// The form of the name of an item of an array.
  public enum ArrayEncoding: Sendable {
    /// `name[]`
    case brackets
    /// `name`
    case noBrackets
  }

  /// The form of a bool.
  public enum BoolEncoding: Sendable {
    /// `1` and `0`.
    case numeric
    /// `true` and `false`.
    case literal
  }

  /// An encoding with all the defaults.
  public static var `default`: URLEncoding { URLEncoding() }
  /// An encoding that writes where the method says; the same as ``default``.
  public static var methodDependent: URLEncoding { URLEncoding() }
  /// An encoding that always writes into the query.
  public static var queryString: URLEncoding { URLEncoding(destination: .queryString) }
  /// An encoding that always writes into the body.
  public static var httpBody: URLEncoding { URLEncoding(destination: .httpBody) }

  /// The part of the request that receives the pairs.
  public let destination: Destination
  /// The form of the names of items.
  public let arrayEncoding: ArrayEncoding
  /// The form of bools.
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

  /// Returns the request with the parameters in its query or body. A `GET` may have a body.
  ///
  /// With a body, the content type `application/x-www-form-urlencoded; charset=utf-8` is set unless the request has
  /// one.
  ///
  /// - Throws: The error of `urlRequest`; ``AFError/parameterEncodingFailed(reason:)`` with `.missingURL` if the
  ///   request has no URL.
  public func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws
    -> URLRequest
  {
    let request = try urlRequest.asURLRequest()
    do {
      return try current.encode(request, with: parameters.map(Self.current))
    } catch {
      throw legacy(error)
    }
  }

  /// Returns the percent-encoded pairs that a value becomes.
  ///
  /// - Parameters:
  ///   - key:   The name, not yet encoded.
  ///   - value: The value; a dictionary becomes a pair for each entry, an array one for each item.
  public func queryComponents(fromKey key: String, value: Any) -> [(String, String)] {
    current.queryComponents(fromKey: key, value: value)
  }

  /// Percent-encodes a text (RFC 3986 §2.1), as a name or a value of a pair.
  public func escape(_ string: String) -> String { current.escape(string) }
}

extension URLEncoding {
  private var current: Alamofire::URLEncoding {
    Alamofire::URLEncoding(
      destination: destination.current, arrayEncoding: arrayEncoding.current,
      boolEncoding: boolEncoding.current)
  }

  /// Returns the dictionary with `Sendable` values. `Sendable` has no representation at run time, so that the cast
  /// succeeds. The values are read before the call returns, on the caller's thread.
  private static func current(_ parameters: Parameters) -> Alamofire::Parameters {
    func same<T>(_ value: Any, as type: T.Type) -> T? { value as? T }
    guard let parameters = same(parameters, as: Alamofire::Parameters.self) else {
      preconditionFailure("Sendable has become a type of its own at run time")
    }
    return parameters
  }
}

extension URLEncoding.Destination {
  fileprivate var current: Alamofire::URLEncoding.Destination {
    switch self {
    case .methodDependent: .methodDependent
    case .queryString: .queryString
    case .httpBody: .httpBody
    }
  }
}

extension URLEncoding.ArrayEncoding {
  fileprivate var current: Alamofire::URLEncoding.ArrayEncoding {
    switch self {
    case .brackets: .brackets
    case .noBrackets: .noBrackets
    }
  }
}

extension URLEncoding.BoolEncoding {
  fileprivate var current: Alamofire::URLEncoding.BoolEncoding {
    switch self {
    case .numeric: .numeric
    case .literal: .literal
    }
  }
}

/// Encodes ``Parameters`` as JSON in the body, for any method.
///
/// The values are the ones that `JSONSerialization` accepts: text, numbers, bools, `NSNull`, and arrays and
/// dictionaries of these.
public struct JSONEncoding: ParameterEncoding, Sendable {
  /// An encoding that writes without spaces and in no particular order.
  public static var `default`: JSONEncoding { JSONEncoding() }
  /// An encoding that writes with line breaks and indentation.
  public static var prettyPrinted: JSONEncoding { JSONEncoding(options: .prettyPrinted) }

  /// The options of `JSONSerialization`.
  public let options: JSONSerialization.WritingOptions

  /// Makes an encoding.
  ///
  /// - Parameter options: The options of `JSONSerialization`; by default without spaces.
  public init(options: JSONSerialization.WritingOptions = []) {
    self.options = options
  }

  /// Returns the request with the parameters as its body. The content type `application/json` is set unless the
  /// request has one.
  ///
  /// - Throws: The error of `urlRequest`; ``AFError/parameterEncodingFailed(reason:)`` with `.jsonEncodingFailed` if
  ///   JSON cannot represent the parameters.
  public func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws
    -> URLRequest
  {
    try encode(urlRequest, withJSONObject: parameters)
  }

  /// Returns the request with a JSON object, such as an array, as its body. The content type `application/json` is
  /// set unless the request has one.
  ///
  /// - Parameters:
  ///   - urlRequest: The request.
  ///   - jsonObject: An array or a dictionary; with `nil`, the default, the request is returned unchanged.
  /// - Throws: The error of `urlRequest`; ``AFError/parameterEncodingFailed(reason:)`` with `.jsonEncodingFailed` if
  ///   JSON cannot represent the object, which ended the program in Alamofire 4.
  public func encode(_ urlRequest: any URLRequestConvertible, withJSONObject jsonObject: Any? = nil) throws
    -> URLRequest
  {
    let request = try urlRequest.asURLRequest()
    do {
      return try Alamofire::JSONEncoding(options: options).encode(request, withJSONObject: jsonObject)
    } catch {
      throw legacy(error)
    }
  }
}

/// Encodes ``Parameters`` as a property list in the body, for any method.
///
/// The values are the ones that `PropertyListSerialization` accepts: text, numbers, bools, dates, data, and arrays and
/// dictionaries of these.
public struct PropertyListEncoding: ParameterEncoding, Sendable {
  /// An encoding that writes XML.
  public static var `default`: PropertyListEncoding { PropertyListEncoding() }
  /// An encoding that writes XML; the same as ``default``.
  public static var xml: PropertyListEncoding { PropertyListEncoding(format: .xml) }
  /// An encoding that writes the binary format.
  public static var binary: PropertyListEncoding { PropertyListEncoding(format: .binary) }

  /// The format.
  public let format: PropertyListSerialization.PropertyListFormat
  /// The options; none are defined.
  public let options: PropertyListSerialization.WriteOptions

  /// Makes an encoding.
  ///
  /// - Parameters:
  ///   - format:  The format. Default: XML.
  ///   - options: The options of `PropertyListSerialization`. Default: 0.
  public init(
    format: PropertyListSerialization.PropertyListFormat = .xml,
    options: PropertyListSerialization.WriteOptions = 0
  ) {
    self.format = format
    self.options = options
  }

  /// Returns the request with the parameters as its body; for `nil`, unchanged. The content type
  /// `application/x-plist` is set unless the request has one.
  ///
  /// - Throws: The error of `urlRequest`; ``AFError/parameterEncodingFailed(reason:)`` with
  ///   `.propertyListEncodingFailed` if a property list cannot represent the parameters, with `.missingURL` if the
  ///   request has no URL.
  public func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws
    -> URLRequest
  {
    var request = try urlRequest.asURLRequest()
    guard let parameters else { return request }
    guard request.url != nil else { throw AFError.parameterEncodingFailed(reason: .missingURL) }
    do {
      let data = try PropertyListSerialization.data(
        fromPropertyList: parameters, format: format, options: options)
      if request.value(forHTTPHeaderField: "Content-Type") == nil {
        request.setValue("application/x-plist", forHTTPHeaderField: "Content-Type")
      }
      request.httpBody = data
    } catch {
      throw AFError.parameterEncodingFailed(reason: .propertyListEncodingFailed(error: error))
    }
    return request
  }
}
