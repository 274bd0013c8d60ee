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
    let request = convertible.URLRequest
    result = request.url == nil ? .failure(Self.badURL("")) : .success(request.value)
  }

  init(
    _ method: Method, _ url: any URLStringConvertible, headers: [String: String]?,
    parameters: [String: Any]? = nil, encoding: ParameterEncoding = .URL
  ) {
    let text = url.URLString
    guard let url = URL(string: text) else {
      result = .failure(Self.badURL(text))
      return
    }
    let request = NSMutableURLRequest(url: url)
    request.httpMethod = method.rawValue
    for (name, value) in headers ?? [:] { request.setValue(value, forHTTPHeaderField: name) }
    let (encoded, error) = encoding.encode(request, parameters: parameters)
    result = error.map { .failure($0) } ?? .success(encoded.value)
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
    Alamofire.Error.error(
      domain: NSURLErrorDomain, code: NSURLErrorBadURL,
      failureReason: text.isEmpty ? "There is no URL." : "This is no URL: \(text)",
      info: [:])
  }
}
