import Alamofire
import Foundation
import FoundationNetworking

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
    result = Self.result(convertible.URLRequest)
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
