import Alamofire
public import FoundationNetworking

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
