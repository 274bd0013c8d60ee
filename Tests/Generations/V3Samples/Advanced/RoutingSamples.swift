import AlamofireV3
import HTTPTestServer
import Testing

extension Samples {
  @Suite struct Routing {
    let site: Site

    init() throws { site = try Site() }

    // URLStringConvertible
    @Test func sample40_URLStrings() async throws {
      let string = NSString(string: "https://httpbin.org/post")
      Alamofire.request(.POST, string)

      let URL = NSURL(string: "\(string)")!
      Alamofire.request(.POST, URL)

      let URLRequest = NSURLRequest(url: URL as Foundation.URL)
      Alamofire.request(.POST, URLRequest)  // overrides `HTTPMethod` of `URLRequest`

      let URLComponents = NSURLComponents(url: URL as Foundation.URL, resolvingAgainstBaseURL: true)!
      Alamofire.request(.POST, URLComponents)

      for _ in 1...4 {
        let request = try await site.request()
        #expect("\(request.method) \(request.target)" == "POST /post")
      }
    }

    // Type-Safe Routing
    @Test func sample41_modelAsURL() async throws {
      let user = User(username: "mattt")
      Alamofire.request(.GET, user)  // http://example.com/users/mattt

      let request = try await site.plain.takeRequest()
      #expect(request.header("Host") == "example.com")
      #expect(request.target == "/users/mattt/")
    }

    // URLRequestConvertible
    @Test func sample42_URLRequests() async throws {
      let URL = NSURL(string: "https://httpbin.org/post")!
      let mutableURLRequest = NSMutableURLRequest(url: URL as Foundation.URL)
      mutableURLRequest.httpMethod = "POST"

      let parameters = ["foo": "bar"]

      do {
        mutableURLRequest.httpBody = try JSONSerialization.data(
          withJSONObject: parameters, options: JSONSerialization.WritingOptions())
      } catch {
        // No-op
      }

      mutableURLRequest.setValue("application/json", forHTTPHeaderField: "Content-Type")

      Alamofire.request(mutableURLRequest)

      let request = try await site.request()
      #expect("\(request.method) \(request.target)" == "POST /post")
      #expect(request.header("Content-Type") == "application/json")
      #expect(request.bodyText == #"{"foo":"bar"}"#)
    }

    // API Parameter Abstraction
    enum Router: URLRequestConvertible {
      static let baseURLString = "http://example.com"
      static let perPage = 50

      case Search(query: String, page: Int)

      // MARK: URLRequestConvertible

      var URLRequest: NSMutableURLRequest {
        let result: (path: String, parameters: [String: Any]) = {
          switch self {
          // The document writes `page > 1`, with which its own page 1 has no offset; the next generation's has this.
          case .Search(let query, let page) where page > 0:
            return ("/search", ["q": query, "offset": Router.perPage * page])
          case .Search(let query, _):
            return ("/search", ["q": query])
          }
        }()

        let URL = NSURL(string: Router.baseURLString)!
        let URLRequest = NSURLRequest(url: URL.appendingPathComponent(result.path)!)
        let encoding = Alamofire.ParameterEncoding.URL

        return encoding.encode(URLRequest, parameters: result.parameters).0
      }
    }

    @Test func sample43_routerOfParameters() async throws {
      Alamofire.request(Router.Search(query: "foo bar", page: 1))  // ?q=foo%20bar&offset=50

      // Names were always sorted.
      #expect(try await site.plain.takeRequest().target == "/search?offset=50&q=foo%20bar")
      Alamofire.request(Router.Search(query: "foo bar", page: 0))
      #expect(try await site.plain.takeRequest().target == "/search?q=foo%20bar")
    }

    // CRUD & Authorization
    enum UserRouter: URLRequestConvertible {
      static let baseURLString = "http://example.com"
      static var OAuthToken: String?

      case CreateUser([String: Any])
      case ReadUser(String)
      case UpdateUser(String, [String: Any])
      case DestroyUser(String)

      var method: Alamofire.Method {
        switch self {
        case .CreateUser:
          return .POST
        case .ReadUser:
          return .GET
        case .UpdateUser:
          return .PUT
        case .DestroyUser:
          return .DELETE
        }
      }

      var path: String {
        switch self {
        case .CreateUser:
          return "/users"
        case .ReadUser(let username):
          return "/users/\(username)"
        case .UpdateUser(let username, _):
          return "/users/\(username)"
        case .DestroyUser(let username):
          return "/users/\(username)"
        }
      }

      // MARK: URLRequestConvertible

      var URLRequest: NSMutableURLRequest {
        let URL = NSURL(string: UserRouter.baseURLString)!
        let mutableURLRequest = NSMutableURLRequest(url: URL.appendingPathComponent(path)!)
        mutableURLRequest.httpMethod = method.rawValue

        if let token = UserRouter.OAuthToken {
          mutableURLRequest.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
        }

        switch self {
        case .CreateUser(let parameters):
          return Alamofire.ParameterEncoding.JSON.encode(mutableURLRequest, parameters: parameters).0
        case .UpdateUser(_, let parameters):
          return Alamofire.ParameterEncoding.URL.encode(mutableURLRequest, parameters: parameters).0
        default:
          return mutableURLRequest
        }
      }
    }

    @Test func sample44_routerOfUsers() async throws {
      UserRouter.OAuthToken = nil
      Alamofire.request(UserRouter.ReadUser("mattt"))  // GET /users/mattt

      let read = try await site.plain.takeRequest()
      #expect("\(read.method) \(read.target)" == "GET /users/mattt")
      #expect(read.header("Authorization") == nil)

      UserRouter.OAuthToken = "1234"
      Alamofire.request(UserRouter.CreateUser(["name": "Ada"]))
      let create = try await site.plain.takeRequest()
      #expect("\(create.method) \(create.target) \(create.bodyText)" == "POST /users {\"name\":\"Ada\"}")
      #expect(create.header("Authorization") == "Bearer 1234")
      Alamofire.request(UserRouter.UpdateUser("ada", ["name": "Ada"]))
      let update = try await site.plain.takeRequest()
      #expect("\(update.method) \(update.target) \(update.bodyText)" == "PUT /users/ada name=Ada")
      Alamofire.request(UserRouter.DestroyUser("ada"))
      #expect(try await site.plain.takeRequest().method == "DELETE")
    }
  }
}
