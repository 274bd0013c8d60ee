import Alamofire
public import Foundation
public import FoundationNetworking

/// The form in which parameters are written into a request.
public enum ParameterEncoding {
  /// Pairs `name=value`: in the query for GET, HEAD and DELETE, otherwise in the body with the content type
  /// `application/x-www-form-urlencoded; charset=utf-8`. Items of arrays are called `name[]`, entries of dictionaries
  /// `name[key]`; names are sorted.
  case URL
  /// Pairs `name=value`, always in the query.
  case URLEncodedInURL
  /// JSON in the body, with the content type `application/json`.
  case JSON
  /// A property list in the body, with the content type `application/x-plist`.
  case PropertyList(
    format: PropertyListSerialization.PropertyListFormat, options: PropertyListSerialization.WriteOptions)
  /// The encoding that the closure performs. An error that the closure returns reaches the handlers.
  case Custom((any URLRequestConvertible, [String: Any]?) -> (NSMutableURLRequest, NSError?))

  /// Makes the case `PropertyList` without argument labels.
  public static func PropertyList(
    _ format: PropertyListSerialization.PropertyListFormat, _ options: PropertyListSerialization.WriteOptions
  ) -> ParameterEncoding {
    .PropertyList(format: format, options: options)
  }

  /// Returns the request with the parameters. If the parameters cannot be written, returns the unchanged request and an
  /// error. `nil` as parameters changes nothing. A content type that the request has is not replaced.
  public func encode(
    _ URLRequest: any URLRequestConvertible, parameters: [String: Any]?
  ) -> (NSMutableURLRequest, NSError?) {
    if case .Custom(let closure) = self { return closure(URLRequest, parameters) }
    // A copy, because a router may return the same object again.
    let request = URLRequest.URLRequest.URLRequest
    guard let parameters else { return (request, nil) }
    do {
      switch self {
      case .URL, .URLEncodedInURL: try write(parameters, into: request)
      case .JSON:
        guard JSONSerialization.isValidJSONObject(parameters) else { throw Self.unwritable("JSON") }
        request.setBody(try JSONSerialization.data(withJSONObject: parameters), "application/json")
      case .PropertyList(let format, let options):
        guard PropertyListSerialization.propertyList(parameters, isValidFor: format) else {
          throw Self.unwritable("a property list")
        }
        let data = try PropertyListSerialization.data(
          fromPropertyList: parameters, format: format, options: options)
        request.setBody(data, "application/x-plist")
      case .Custom: break
      }
      return (request, nil)
    } catch {
      return (request, generationThreeError(error))
    }
  }

  /// Returns the pairs of names and values, both escaped, that `.URL` writes for one parameter.
  public func queryComponents(_ key: String, _ value: Any) -> [(String, String)] {
    URLEncoding.default.queryComponents(fromKey: key, value: value)
  }

  /// Escapes all characters of a text that have a meaning in a query (RFC 3986 §3.4), except `?` and `/`.
  public func escape(_ string: String) -> String {
    URLEncoding.default.escape(string)
  }

  private func write(_ parameters: [String: Any], into request: NSMutableURLRequest) throws {
    let query = parameters.sorted { $0.key < $1.key }
      .flatMap { queryComponents($0.key, $0.value) }
      .map { "\($0)=\($1)" }.joined(separator: "&")
    guard writesQuery(method: request.httpMethod ?? "GET") else {
      return request.setBody(Data(query.utf8), "application/x-www-form-urlencoded; charset=utf-8")
    }
    guard !parameters.isEmpty else { return }
    guard let url = request.url,
      var parts = URLComponents(url: url, resolvingAgainstBaseURL: url.baseURL != nil)
    else {
      throw URLError(.badURL)
    }
    parts.percentEncodedQuery = (parts.percentEncodedQuery.map { $0 + "&" } ?? "") + query
    request.url = parts.url ?? url
  }

  private func writesQuery(method: String) -> Bool {
    if case .URLEncodedInURL = self { return true }
    return ["GET", "HEAD", "DELETE"].contains(method)
  }

  private static func unwritable(_ format: String) -> NSError {
    Alamofire.Error.error(
      domain: NSCocoaErrorDomain, code: CocoaError.propertyListWriteInvalid.rawValue,
      failureReason: "The parameters hold a value that cannot be written as \(format).")
  }
}

extension NSMutableURLRequest {
  fileprivate func setBody(_ data: Data, _ contentType: String) {
    if value(forHTTPHeaderField: "Content-Type") == nil {
      setValue(contentType, forHTTPHeaderField: "Content-Type")
    }
    httpBody = data
  }
}

/// The method of a request (RFC 9110 §9).
public enum Method: String, Sendable {
  /// Requests the options of a resource.
  case OPTIONS
  /// Fetches.
  case GET
  /// Fetches only the head.
  case HEAD
  /// Hands something in.
  case POST
  /// Replaces a resource.
  case PUT
  /// Changes a part of a resource (RFC 5789).
  case PATCH
  /// Removes a resource.
  case DELETE
  /// Asks for an echo.
  case TRACE
  /// Asks a proxy for a tunnel.
  case CONNECT
}
