import AlamofireV4
import Testing

/// A class with variables, as routers of this generation may have.
private final class CountingRouter: URLRequestConvertible, URLConvertible {
  var count = 0
  var fails = false
  struct Mishap: Error {}

  func asURL() throws -> URL {
    count += 1
    if fails { throw Mishap() }
    return try "http://a.test/\(count)".asURL()
  }

  func asURLRequest() throws -> URLRequest { try URLRequest(url: self, method: .patch) }
}

@Suite("URLs, requests, methods") struct ConvertibleTests {
  @Test("Types of Foundation convert to URLs") func urls() throws {
    let text = "http://a.test/x"
    let url = try #require(URL(string: text))
    #expect(try text.asURL() == url)
    #expect(try url.asURL() == url)
    #expect(try URLComponents(url: url, resolvingAgainstBaseURL: true)?.asURL() == url)
  }

  @Test("An invalid URL is an error of this module") func invalidURL() {
    let text = #expect(throws: AFError.self) { try "http://[".asURL() }
    #expect(text?.isInvalidURLError == true)
    #expect(text?.urlConvertible as? String == "http://[")
    var components = URLComponents()
    components.host = "a.test"
    components.path = "without/slash"
    let parts = #expect(throws: AFError.self) { try components.asURL() }
    #expect(parts?.urlConvertible is URLComponents)
  }

  @Test("A request is created from URL, method and headers") func request() throws {
    let request = try URLRequest(url: "http://a.test/", method: .put, headers: ["X-A": "1"])
    #expect(request.httpMethod == "PUT")
    #expect(request.allHTTPHeaderFields == ["X-A": "1"])
    #expect(try URLRequest(url: "http://a.test/", method: .get).httpMethod == "GET")
    #expect(throws: AFError.self) { try URLRequest(url: "http://[", method: .get) }
  }

  @Test("A request and a router convert to requests") func requests() throws {
    let request = try URLRequest(url: "http://a.test/", method: .post)
    #expect(request.urlRequest == request)
    #expect(try request.asURLRequest() == request)
    let router = CountingRouter()
    #expect(router.urlRequest?.url?.path == "/1")
    #expect(try router.asURLRequest().httpMethod == "PATCH")
    router.fails = true
    #expect(router.urlRequest == nil)
    #expect(throws: CountingRouter.Mishap.self) { try router.asURLRequest() }
  }

  @Test("Methods are an enumeration") func methods() {
    let methods: [HTTPMethod] = [.options, .get, .head, .post, .put, .patch, .delete, .trace, .connect]
    let names = ["OPTIONS", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT"]
    #expect(methods.map(\.rawValue) == names)
    #expect(HTTPMethod(rawValue: "BREW") == nil)
  }

  @Test("Every type has its name in the namespace") func namespace() {
    let values: [(Any.Type, Any.Type)] = [
      (Alamofire.AFError.self, AFError.self), (Alamofire.Timeline.self, Timeline.self),
      (Alamofire.Result<Int>.self, Result<Int>.self), (Alamofire.HTTPHeaders.self, HTTPHeaders.self),
      (Alamofire.DataResponse<Int>.self, DataResponse<Int>.self),
      (Alamofire.HTTPMethod.self, HTTPMethod.self),
      (Alamofire.URLEncoding.self, URLEncoding.self), (Alamofire.Parameters.self, Parameters.self),
      (Alamofire.ServerTrustPolicy.self, ServerTrustPolicy.self),
      (Alamofire.MultipartFormData.self, MultipartFormData.self),
    ]
    for (name, type) in values { #expect(ObjectIdentifier(name) == ObjectIdentifier(type)) }
  }

  @Test("Notifications have their names of the generation") func notifications() {
    let names: [Notification.Name] = [
      Notification.Name.Task.DidResume, Notification.Name.Task.DidSuspend, Notification.Name.Task.DidCancel,
      Notification.Name.Task.DidComplete,
    ]
    let events = ["didResume", "didSuspend", "didCancel", "didComplete"]
    #expect(names.map(\.rawValue) == events.map { "org.alamofire.notification.name.task.\($0)" })
    #expect(Notification.Key.Task == "org.alamofire.notification.key.task")
    #expect(Notification.Key.ResponseData == "org.alamofire.notification.key.responseData")
  }
}
