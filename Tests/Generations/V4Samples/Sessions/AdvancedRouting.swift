import AlamofireV4
import Foundation
import HTTPTestServer
import Testing

// The advanced usage of 4.x: conversions to URLs and requests.

private struct User {
  let username: String
}

extension User: URLConvertible {
  static let baseURLString = "https://example.com"

  func asURL() throws -> URL {
    let urlString = User.baseURLString + "/users/\(username)/"
    return try urlString.asURL()
  }
}

private enum SearchRouter: URLRequestConvertible {
  case search(query: String, page: Int)

  static let baseURLString = "https://example.com"
  static let perPage = 50

  // MARK: URLRequestConvertible

  func asURLRequest() throws -> URLRequest {
    let result: (path: String, parameters: Parameters) = {
      switch self {
      case let .search(query, page) where page > 0:
        return ("/search", ["q": query, "offset": SearchRouter.perPage * page])
      case let .search(query, _):
        return ("/search", ["q": query])
      }
    }()

    let url = try SearchRouter.baseURLString.asURL()
    let urlRequest = URLRequest(url: url.appendingPathComponent(result.path))

    return try URLEncoding.default.encode(urlRequest, with: result.parameters)
  }
}

private enum Router: URLRequestConvertible {
  case createUser(parameters: Parameters)
  case readUser(username: String)
  case updateUser(username: String, parameters: Parameters)
  case destroyUser(username: String)

  static let baseURLString = "https://example.com"

  var method: HTTPMethod {
    switch self {
    case .createUser:
      return .post
    case .readUser:
      return .get
    case .updateUser:
      return .put
    case .destroyUser:
      return .delete
    }
  }

  var path: String {
    switch self {
    case .createUser:
      return "/users"
    case .readUser(let username):
      return "/users/\(username)"
    case .updateUser(let username, _):
      return "/users/\(username)"
    case .destroyUser(let username):
      return "/users/\(username)"
    }
  }

  // MARK: URLRequestConvertible

  func asURLRequest() throws -> URLRequest {
    let url = try Router.baseURLString.asURL()

    var urlRequest = URLRequest(url: url.appendingPathComponent(path))
    urlRequest.httpMethod = method.rawValue

    switch self {
    case .createUser(let parameters):
      urlRequest = try URLEncoding.default.encode(urlRequest, with: parameters)
    case .updateUser(_, let parameters):
      urlRequest = try URLEncoding.default.encode(urlRequest, with: parameters)
    default:
      break
    }

    return urlRequest
  }
}

extension Samples {
  @Suite struct AdvancedRouting {
    let environment: SampleEnvironment
    init() throws { environment = try SampleEnvironment.set() }

    @Test func urlConvertible() async throws {
      let urlString = "https://httpbin.org/post"
      Alamofire.request(urlString, method: .post)

      let url = URL(string: urlString)!
      Alamofire.request(url, method: .post)

      let urlComponents = URLComponents(url: url, resolvingAgainstBaseURL: true)!
      // Seed 000 has `Alamofire.request(.post, URLComponents)` here, which is the API of 3.x.
      Alamofire.request(urlComponents, method: .post)

      #expect(
        try await environment.requests(3).map { "\($0.method) \($0.path)" }
          == Array(repeating: "POST /post", count: 3))
    }

    @Test func typeSafeURLs() async throws {
      let user = User(username: "mattt")
      Alamofire.request(user)  // https://example.com/users/mattt

      let request = try await environment.request()
      #expect(request.path == "/users/mattt/")
      #expect(request.header("Host") == "example.com")
    }

    @Test func urlRequestConvertible() async throws {
      let url = URL(string: "https://httpbin.org/post")!
      var urlRequest = URLRequest(url: url)
      urlRequest.httpMethod = "POST"

      let parameters = ["foo": "bar"]

      do {
        urlRequest.httpBody = try JSONSerialization.data(withJSONObject: parameters, options: [])
      } catch {
        // No-op
      }

      urlRequest.setValue("application/json", forHTTPHeaderField: "Content-Type")

      Alamofire.request(urlRequest)

      let request = try await environment.request()
      #expect(request.method == "POST")
      #expect(request.bodyText == #"{"foo":"bar"}"#)
      #expect(request.header("Content-Type") == "application/json")
    }

    @Test func parameterAbstraction() async throws {
      Alamofire.request(SearchRouter.search(query: "foo bar", page: 1))  // ?q=foo%20bar&offset=50

      // In the order of the keys.
      #expect(try await environment.request().target == "/search?offset=50&q=foo%20bar")
    }

    @Test func crudAndAuthorization() async throws {
      // The document omits the label `username:`.
      Alamofire.request(Router.readUser(username: "mattt"))  // GET /users/mattt
      let read = try await environment.request()
      #expect("\(read.method) \(read.path)" == "GET /users/mattt")

      Alamofire.request(Router.createUser(parameters: ["name": "Ada"]))
      let create = try await environment.request()
      #expect("\(create.method) \(create.path) \(create.bodyText)" == "POST /users name=Ada")

      Alamofire.request(Router.updateUser(username: "ada", parameters: ["name": "Ada"]))
      let update = try await environment.request()
      #expect("\(update.method) \(update.path) \(update.bodyText)" == "PUT /users/ada name=Ada")

      Alamofire.request(Router.destroyUser(username: "ada"))
      #expect(try await environment.request().method == "DELETE")
    }
  }
}
