import AlamofireV3
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite(.timeLimit(.minutes(5))) struct StartingTests {
  @Test("Request and task exist when the function returns") func requestAndTask() async throws {
    let server = try HTTPTestServer()
    let manager = Manager.isolated(starting: false)
    for request in [
      manager.request(.POST, server.url("/post"), parameters: ["a": 1]),
      manager.upload(.POST, server.url("/post"), data: Data("x".utf8)),
      manager.download(.POST, server.url("/post"), destination: { file, _ in file }),
    ] {
      #expect(request.request?.url?.absoluteString == server.url("/post"))
      #expect(request.task != nil)
      #expect(request.task?.originalRequest?.httpMethod == "POST")
      #expect(request.description == "POST \(server.url("/post"))")
      #expect(request.debugDescription.hasPrefix("$ curl -i \\\n\t-X POST \\\n\t"))
      request.cancel()
    }
    #expect(server.requestCount == 0)
  }

  @Test("A request without handlers is sent") func noHandlers() async throws {
    let server = try HTTPTestServer()
    Manager.isolated().request(.GET, server.url("/get"), parameters: ["foo": "bar"])
    #expect(try await server.takeRequest().target == "/get?foo=bar")
  }

  @Test("A request with automatic start disabled waits for resume") func manualStart() async throws {
    let server = try HTTPTestServer()
    let manager = Manager.isolated(starting: false)
    let notes = Notes()
    let waiting = manager.request(.GET, server.url("/get?waiting"))
      .response(queue: .global()) { _, response, _, _ in notes.add("\(response?.statusCode ?? 0)") }
    manager.startRequestsImmediately = true
    #expect(await manager.request(.GET, server.url("/get?other")).end().status == 200)
    #expect(server.recordedRequests.map(\.target) == ["/get?other"])
    #expect(notes.lines == [])
    waiting.resume()
    #expect(await notes.wait(for: 1) == ["200"])
  }

  @Test("A request that was not started is released with its handlers", arguments: 0..<3)
  func unstartedRequest(kind: Int) async throws {
    final class Witness: Sendable {}
    let url = try HTTPTestServer().url("/get")
    let manager = Manager.isolated(starting: false)
    weak var unkept: Request?
    weak var released: Witness?
    do {
      let witness = Witness()
      let request =
        switch kind {
        case 0: manager.request(.GET, url)
        case 1: manager.upload(.POST, url, data: Data("x".utf8))
        default: manager.download(.GET, url, destination: { file, _ in file })
        }
      request.validate { _, _ in
        _ = witness
        return .Success
      }
      request.validate().stream { _ in _ = witness }.progress { _, _, _ in _ = witness }
        .responseString(queue: .global()) { _ in _ = witness }
      if kind == 1 { request.suspend() }
      (unkept, released) = (request, witness)
    }
    try #require(unkept == nil, "its handlers retain the request")
    while released != nil { await Task.yield() }
  }

  @Test(
    "An invalid URL is an error of the handlers", arguments: ["", "http://exa mple.com/<>", "http://[::1"])
  func invalidURL(text: String) async throws {
    let manager = Manager.isolated()
    let form = await withCheckedContinuation { continuation in
      manager.upload(.POST, text, multipartFormData: { _ in }) {
        continuation.resume(returning: UncheckedBox(value: $0))
      }
    }
    guard case .Success(let upload, _, _) = form.value else {
      Issue.record("not encoded")
      return
    }
    for request in [
      manager.request(.GET, text), manager.request(.POST, text, parameters: ["a": 1], encoding: .JSON),
      manager.upload(.POST, text, data: Data()), manager.download(.GET, text) { file, _ in file }, upload,
    ] {
      let end = await request.end()
      #expect(end.fault == "NSURLErrorDomain \(NSURLErrorBadURL)")
      #expect(end.response == nil)
    }
  }

  @Test("Parameters that cannot be encoded are an error of the handlers") func invalidParameters()
    async throws
  {
    let server = try HTTPTestServer()
    let manager = Manager.isolated()
    let unwritable: [String: Any] = ["a": Date()]
    let json = await manager.request(
      .POST, server.url("/post"), parameters: unwritable, encoding: .JSON
    ).end()
    #expect(json.error?.domain == NSCocoaErrorDomain)
    let own = NSError(domain: "own", code: 7)
    let custom = ParameterEncoding.Custom { request, _ in (request.URLRequest, own) }
    let end = await manager.request(.GET, server.url("/get"), parameters: [:], encoding: custom).end()
    #expect(end.fault == "own 7")
    #expect(server.requestCount == 0)
  }

  @Test("A GET with a body is sent") func bodyOfGET() async throws {
    let server = try HTTPTestServer()
    let end = await Manager.isolated().request(
      .GET, server.url("/echo"), parameters: ["a": "b"], encoding: .JSON
    ).end()
    #expect(end.text == #"{"a":"b"}"#)
    #expect(try await server.takeRequest().method == "GET")
  }

  @Test("A router is called once before the function returns") func router() async throws {
    final class Router: URLRequestConvertible {
      let url: URL
      var count = 0
      init(_ url: URL) { self.url = url }
      var URLRequest: NSMutableURLRequest {
        count += 1
        return NSMutableURLRequest(url: url)
      }
    }
    let server = try HTTPTestServer()
    let router = Router(try #require(URL(string: server.url("/get"))))
    let request = Manager.isolated().request(router)
    #expect(router.count == 1)
    #expect(await request.end().status == 200)
    #expect(router.count == 1)
  }

  @Test("The method of the call has priority over the request's") func method() async throws {
    let server = try HTTPTestServer()
    let request = NSMutableURLRequest(url: try #require(URL(string: server.url("/post"))))
    request.httpMethod = "PUT"
    #expect(await Manager.isolated().request(.POST, request).end().status == 200)
    #expect(try await server.takeRequest().method == "POST")
  }

  @Test("A URL request as the URL keeps its fields, its body and its settings") func requestAsURL()
    async throws
  {
    let server = try HTTPTestServer()
    var given = URLRequest(url: try #require(URL(string: server.url("/anything"))))
    given.httpMethod = "PUT"
    given.allHTTPHeaderFields = ["X-A": "request", "X-B": "request"]
    given.httpBody = Data("body".utf8)
    given.timeoutInterval = 77
    given.cachePolicy = .reloadIgnoringLocalCacheData
    let mutable = (given as NSURLRequest).URLRequest
    let manager = Manager.isolated()
    for kind in [given, given as NSURLRequest, mutable] as [any URLStringConvertible] {
      let request = manager.request(.POST, kind, headers: ["X-B": "call"])
      #expect(request.request?.timeoutInterval == 77)
      #expect(request.request?.cachePolicy == .reloadIgnoringLocalCacheData)
      #expect(await request.end().status == 200)
      let sent = try await server.takeRequest()
      #expect(sent.method == "POST" && String(decoding: sent.body, as: UTF8.self) == "body")
      #expect(sent.header("X-A") == "request" && sent.header("X-B") == "call")
    }
    // The given object is not changed.
    #expect(mutable.httpMethod == "PUT" && mutable.value(forHTTPHeaderField: "X-B") == "request")
    let encoded = manager.request(.POST, given, parameters: ["a": 1], encoding: .JSON)
    #expect(await encoded.end().status == 200)
    let sent = try await server.takeRequest()
    #expect(String(decoding: sent.body, as: UTF8.self) == #"{"a":1}"# && sent.header("X-A") == "request")
    #expect(await manager.upload(.POST, given, data: Data("bytes".utf8)).end().status == 200)
    let upload = try await server.takeRequest()
    #expect(String(decoding: upload.body, as: UTF8.self) == "bytes" && upload.header("X-A") == "request")
  }

  @Test("A URL request without a URL is an error of the handlers") func missingURL() async {
    // In a separate process, because Foundation ends the process that copies such a request.
    await #expect(processExitsWith: .success) {
      var bare = URLRequest(url: try #require(URL(string: "http://127.0.0.1/")))
      bare.url = nil
      let object = NSMutableURLRequest(url: try #require(URL(string: "http://127.0.0.1/")))
      object.url = nil
      let manager = Manager.isolated()
      for request in [
        manager.request(bare), manager.request(.POST, bare), manager.upload(bare, data: Data()),
        manager.request(object), manager.upload(object, data: Data()),
        manager.request(.POST, bare, parameters: ["a": 1], encoding: .JSON),
      ] {
        #expect(await request.end().fault == "NSURLErrorDomain \(NSURLErrorBadURL)")
      }
    }
  }

  @Test("Every URLStringConvertible can be the URL") func urls() async throws {
    let server = try HTTPTestServer()
    let text = server.url("/get")
    let url = try #require(URL(string: text))
    let kinds: [any URLStringConvertible] = [
      text, NSString(string: text), url, url as NSURL, try #require(URLComponents(string: text)),
      try #require(NSURLComponents(string: text)), URLRequest(url: url), NSURLRequest(url: url),
    ]
    for kind in kinds {
      #expect(kind.URLString == text)
      #expect(await Manager.isolated().request(.GET, kind).end().status == 200)
    }
  }
}
