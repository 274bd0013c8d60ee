import AlamofireV4
import Foundation
import HTTPTestServer
import Testing

@Suite("Factories", .timeLimit(.minutes(5))) struct FactoryTests {
  private let server: HTTPTestServer
  private let manager = SessionManager.isolated()

  init() throws { server = try HTTPTestServer() }

  private struct Signature: RequestAdapter {
    let threads: Notes<ObjectIdentifier>
    func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
      threads.add(ObjectIdentifier(Thread.current))
      var urlRequest = urlRequest
      urlRequest.setValue("signed", forHTTPHeaderField: "X-Signature")
      return urlRequest
    }
  }

  @Test("Request and task exist when the factory returns") func requestAndTask() async {
    let threads = Notes<ObjectIdentifier>()
    manager.adapter = Signature(threads: threads)
    let (request, thread) = made()
    #expect(threads.all == [thread])
    #expect(request.request?.value(forHTTPHeaderField: "X-Signature") == "signed")
    #expect(request.task?.originalRequest?.value(forHTTPHeaderField: "X-Signature") == "signed")
    #expect(request.description == "GET \(server.url("/get"))")
    let response = await request.ended()
    #expect(response.response?.statusCode == 200)
    #expect(request.description == "GET \(server.url("/get")) (200)")
  }

  /// Synchronous, so that it stays on one thread.
  private func made() -> (DataRequest, ObjectIdentifier) {
    (manager.request(server.url("/get")), ObjectIdentifier(Thread.current))
  }

  @Test("A request without handlers is sent") func noHandlers() async throws {
    manager.request(server.url("/anything?x=1"))
    let recorded = try await server.takeRequest()
    #expect(recorded.target == "/anything?x=1")
  }

  @Test("A paused manager sends no request before resume") func pausedManager() async throws {
    manager.startRequestsImmediately = false
    let request = manager.request(server.url("/get?paused"))
    async let response = request.ended()
    manager.startRequestsImmediately = true
    _ = await manager.request(server.url("/get?other")).ended()
    #expect(server.recordedRequests.map(\.target) == ["/get?other"])
    request.resume()
    #expect(await response.response?.statusCode == 200)
    #expect(server.recordedRequests.map(\.target) == ["/get?other", "/get?paused"])
  }

  @Test("Invalid arguments are reported to the handlers") func invalidArguments() async {
    let invalid = await manager.request("").ended()
    guard case .invalidURL(let url)? = invalid.error as? AFError else {
      Issue.record("\(String(describing: invalid.error))")
      return
    }
    #expect(url as? String == "")
    #expect(invalid.request == nil && invalid.response == nil)
    let encoded = await manager.request(
      server.url("/post"), method: .post, parameters: ["a": Date()], encoding: JSONEncoding.default
    ).ended()
    #expect((encoded.error as? AFError)?.isParameterEncodingError == true)
  }

  @Test("Errors of routers are delivered unchanged and are not retried") func routerErrors() async {
    struct Refusal: Error {}
    struct Router: URLRequestConvertible {
      func asURLRequest() throws -> URLRequest { throw Refusal() }
    }
    let retrier = ScriptedRetrier { _, _ in (true, 0) }
    manager.retrier = retrier
    let request = manager.request(Router())
    let error = await request.ended().error
    #expect(error is Refusal && retrier.calls.count == 0)
    #expect(request.description == "" && request.task == nil)
    #expect(request.debugDescription.hasPrefix("$ curl"))
  }

  @Test("Parameters and header fields are sent") func parameters() async throws {
    let parameters: Parameters = ["foo": "bar", "list": [1, 2]]
    _ = await manager.request(server.url("/get"), parameters: parameters, headers: ["X-A": "b"]).ended()
    let first = try await server.takeRequest()
    #expect(first.target == "/get?foo=bar&list%5B%5D=1&list%5B%5D=2" && first.header("X-A") == "b")
    _ = await manager.request(
      server.url("/post"), method: .post, parameters: ["a": [1, 2]], encoding: JSONEncoding.default
    ).ended()
    let second = try await server.takeRequest()
    #expect(second.header("Content-Type") == "application/json")
    #expect(String(decoding: second.body, as: UTF8.self) == #"{"a":[1,2]}"#)
  }

  @Test("A GET can have a body") func bodyOfGET() async throws {
    let response = await manager.request(
      server.url("/anything"), parameters: ["a": "b"], encoding: URLEncoding.httpBody
    ).ended()
    #expect(response.error == nil)
    let recorded = try await server.takeRequest()
    #expect(recorded.method == "GET" && String(decoding: recorded.body, as: UTF8.self) == "a=b")
  }

  @Test("The cURL command matches the generation") func curl() async throws {
    let get = manager.request(server.url("/get"), headers: ["X-Quote": "a\"b"])
    let text = get.debugDescription
    #expect(text.hasPrefix("$ curl -v \\\n\t") && !text.contains("-X"))
    #expect(text.hasSuffix(" \\\n\t\"\(server.url("/get"))\"") && text.contains(#"-H "X-Quote: a\"b""#))
    let post = manager.request(server.url("/post"), method: .post, parameters: ["a": "b"])
    #expect(post.debugDescription.contains(" \\\n\t-X POST \\\n\t"))
    #expect(post.debugDescription.contains(#"-d "a=b""#))
    var own = URLRequest(url: try server.url("/get").asURL())
    own.httpMethod = "GETALL"
    let other = manager.request(own)
    #expect(other.debugDescription.hasPrefix("$ curl -v \\\n\t-X GETALL \\\n\t"))
    _ = await (get.ended(), post.ended(), other.ended())
  }

  @Test("The default header fields match the generation") func defaultHeaders() async throws {
    let fields = SessionManager.defaultHTTPHeaders
    #expect(fields["Accept-Encoding"] == "gzip;q=1.0, compress;q=0.5" && fields.count == 3)
    #expect(fields["User-Agent"]?.contains("Alamofire/") == true)
    let manager = SessionManager.isolated { $0.httpAdditionalHeaders = SessionManager.defaultHTTPHeaders }
    _ = await manager.request(server.url("/get")).ended()
    #expect(try await server.takeRequest().header("Accept-Encoding") == "gzip;q=1.0, compress;q=0.5")
  }

  @Test("The namespace uses the default manager") func namespace() async {
    let text = await Alamofire.request(server.url("/get"), headers: ["Cache-Control": "no-store"]).text()
    #expect(text.result.isSuccess)
    let upload = await Alamofire.upload(Data("abc".utf8), to: server.url("/post")).ended()
    #expect(upload.error == nil && upload.response?.statusCode == 200)
    let download = await Alamofire.download(server.url("/bytes/10")).endedWithoutFile()
    #expect(download.temporaryURL != nil && download.destinationURL == nil)
  }
}

/// Answers as a closure says, and notes what it was asked.
final class ScriptedRetrier: RequestRetrier, Sendable {
  struct Question: @unchecked Sendable {
    let request: Request
    let error: any Error
    let count: UInt
    let status: Int?
  }

  let calls = Notes<Question>()
  private let answer: @Sendable (any Error, UInt) -> (Bool, TimeInterval)

  init(_ answer: @escaping @Sendable (any Error, UInt) -> (Bool, TimeInterval)) { self.answer = answer }

  func should(
    _ manager: SessionManager, retry request: Request, with error: any Error,
    completion: @escaping RequestRetryCompletion
  ) {
    let status = (request.task?.response as? HTTPURLResponse)?.statusCode
    calls.add(Question(request: request, error: error, count: request.retryCount, status: status))
    let (again, delay) = answer(error, request.retryCount)
    completion(again, delay)
  }
}
