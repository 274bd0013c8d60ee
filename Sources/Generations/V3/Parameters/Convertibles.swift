import Alamofire
public import Foundation
public import FoundationNetworking

/// A value that becomes a URL request: `NSURLRequest`, `NSMutableURLRequest`, `URLRequest`, and routers.
///
/// ```swift
/// enum Router: URLRequestConvertible {
///   case ReadUser(String)
///
///   var URLRequest: NSMutableURLRequest {
///     switch self {
///     case .ReadUser(let name):
///       return NSMutableURLRequest(url: URL(string: "https://example.com/users/\(name)")!)
///     }
///   }
/// }
/// ```
///
/// It is read once for each request, on the caller's thread, before the function that makes the request returns.
public protocol URLRequestConvertible {
  /// The request. The returned object is not changed.
  var URLRequest: NSMutableURLRequest { get }
}

extension NSURLRequest: URLRequestConvertible {
  /// A copy of this request; an empty request if this one has no URL, because Foundation cannot copy it.
  public var URLRequest: NSMutableURLRequest {
    guard let url else { return .withoutURL }
    return (mutableCopy() as? NSMutableURLRequest) ?? NSMutableURLRequest(url: url)
  }
}

extension URLRequest: URLRequestConvertible {
  /// The request as an object; an empty request if this one has no URL, because Foundation cannot copy it.
  public var URLRequest: NSMutableURLRequest {
    url == nil ? .withoutURL : (self as NSURLRequest).URLRequest
  }
}

extension NSMutableURLRequest {
  /// A new request without a URL.
  fileprivate static var withoutURL: NSMutableURLRequest {
    let request = NSMutableURLRequest(url: .placeholder)
    request.url = nil
    return request
  }
}

extension NSURLRequest {
  /// The request as a value.
  var value: FoundationNetworking.URLRequest {
    FoundationNetworking.URLRequest._unconditionallyBridgeFromObjectiveC(self)
  }
}

extension URL {
  /// For a request that must have some URL; nothing can be sent there.
  static let placeholder = URL(fileURLWithPath: "/", isDirectory: true)
}

/// Something that can be the text of a URL.
///
/// `String`, `URL`, `URLComponents` and `URLRequest` are, and their classes `NSString`, `NSURL`, `NSURLComponents` and
/// `NSURLRequest`. A text that is not a URL gives a request whose handlers receive an error.
public protocol URLStringConvertible {
  /// The text of a URL (RFC 3986).
  var URLString: String { get }
}

extension String: URLStringConvertible {
  /// The text itself.
  public var URLString: String { self }
}

extension NSString: URLStringConvertible {
  /// The text itself.
  public var URLString: String { description }
}

extension URL: URLStringConvertible {
  /// The absolute text.
  public var URLString: String { absoluteString }
}

extension NSURL: URLStringConvertible {
  /// The absolute text.
  public var URLString: String { absoluteString }
}

extension URLComponents: URLStringConvertible {
  /// The text of the URL of the components; empty when they do not go together.
  public var URLString: String { url?.absoluteString ?? "" }
}

extension NSURLComponents: URLStringConvertible {
  /// The text of the URL of the components; empty when they do not go together.
  public var URLString: String { url?.absoluteString ?? "" }
}

extension URLRequest: URLStringConvertible {
  /// The text of the URL of the request; empty when it has none.
  public var URLString: String { url?.absoluteString ?? "" }
}

extension NSURLRequest: URLStringConvertible {
  /// The text of the URL of the request; empty when it has none.
  public var URLString: String { url?.absoluteString ?? "" }
}

/// The request that was created from the caller's arguments, on the caller's thread, or the error.
struct PreparedRequest: Alamofire::URLRequestConvertible {
  private let result: Swift.Result<URLRequest, NSError>

  /// The request, if there is one.
  var value: URLRequest? { try? result.get() }

  func asURLRequest() throws -> URLRequest { try result.get() }

  /// The request of a resumed download, which only the core knows.
  static let unknown = PreparedRequest(.failure(badURL("")))

  private init(_ result: Swift.Result<URLRequest, NSError>) { self.result = result }

  init(_ convertible: any URLRequestConvertible) {
    // A value need not become an object and a value again. Without the comparison, Foundation would copy an object, and
    // end the process if that has no URL.
    if type(of: convertible) == URLRequest.self, let request = convertible as? URLRequest, request.url != nil
    {
      result = .success(request)
    } else {
      result = Self.result(convertible.URLRequest)
    }
  }

  init(
    _ method: Method, _ url: any URLStringConvertible, headers: [String: String]?,
    parameters: [String: Any]? = nil, encoding: ParameterEncoding = .URL
  ) {
    guard let request = Self.request(of: url) else {
      result = .failure(Self.badURL(url.URLString))
      return
    }
    request.httpMethod = method.rawValue
    for (name, value) in headers ?? [:] { request.setValue(value, forHTTPHeaderField: name) }
    let (encoded, error) = encoding.encode(request, parameters: parameters)
    result = error.map { .failure($0) } ?? Self.result(encoded)
  }

  /// Returns the value of a request. Foundation ends the process that copies a request without a URL.
  private static func result(_ request: NSMutableURLRequest) -> Swift.Result<URLRequest, NSError> {
    request.url == nil ? .failure(badURL("")) : .success(request.value)
  }

  /// Returns a request that may be changed: a copy if the URL is given as a request. `nil` without a URL.
  private static func request(of url: any URLStringConvertible) -> NSMutableURLRequest? {
    // Before the casts, which copy the request.
    guard let plain = URL(string: url.URLString) else { return nil }
    return switch url {
    case let request as NSURLRequest: request.URLRequest
    case let request as URLRequest: request.URLRequest
    default: NSMutableURLRequest(url: plain)
    }
  }

  /// Returns a copy with another content type.
  func with(contentType: String) -> PreparedRequest {
    PreparedRequest(
      result.map { request in
        var request = request
        request.setValue(contentType, forHTTPHeaderField: "Content-Type")
        return request
      })
  }

  private static func badURL(_ text: String) -> NSError {
    // The core leaves out passwords.
    Alamofire.Error.error(
      domain: NSURLErrorDomain, code: NSURLErrorBadURL,
      failureReason: text.isEmpty ? "There is no URL." : AFError.invalidURL(url: text).localizedDescription,
      info: [:])
  }
}
