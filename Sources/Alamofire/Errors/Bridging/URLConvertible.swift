public import Foundation
public import FoundationNetworking
public import HTTPWire

/// Something that can be a URL.
///
/// `String`, `URL` and `URLComponents` are; a type of one's own can be, for example an enum of endpoints:
///
/// ```swift
/// enum Endpoint: URLConvertible {
///   case user(Int)
///
///   func asURL() throws -> URL {
///     switch self {
///     case .user(let id): try "https://example.com/users/\(id)".asURL()
///     }
///   }
/// }
/// ```
@preconcurrency
public protocol URLConvertible: Sendable {
  /// Returns the URL, or throws; the errors of the built-in types are ``AFError/invalidURL(url:)``.
  func asURL() throws -> URL
}

extension String: URLConvertible {
  // The member of an older generation takes precedence where both are visible.
  /// Returns the URL of this text (RFC 3986).
  ///
  /// Only a text that is not a URL reference at all fails. `"invalid"` is one (a relative path), so it passes here and
  /// fails when it is sent.
  ///
  /// - Throws: ``AFError/invalidURL(url:)``.
  @_disfavoredOverload
  public func asURL() throws -> URL {
    guard let url = URL(string: self) else { throw AFError.invalidURL(url: self) }
    return url
  }
}

extension URL: URLConvertible {
  // The member of an older generation takes precedence where both are visible.
  /// Returns itself.
  @_disfavoredOverload
  public func asURL() throws -> URL { self }
}

extension URLComponents: URLConvertible {
  // The member of an older generation takes precedence where both are visible.
  /// Returns the URL of the components.
  ///
  /// - Throws: ``AFError/invalidURL(url:)`` when they do not go together, such as a host and a path that
  ///   does not begin with a slash.
  @_disfavoredOverload
  public func asURL() throws -> URL {
    guard let url else { throw AFError.invalidURL(url: self) }
    return url
  }
}

/// Something that can be a `URLRequest`.
///
/// `URLRequest` is; a type of one's own, such as a router, can be:
///
/// ```swift
/// enum Router: URLRequestConvertible {
///   case createUser(Data)
///
///   func asURLRequest() throws -> URLRequest {
///     switch self {
///     case .createUser(let body):
///       var request = try URLRequest(url: "https://example.com/users", method: .post)
///       request.httpBody = body
///       return request
///     }
///   }
/// }
/// ```
@preconcurrency
public protocol URLRequestConvertible: Sendable {
  /// Returns the request, or throws. An error that is not an ``AFError`` reaches the user as
  /// ``AFError/createURLRequestFailed(error:)``.
  func asURLRequest() throws -> URLRequest
}

extension URLRequestConvertible {
  // The member of an older generation takes precedence where both are visible.
  /// The request, or `nil` if it could not be created; ``asURLRequest()`` says why.
  @_disfavoredOverload
  public var urlRequest: URLRequest? { try? asURLRequest() }
}

extension URLRequest: URLRequestConvertible {
  // The member of an older generation takes precedence where both are visible.
  /// Returns itself.
  @_disfavoredOverload
  public func asURLRequest() throws -> URLRequest { self }
}

extension URLRequest {
  // The member of an older generation takes precedence where both are visible.
  /// Makes a request.
  ///
  /// - Parameters:
  ///   - url:     The URL.
  ///   - method:  The method.
  ///   - headers: The header fields; `nil`, the default, sets none. A `URLRequest` does not keep their order.
  /// - Throws: The error of `url`; ``AFError/invalidURL(url:)`` for the built-in types.
  @_disfavoredOverload
  public init(url: any URLConvertible, method: HTTPMethod, headers: HTTPHeaders? = nil) throws {
    self.init(url: try url.asURL())
    setHead(method, headers)
  }

  /// Sets the method and the header fields of a new request.
  mutating func setHead(_ method: HTTPMethod, _ headers: HTTPHeaders?) {
    if method != .get { httpMethod = method.rawValue }  // Each change of a URLRequest costs microseconds.
    if let headers { allHTTPHeaderFields = headers.dictionary }
  }

  /// The method, as a value; `nil` when the request has none. Foundation reads a `nil` that is set here
  /// as `GET`.
  public var method: HTTPMethod? {
    get { httpMethod.map(HTTPMethod.init(rawValue:)) }
    set { httpMethod = newValue?.rawValue }
  }

  /// Checks that the request may be sent.
  ///
  /// A body that is a stream is not looked at.
  ///
  /// - Throws: ``AFError/urlRequestValidationFailed(reason:)`` when a `GET` has a body (RFC 9110 §9.3.1
  ///   gives it no meaning, and servers and proxies treat it differently).
  public func validate() throws {
    try validate(allowingBodyInGET: false)
  }

  /// Checks that the request may be sent; a `GET` with a body passes when it is allowed.
  package func validate(allowingBodyInGET allowed: Bool) throws {
    guard !allowed, httpMethod == HTTPMethod.get.rawValue, let httpBody else { return }
    throw AFError.urlRequestValidationFailed(reason: .bodyDataInGETRequest(httpBody))
  }
}

extension URLRequest {
  /// Whether a copy can be changed. Foundation on Linux ends the process when a copy of a request without a URL is
  /// changed. Such a request is passed on unchanged, because the transport refuses it.
  var isChangeable: Bool { url != nil }

  /// The header fields. Reading gives them in no particular order, since a `URLRequest` keeps none;
  /// writing replaces all of them.
  public var headers: HTTPHeaders {
    get { allHTTPHeaderFields.map(HTTPHeaders.init) ?? HTTPHeaders() }
    set { allHTTPHeaderFields = newValue.dictionary }
  }
}

extension HTTPURLResponse {
  /// The header fields, in no particular order; empty when they are not all text.
  public var headers: HTTPHeaders {
    (allHeaderFields as? [String: String]).map(HTTPHeaders.init) ?? HTTPHeaders()
  }
}

// Bug in Foundation: if a component has a character that RFC 3986 does not allow there, `URL(string:)` escapes the
// whole component, including its escapes: `?a[]=1&b=%20` becomes `?a%5B%5D=1&b=%2520`.
extension URL {
  /// Makes the URL of a text that a server has named or that was sent. Its escapes are preserved.
  ///
  /// Every URL of such a text is created here. The caller's text is parsed as Foundation does.
  init?(wire text: String) {
    self.init(string: Self.wireText(text))
  }

  /// Returns the text of a URL in which each invalid character of path, query and fragment is escaped, once.
  package static func wireText(_ text: String) -> String {
    let isPlain = text.utf8.allSatisfy { PercentEncoding.query.allows($0) || $0 == UInt8(ascii: "#") }
    return isPlain ? text : URIReference(text).strictText
  }
}

/// The schemes of WebSocket URLs (RFC 6455 §3) and of their handshakes.
enum WebSocketURL {
  /// Returns the URL of the handshake: `ws:` becomes `http:`, `wss:` becomes `https:`. Any other URL is unchanged, and
  /// so is a relative reference.
  static func http(_ text: String) -> String {
    guard let colon = text.firstIndex(of: ":") else { return text }
    return switch text[..<colon].lowercased() {
    case "ws": "http" + text.dropFirst(2)
    case "wss": "https" + text.dropFirst(3)
    default: text
    }
  }

  /// Returns the WebSocket URL of a handshake with an `http:` or `https:` URL.
  static func webSocket(_ text: String) -> String {
    text.hasPrefix("http") ? "ws" + text.dropFirst(4) : text
  }
}
