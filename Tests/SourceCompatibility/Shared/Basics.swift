import Alamofire

#if IMPORTS_FOUNDATION
  import Foundation
#endif
#if IMPORTS_FOUNDATION_NETWORKING
  import FoundationNetworking
#endif

// The entry points, methods, header fields, and conversions to URLs and requests.

private func entryPoints() {
  let session: Session = AF
  _ = session === Session.default
  let version: String = AFInfo.version
  print(version)
}

private func configurations() {
  let standard: URLSessionConfiguration = .af.default
  let ephemeral = URLSessionConfiguration.af.ephemeral
  standard.headers = .default
  standard.headers.add(name: "X-App", value: "1")
  print(ephemeral.headers, ephemeral.af.type)
}

/// A type of the user with an extension of `.af`.
private struct Badge {}
extension Badge: AlamofireExtended {}
extension AlamofireExtension where ExtendedType == Badge {
  fileprivate static var title: String { "Badge" }
  fileprivate var subtitle: String { "\(type)" }
}

private func extensionPoint() {
  print(Badge.af.title, Badge().af.subtitle, AlamofireExtension(Badge()).subtitle)
}

extension HTTPMethod {
  fileprivate static let purge = HTTPMethod(rawValue: "PURGE")
}

private func methods(_ method: HTTPMethod) -> Bool {
  let all: Set<HTTPMethod> = [
    .connect, .delete, .get, .head, .options, .patch, .post, .put, .query, .trace, .purge,
  ]
  switch method {
  case .get, .head: return true
  case .post where method.rawValue == "POST": return false
  default: return all.contains(method) && method != .purge
  }
}

private func headers() {
  var headers: HTTPHeaders = ["Accept": "application/json", "X-One": "1"]
  let listed: HTTPHeaders = [.accept("text/html"), .userAgent("me"), HTTPHeader(name: "A", value: "b")]
  let others = [HTTPHeaders(), HTTPHeaders([.acceptCharset("utf-8")]), HTTPHeaders(["A": "b"])]
  headers.add(name: "X-Two", value: "2")
  headers.add(.authorization(bearerToken: "token"))
  headers.update(name: "X-Two", value: "3")
  headers.update(.authorization(username: "user", password: "password"))
  headers.remove(name: "X-One")
  headers["X-Three"] = "3"
  headers["X-Three"] = nil
  headers.sort()
  let found: String? = headers.value(for: "accept") ?? headers["accept"]
  for header in headers.sorted() { print(header.name, header.value, header.description) }
  let dictionary: [String: String] = headers.dictionary
  print(found as Any, dictionary, listed[0], listed.map(\.name), others == [headers], headers.description)
  print(Set([headers]), listed.first as Any, listed.count, listed.startIndex, listed.endIndex)
}

private func headerFactories() -> [HTTPHeader] {
  [
    .accept("a"), .acceptCharset("a"), .acceptLanguage("a"), .acceptEncoding("a"),
    .authorization("a"), .authorization(username: "a", password: "b"), .authorization(bearerToken: "a"),
    .contentDisposition("a"), .contentEncoding("a"), .contentType("a"), .userAgent("a"),
    .websocketProtocol("a"), .defaultAcceptEncoding, .defaultAcceptLanguage, .defaultUserAgent,
  ] + HTTPHeaders.default
}

private func addresses() throws {
  let convertibles: [URLConvertible] = [
    "http://localhost", URL(string: "http://localhost")!, URLComponents(string: "http://localhost")!,
  ]
  for convertible in convertibles {
    _ = try convertible.asURL()
    _ = try URLRequest(url: convertible, method: .get)
    _ = AF.request(convertible)
  }
  var request = try URLRequest(url: "http://localhost", method: .post, headers: ["A": "b"])
  request.method = .put
  request.headers = [.accept("a")]
  request.headers.add(.contentType("b"))
  try request.validate()
  let again: URLRequest? = request.urlRequest
  _ = try again?.asURLRequest()
  let response = HTTPURLResponse(url: request.url!, statusCode: 200, httpVersion: nil, headerFields: nil)
  let headers: HTTPHeaders? = response?.headers
  print(headers as Any)
}

private struct Page: URLConvertible {
  let number: Int
  func asURL() throws -> URL {
    guard number > 0 else { throw AFError.invalidURL(url: "page \(number)") }
    return try "http://localhost/\(number)".asURL()
  }
}

/// A router of a user.
private enum Router: URLRequestConvertible {
  case search(query: String, page: Int)
  case user(id: Int)

  var method: HTTPMethod {
    switch self {
    case .search: .get
    case .user: .post
    }
  }

  func asURLRequest() throws -> URLRequest {
    let url = try "http://localhost".asURL()
    var request = URLRequest(url: url.appendingPathComponent("path"))
    request.method = method
    switch self {
    case .search(let query, let page):
      return try URLEncoding.default.encode(request, with: ["q": query, "page": page])
    case .user(let id):
      return try JSONParameterEncoder().encode(["id": id], into: request)
    }
  }
}

private func routers() {
  AF.request(Router.search(query: "a", page: 1)).response { _ in }
  AF.request(Router.user(id: 1), interceptor: .retryPolicy).validate().responseString { _ in }
  AF.request(Page(number: 1)).response { _ in }
  print(Router.user(id: 1).urlRequest as Any)
}
