import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

@Suite("Redirect handlers", .timeLimit(.minutes(5)))
struct RedirectHandlerTests {
  private func session(_ fake: FakeTransport, _ handler: (any RedirectHandler)? = nil) -> Session {
    Session.retained(fake: fake, observers: SessionObservers(redirectHandler: handler))
  }

  @Test("A redirect that is not followed is the response, without body or error")
  func doNotFollow() async {
    let fake = FakeTransport(.status(301, "moved", headers: [("Location", "/next")]))
    let response = await session(fake, .doNotFollow).request("http://a.test/").end()
    #expect(response.response?.statusCode == 301)
    #expect(response.data == nil)
    #expect(response.error == nil)
    #expect(fake.urls == ["http://a.test/"])
  }

  @Test("A redirect that is not followed is shown to head handlers and sequences", arguments: [false, true])
  func headOfUnfollowed(isCancelled: Bool) async {
    let fake = FakeTransport(.status(301, "moved", headers: [("Location", "/next")]))
    let request = session(fake, .doNotFollow).request("http://a.test/")
    let heads = Recorder<Int>()
    request.onHTTPResponse(on: .global()) { response, completion in
      heads.add(response.statusCode)
      completion(isCancelled ? .cancel : .allow)
    }
    let responses = request.httpResponses()
    let response = await request.end()
    #expect(response.error?.isExplicitlyCancelledError == (isCancelled ? true : nil))
    #expect(heads.values == [301])
    var statuses: [Int] = []
    for await response in responses { statuses.append(response.statusCode) }
    #expect(statuses == [301])
  }

  @Test("The handler of a request replaces the handler of the session")
  func precedence() async {
    let fake = FakeTransport(.redirect(301, to: "/next"))
    let request = session(fake, .doNotFollow).request("http://a.test/").redirect(using: .follow)
    #expect(await request.end().response?.statusCode == 200)
    #expect(fake.urls == ["http://a.test/", "http://a.test/next"])
  }

  @Test("Sessions that share a delegate use their own handlers", arguments: [false, true])
  func sharedDelegate(isReleased: Bool) async {
    let delegate = SessionDelegate()
    let fake = FakeTransport { request, _ in
      request.url.hasSuffix("next") ? .ok : .redirect(302, to: "/next")
    }
    func session(_ handler: (any RedirectHandler)?) -> Session {
      Session(fake: fake, observers: SessionObservers(delegate: delegate, redirectHandler: handler))
    }
    let guarded = session(.doNotFollow)
    var other: Session? = session(nil)
    #expect(await other?.request("http://a.test/").end().response?.statusCode == 200)
    if isReleased { other = nil }
    #expect(await guarded.request("http://a.test/").end().response?.statusCode == 302)
    if !isReleased { other = session(.follow) }
    #expect(await guarded.request("http://a.test/").end().response?.statusCode == 302)
    #expect((other == nil) == isReleased)
  }

  @Test("A later handler of a request replaces its earlier one")
  func replacement() async {
    let fake = FakeTransport(.redirect(301, to: "/next"))
    let request = session(fake).request("http://a.test/").redirect(using: .doNotFollow)
      .redirect(using: .follow)
    #expect(await request.end().response?.statusCode == 200)
    #expect(fake.urls == ["http://a.test/", "http://a.test/next"])
  }

  @Test("A modified request is sent as the handler returned it")
  func modify() async throws {
    let fake = FakeTransport(.redirect(302, to: "/next"))
    let handler = Redirector(
      behavior: .modify { _, request, response in
        var request = request
        request.url = URL(string: "http://b.test/other")
        request.setValue("\(response.statusCode)", forHTTPHeaderField: "X-Status")
        return request
      })
    let response = await session(fake).request("http://a.test/", headers: ["X-Kept": "1"])
      .redirect(using: handler).end()
    #expect(response.error == nil)
    let sent = try #require(fake.requests.last)
    #expect(sent.url == "http://b.test/other")
    #expect(sent.value("X-Status") == "302")
    #expect(sent.value("X-Kept") == "1")
    #expect(sent.value("User-Agent") != nil)
  }

  /// Returns a handler that leads to another URL and changes some fields.
  private func leading(to url: String, setting fields: [String: String] = [:]) -> Redirector {
    Redirector(
      behavior: .modify { _, request, _ in
        var request = request
        request.url = URL(string: url)
        for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
        return request
      })
  }

  private static let secrets = ["Authorization", "Cookie", "Proxy-Authorization", "X-Key"]

  /// Sends a request with secrets, which a handler leads elsewhere. Returns the secrets of the last request.
  private func secrets(after handler: Redirector) async throws -> [String?] {
    let fake = FakeTransport(.redirect(302, to: "/next"))
    let headers = HTTPHeaders(Self.secrets.map { HTTPHeader(name: $0, value: "secret") })
    let response = await session(fake).request("http://a.test/", headers: headers)
      .transportOptions { $0.protectedHeaders = ["x-key"] }.redirect(using: handler).end()
    #expect(response.error == nil && fake.requests.count == 2)
    let sent = try #require(fake.requests.last)
    return Self.secrets.map { sent.value($0) }
  }

  @Test(
    "A handler that leads to another origin does not take secrets along",
    arguments: ["http://b.test/", "http://a.test:81/", "https://a.test/next"])
  func secretsElsewhere(url: String) async throws {
    #expect(try await secrets(after: leading(to: url)) == [nil, nil, nil, nil])
    let own = leading(to: url, setting: ["Authorization": "own", "X-Key": "mine"])
    #expect(try await secrets(after: own) == ["own", nil, nil, "mine"])
  }

  @Test(
    "A handler that changes the form of a letter is obeyed",
    arguments: ["http://a.test/next", "http://b.test/next"])
  func bytesOfFields(url: String) async throws {
    let fake = FakeTransport(.redirect(302, to: "/next"))
    let response = await session(fake).request("http://a.test/", headers: ["X-Key": "jose\u{301}"])
      .transportOptions { $0.protectedHeaders = ["x-key"] }
      .redirect(using: leading(to: url, setting: ["X-Key": "jos\u{E9}"])).end()
    #expect(response.error == nil)
    let sent = try #require(fake.requests.last)
    #expect(sent.url == url)
    #expect(sent.value("X-Key").map { Array($0.utf8) } == Array("jos\u{E9}".utf8))
  }

  @Test("Secrets stay in a request that a handler changes within the origin")
  func secretsInOrigin() async throws {
    let changed = leading(to: "http://a.test:80/other", setting: ["X-Changed": "1"])
    #expect(try await secrets(after: changed) == Array(repeating: "secret", count: 4))
  }

  @Test("A handler that leads from TLS to a server without it does not take the Referer along")
  func refererWithoutTLS() async {
    for (url, kept) in [("http://b.test/", nil), ("https://b.test/", "https://a.test/x")] {
      let fake = FakeTransport(.redirect(302, to: "/next"))
      let request = session(fake).request("https://a.test/", headers: ["Referer": "https://a.test/x"])
      _ = await request.redirect(using: leading(to: url)).end()
      #expect(fake.requests.count == 2 && fake.requests.last?.value("Referer") == kept, "\(url)")
    }
  }

  @Test("The fields of a modified request keep their order, and further ones follow by name")
  func fieldOrder() async throws {
    let fake = FakeTransport(.redirect(302, to: "/next"))
    let added = ["X-E", "X-B", "X-F", "X-A", "X-D", "X-C"]
    let handler = Redirector(
      behavior: .modify { _, request, _ in
        var request = request
        for name in added { request.setValue("1", forHTTPHeaderField: name) }
        return request
      })
    _ = await session(fake).request("http://a.test/", headers: ["X-Z": "1", "X-Y": "1"])
      .redirect(using: handler).end()
    #expect(fake.requests.count == 2)
    let names = fake.requests.map { $0.fields.map(\.name) }
    #expect(names.last == (names.first ?? []) + added.sorted())
  }

  @Test("The handler decides about a redirect back to the caller's URL", arguments: [["/"], ["/b", "/"]])
  func backToFirst(targets: [String]) async {
    let fake = FakeTransport { _, index in index < targets.count ? .redirect(302, to: targets[index]) : .ok }
    let paths = Recorder<String>()
    let handler = Redirector(
      behavior: .modify { _, request, _ in
        let path = request.url?.path ?? ""
        paths.add(path)
        return path == "/" ? nil : request
      })
    let response = await session(fake, handler).request("http://a.test/").end()
    #expect(paths.values == targets)
    #expect(response.response?.statusCode == 302 && fake.requests.count == targets.count)
  }

  @Test("A redirect that drops the body is proposed, and shown by the task, without it")
  func droppedBody() async throws {
    let fake = FakeTransport(.redirect(302, to: "/b"))
    let bodies = Recorder<Data?>()
    let handler = Redirector(
      behavior: .modify { _, request, _ in
        bodies.add(request.httpBody)
        return request
      })
    var original = try URLRequest(url: "http://a.test/", method: .post)
    original.httpBody = Data("secret".utf8)
    let request = session(fake, handler).request(original)
    _ = await request.end()
    #expect(bodies.values == [nil])
    #expect(request.task?.currentRequest?.url?.path == "/b")
    #expect(request.task?.currentRequest?.httpBody == nil)
  }

  @Test(
    "A handler that changes each request is asked up to the limit of redirects", arguments: [false, true])
  func limit(urlStays: Bool) async {
    // It ends, so that a fault fails the test and does not hang it.
    let fake = FakeTransport { _, index in
      index < 40 ? .redirect(302, to: urlStays ? "/" : "/\(index)") : .ok
    }
    let handler = Redirector(
      behavior: .modify { _, request, _ in
        var request = request
        request.setValue("1", forHTTPHeaderField: "X-Changed")
        return request
      })
    let response = await session(fake, handler).request("http://a.test/").end()
    #expect((response.error?.underlyingError as? URLError)?.code == .httpTooManyRedirects)
    #expect(fake.requests.map { $0.value("X-Changed") } == [nil] + Array(repeating: "1", count: 20))
  }

  @Test("A modified redirect sends the body of an upload again", arguments: [307, 308])
  func modifiedUpload(status: Int) async throws {
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("body-\(UUID().uuidString)")
    try Data("body".utf8).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    let handler = Redirector(
      behavior: .modify { _, request, _ in
        var request = request
        request.setValue("1", forHTTPHeaderField: "X-Changed")
        return request
      })
    let fake = FakeTransport(.redirect(status, to: "/next"), .ok, .redirect(status, to: "/next"))
    let session = session(fake)
    let uploads = [
      session.upload(file, to: "http://a.test/"), session.upload(Data("data".utf8), to: "http://a.test/"),
    ]
    for upload in uploads { #expect(await upload.redirect(using: handler).end().error == nil) }
    #expect(fake.requests.map(\.method) == Array(repeating: "POST", count: 4))
    #expect(fake.requests.map(\.body.count) == Array(repeating: 4, count: 4))
    #expect(fake.requests.map { $0.value("X-Changed") } == [nil, "1", nil, "1"])
  }

  @Test("The proposed request has no credentials for another origin")
  func credentials() async throws {
    let fake = FakeTransport(.redirect(302, to: "http://b.test/"))
    let proposals = Recorder<URLRequest>()
    let handler = Redirector(
      behavior: .modify { _, request, _ in
        proposals.add(request)
        return request
      })
    _ = await session(fake, handler).request("http://a.test/", headers: [.authorization(bearerToken: "t")])
      .end()
    #expect(proposals.values.first?.headers["Authorization"] == nil)
    #expect(fake.requests.last?.value("Authorization") == nil)
    #expect(fake.requests.first?.value("Authorization") == "Bearer t")
  }

  @Test("An Authorization field of a modified request is sent after an answered challenge")
  func ownCredentials()
    async
  {
    let fake = FakeTransport(.challenge(), .redirect(302, to: "/next"))
    let handler = Redirector(
      behavior: .modify { _, request, _ in
        var request = request
        request.setValue("Bearer own", forHTTPHeaderField: "Authorization")
        return request
      })
    _ = await session(fake, handler).request("http://a.test/").authenticate(username: "u", password: "p")
      .end()
    let basic = HTTPHeader.authorization(username: "u", password: "p").value
    #expect(fake.requests.map { $0.value("Authorization") } == [nil, basic, "Bearer own"])
  }

  @Test(
    "A modified request with another method has no body unless it is given one", arguments: [nil, "given"])
  func otherMethod(given: String?) async throws {
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("body-\(UUID().uuidString)")
    try Data("body".utf8).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    let handler = Redirector(
      behavior: .modify { _, request, _ in
        var request = request
        request.httpMethod = "DELETE"
        request.httpBody = given.map { Data($0.utf8) }
        return request
      })
    let fake = FakeTransport(.redirect(307, to: "/next"))
    #expect(await session(fake, handler).upload(file, to: "http://a.test/").end().error == nil)
    #expect(fake.requests.map(\.method) == ["POST", "DELETE"])
    #expect(fake.requests.map(\.body.isPresent) == [true, given != nil])
    #expect(fake.requests.last?.body.bytes == given.map { Data($0.utf8) })
  }

  @Test(
    "A proposed request that is invalid or leaves HTTP ends with an error",
    arguments: ["ftp://b.test/", "file:///etc/hostname", "data:,x"])
  func bad(location: String) async {
    let handler = Redirector(
      behavior: .modify { _, request, _ in
        var request = request
        request.url = URL(string: location)
        return request
      })
    let fake = FakeTransport(.redirect(302, to: "/next"))
    let response = await session(fake, handler).request("http://a.test/").end()
    #expect(response.error != nil)
    #expect(fake.urls == ["http://a.test/"])
  }

  @Test("A request that its redirect handler suspends receives the next response once it is resumed")
  func suspended() async {
    let fake = FakeTransport(.redirect(302, to: "/next"))
    let request = session(fake).request("http://a.test/")
    request.redirect(
      using: .modify { [weak request] _, next, _ in
        request?.suspend()
        return next
      })
    async let response = request.end()
    #expect(
      await eventually { fake.controls.count == 2 && (fake.controls[1].isClosed || request.isFinished) })
    #expect(request.isSuspended && fake.controls.last?.isClosed == true, "its transfer is not suspended")
    request.resume()
    #expect(await response.response?.statusCode == 200)
  }

  @Test("The next transfer has the priority that a redirect handler sets") func priority() async {
    let fake = FakeTransport(.redirect(302, to: "/next"))
    let request = session(fake).request("http://a.test/")
    request.redirect(
      using: .modify { [weak request] _, next, _ in
        request?.priority = URLSessionTask.highPriority
        return next
      })
    #expect(await request.end().response?.statusCode == 200)
    #expect(fake.controls.map(\.priority) == [nil, URLSessionTask.highPriority])
  }

  @Test(
    "A method or field of a modified request that must not be sent ends the request",
    arguments: [true, false])
  func unsendable(isMethod: Bool) async {
    let fake = FakeTransport(.redirect(302, to: "/next"))
    let handler = Redirector(
      behavior: .modify { _, request, _ in
        var request = request
        if isMethod {
          request.httpMethod = "IN VALID"
        } else {
          request.setValue("1", forHTTPHeaderField: "X Own")
        }
        return request
      })
    let response = await session(fake, handler).request("http://a.test/").end()
    #expect((response.error?.underlyingError as? URLError)?.code == .badURL)
    #expect(fake.urls == ["http://a.test/"])
  }

  private struct Forgetful: RedirectHandler {
    func task(
      _ task: URLSessionTask, willBeRedirectedTo request: URLRequest, for response: HTTPURLResponse,
      completion: @escaping @Sendable (URLRequest?) -> Void
    ) {}
  }

  @Test("A handler that releases its completion follows the redirect")
  func forgotten() async {
    let fake = FakeTransport(.redirect(302, to: "/next"))
    let response = await session(fake, Forgetful()).request("http://a.test/").end()
    #expect(response.response?.statusCode == 200)
  }

  @Test("The proposed request preserves the body if the status does")
  func body() async throws {
    let fake = FakeTransport(.redirect(307, to: "/next"))
    var request = try URLRequest(url: "http://a.test/", method: .post)
    request.httpBody = Data("body".utf8)
    let handler = Redirector(
      behavior: .modify { _, request, _ in
        var request = request
        request.setValue("1", forHTTPHeaderField: "X-Again")
        return request
      })
    _ = await session(fake, handler).request(request).end()
    let sent = try #require(fake.requests.last)
    #expect(sent.method == "POST")
    #expect(sent.body.bytes == Data("body".utf8))
    #expect(sent.value("X-Again") == "1")
  }

  @Test("The body stream of a modified request is sent") func bodyStream() async throws {
    let server = try HTTPTestServer()
    let request = Session.real().request(server.url("/redirect-to?url=/anything"))
      .redirect(
        using: .modify { _, request, _ in
          var request = request
          request.method = .post
          request.httpBodyStream = InputStream(data: Data("from a stream".utf8))
          return request
        })
    #expect(await request.end().response?.statusCode == 200)
    #expect(server.recordedRequests.last?.method == "POST")
    #expect(server.recordedRequests.last?.bodyText == "from a stream")
  }

  @Test("A modified request does not send a stream again that was read") func spentStream() async throws {
    let server = try HTTPTestServer()
    var request = try URLRequest(url: server.url("/redirect-to?url=/anything&status_code=307"), method: .post)
    request.httpBodyStream = InputStream(data: Data("once".utf8))
    let response = await Session.real().request(request).redirect(
      using: .modify { _, request, _ in
        var request = request
        request.setValue("1", forHTTPHeaderField: "X-Changed")
        return request
      }
    ).end()
    #expect((response.error?.underlyingError as? URLError)?.code == .requestBodyStreamExhausted)
    #expect(server.recordedRequests.count == 1)
  }

  @Test(
    "A new stream is sent, although nothing else has changed, with the length that its request announces",
    arguments: [nil, "4"], [nil, "5"])
  func freshStream(first: String?, second: String?) async throws {
    let server = try HTTPTestServer()
    var request = try URLRequest(url: server.url("/redirect-to?url=/anything&status_code=307"), method: .post)
    request.setValue(first, forHTTPHeaderField: "Content-Length")
    request.httpBodyStream = InputStream(data: Data("once".utf8))
    let response = await Session.real().request(request).redirect(
      using: .modify { _, request, _ in
        var request = request
        if let second { request.setValue(second, forHTTPHeaderField: "Content-Length") }
        request.httpBodyStream = InputStream(data: Data("again".utf8))
        return request
      }
    ).end()
    #expect(response.error == nil)
    #expect(server.recordedRequests.map(\.bodyText) == ["once", "again"])
    #expect(server.recordedRequests.map { $0.header("Content-Length") } == [first, second])
    #expect(server.recordedRequests.map(\.isChunked) == [first == nil, second == nil])
  }

  @Test("The request that is proposed has the body of the hop before") func proposedBody() async throws {
    let fake = FakeTransport(.redirect(307, to: "/b"), .redirect(307, to: "/c"), .redirect(307, to: "/d"))
    let proposed = Recorder<Data?>()
    var request = try URLRequest(url: "http://a.test/", method: .post)
    request.httpBody = Data("secret".utf8)
    let handler: any RedirectHandler = .modify { _, request, _ in
      var request = request
      proposed.add(request.httpBody)
      if request.url?.path == "/b" { request.httpBody = Data("public".utf8) }
      request.setValue("1", forHTTPHeaderField: "X-Changed")
      return request
    }
    _ = await session(fake).request(request).redirect(using: handler).end()
    #expect(
      proposed.values.map { $0.map { String(decoding: $0, as: UTF8.self) } } == [
        "secret", "public", "public",
      ])
    let bodies = fake.requests.map { request in
      if case .bytes(let data) = request.body { String(decoding: data, as: UTF8.self) } else { "?" }
    }
    #expect(bodies == ["secret", "public", "public", "public"])
  }

  @Test(
    "A modified request with another scheme is refused",
    arguments: ["file:///etc/hosts", "data:,x", "ftp://a.test/", "/relative"])
  func otherSchemes(url: String) async throws {
    let fake = FakeTransport(.redirect(302, to: "/next"))
    let response = await session(fake, .modify { _, _, _ in URL(string: url).map { URLRequest(url: $0) } })
      .request("http://a.test/").end()
    #expect((response.error?.underlyingError as? URLError)?.code == .unsupportedURL)
    #expect(fake.requests.count == 1)
  }
}
