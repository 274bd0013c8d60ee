import Alamofire
import ChildProcesses
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

@Suite("cURL commands", .timeLimit(.minutes(5)))
struct CURLTests {
  private func session(
    _ fake: FakeTransport = FakeTransport(), interceptor: (any RequestInterceptor)? = nil,
    _ change: (URLSessionConfiguration) -> Void = { _ in }
  ) -> Session {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpAdditionalHeaders = ["X-Session": "s", "X-Both": "session"]
    change(configuration)
    let session = Session(
      configuration: configuration, engine: Engine(transport: fake), interceptor: interceptor)
    kept.add(session)
    return session
  }

  private let kept = Recorder<Session>()

  private func command(_ request: DataRequest) async -> String {
    _ = await request.end()
    return request.cURLDescription()
  }

  @Test("A text with ! is in single quotes, which an interactive shell does not change") func history() async
  {
    let text = await command(
      session().request("http://a.test/x", headers: ["Cookie": "a=!!; b=c", "X-A": "it's $1!"]))
    #expect(text.contains(#"-b 'a=!!;b=c'"#), "\(text)")
    #expect(text.contains(#"-H 'X-A: it'\''s $1!'"#), "\(text)")
  }

  @Test("A body without a type has none in the command, either") func untypedBody() async throws {
    var request = try URLRequest(url: "http://a.test/x", method: .post)
    request.httpBody = Data("body".utf8)
    #expect(await command(session().request(request)).contains("-H \"Content-Type:\" \\\n\t-d \"body\""))
    request.headers.add(.contentType("text/plain"))
    #expect(await !command(session().request(request)).contains("Content-Type:\""))
  }

  @Test("A GET is described") func get() async {
    let text = await command(session().request("http://a.test/x?y=z", headers: ["x-both": "re\"quest"]))
    #expect(
      text == """
        $ curl -v \\
        \t-X GET \\
        \t-H "x-both: re\\"quest" \\
        \t-H "X-Session: s" \\
        \t"http://a.test/x?y=z"
        """)
  }

  @Test("A body is escaped") func body() async throws {
    let session = session { $0.httpAdditionalHeaders = nil }
    let text = await command(
      session.request(
        "http://a.test/", method: .post, parameters: ["a": "say \"hi\""],
        encoder: JSONParameterEncoder.default))
    #expect(
      text == """
        $ curl -v \\
        \t-X POST \\
        \t-H "Content-Type: application/json" \\
        \t-d "{\\"a\\":\\"say \\\\\\"hi\\\\\\"\\"}" \\
        \t"http://a.test/"
        """)
  }

  @Test(
    "A shell gives each value to curl unchanged",
    arguments: [
      "plain", "a b", "'", "\"", "\\", "\\\\", "\\\"", "$HOME", "${x}", "`id`", "$(id)", "a\nb", "*", "?",
      "~", "#x",
      "a;b", "a&b|c", "<x>", "@x", "=x", "-x", "%0a", "{a,b}", "[1-3]", "ü€😀", "\t", "a=b", "'\"'", "\\n",
      "\\$", "@\u{301}x", "\"\u{301}$\u{301}", "\u{600}`",
    ])
  func shell(value: String) async throws {
    let server = try HTTPTestServer()
    let session = session { $0.httpAdditionalHeaders = nil }
    let url = try #require(
      URLComponents(string: server.url("/a")).flatMap { components in
        var components = components
        components.queryItems = [URLQueryItem(name: "q", value: value)]
        return components.url
      })
    var request = URLRequest(url: url)
    request.httpMethod = "PUT"
    request.httpBody = Data(value.utf8)
    let field = value.replacingOccurrences(of: "\n", with: " ")
    request.headers = ["X-A": field, "X-Empty": "", "Content-Type": "text/plain"]
    let text = await command(session.request(request).authenticate(username: "u", password: value))
    let line = "curl -sS" + text.dropFirst("$ curl -v".count)
    let run = try await ChildRun(["sh", "-c", line])
    #expect(run.status == 0, "\(text)\n\(run.complaints)")
    let sent = try #require(server.recordedRequests.first, "\(text)")
    #expect(sent.method == "PUT" && sent.target == url.path + "?" + (url.query(percentEncoded: true) ?? ""))
    #expect(sent.bodyText == value, "\(text)")
    #expect(sent.header("X-A") == field.trimmingCharacters(in: .whitespaces) && sent.header("X-Empty") == "")
    #expect(
      sent.header("Authorization") == "Basic " + Data("u:\(value)".utf8).base64EncodedString(), "\(text)")
  }

  @Test("Options are added for a URL that curl would change, and for a text that it would read as a file")
  func changedByCurl() async throws {
    let server = try HTTPTestServer()
    let session = session { $0.httpAdditionalHeaders = nil }
    for path in ["/a/../b", "/a/./b", "/a/..", "/a/%2e%2E/b"] {
      let url = try #require(URL(string: server.url(path)))
      let text = await command(session.request(url))
      #expect(text.contains("--path-as-is \""), "\(text)")
      _ = try await ChildRun(["sh", "-c", "curl -sS" + text.dropFirst("$ curl -v".count)])
      #expect(try await server.takeRequest().target == path)
    }
    #expect(await !command(session.request(server.url("/a.b/..c"))).contains("--path-as-is"))
  }

  @Test("Credentials and cookies are included") func credentialsAndCookies() async throws {
    let session = session { configuration in
      configuration.httpAdditionalHeaders = nil
      configuration.httpCookieStorage = HTTPCookieStorage.sharedCookieStorage(
        forGroupContainerIdentifier: UUID().uuidString)
      if let cookie = HTTPCookie(properties: [.name: "a", .value: "1", .domain: "a.test", .path: "/"]) {
        configuration.httpCookieStorage?.setCookie(cookie)
      }
    }
    let request = session.request("http://a.test/", headers: ["cookie": "secret=1; b=2"])
      .authenticate(username: "user", password: "pass")
    let lines = await command(request).components(separatedBy: " \\\n\t")
    #expect(
      lines == ["$ curl -v", "-X GET", "-u user:pass", "-b \"secret=1;b=2\"", "\"http://a.test/\""])
    // A `Cookie` field of the request is sent instead of the cookies of the storage.
    let stored = await command(session.request("http://a.test/")).components(separatedBy: " \\\n\t")
    #expect(stored == ["$ curl -v", "-X GET", "-b \"a=1\"", "\"http://a.test/\""])
    let none = await command(session.request("http://a.test/") { $0.httpShouldHandleCookies = false })
    #expect(none.contains("-b") == false)
  }

  @Test("The protected header fields of the request are masked") func protectedHeaders() async {
    let request = session().request("http://a.test/", headers: ["X-Customer": "planted"])
      .transportOptions { $0.protectedHeaders = ["X-Customer"] }
    _ = await request.end()
    #expect(request.cURLDescription().contains("planted"))
    let text = request.cURLDescription(redacting: .standard)
    #expect(text.contains("X-Customer: <redacted>") && !text.contains("planted"), "\(text)")
  }

  @Test("Secrets can be masked") func masked() async {
    let session = session { $0.httpAdditionalHeaders = nil }
    let request = session.request(
      "http://a.test/?access_token=planted-1&page=2", method: .post,
      parameters: ["password": "planted-2", "name": "Ada"], encoder: JSONParameterEncoder.sortedKeys,
      headers: [
        "Authorization": "Bearer planted-3", "X-API-Key": "planted-4", "X-Customer": "planted-5",
        "Cookie": "session=planted-6; planted-7",
      ]
    ).authenticate(username: "planted-8", password: "planted-9")
    _ = await request.end()
    let text = request.cURLDescription(redacting: Redaction(additionalNames: ["X-Customer"]))
    #expect(!text.contains("planted"), "\(text)")
    for part in [
      "-u redacted", "-b \"session=redacted;redacted\"", "Bearer <redacted>", "page=2", "Ada", "-X POST",
      "X-Customer: <redacted>",
    ] {
      #expect(text.contains(part), "\(part) is missing in \(text)")
    }
    // The handlers and sequences with rules mask the same.
    let texts = Recorder<String>()
    request.cURLDescription(redacting: Redaction(additionalNames: ["X-Customer"]), on: .global()) {
      texts.add($0)
    }
    #expect(await texts.wait(for: 1) == [text])
    // All nine are there otherwise.
    #expect(request.cURLDescription().components(separatedBy: "planted").count == 10)
  }

  @Test("Stored credentials are used for a request without its own") func storedCredentials() async throws {
    let stored = URLCredential(user: "stored", password: "secret", persistence: .forSession)
    // A unique host, because the storage is the process's.
    let host = "\(UUID().uuidString.lowercased()).test"
    let space = URLProtectionSpace(
      host: host, port: 0, protocol: "http", realm: host,
      authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
    let session = session { configuration in
      configuration.httpAdditionalHeaders = nil
      configuration.urlCredentialStorage?.set(stored, for: space)
    }
    let storage = try #require(session.sessionConfiguration.urlCredentialStorage)
    defer { storage.remove(stored, for: space) }
    let lines = await command(session.request("http://\(host)/")).components(separatedBy: " \\\n\t")
    #expect(lines == ["$ curl -v", "-X GET", "-u stored:secret", "\"http://\(host)/\""])
    // The credential of the request is sent instead of a stored one.
    let request = session.request("http://\(host)/").authenticate(username: "own", password: "pass")
    #expect(await command(request).contains("-u own:pass \\"))
    #expect(await command(request).contains("stored") == false)
  }

  @Test("The credential of a request needs no storage") func noCredentialStorage() async {
    let session = session { configuration in
      configuration.httpAdditionalHeaders = nil
      configuration.urlCredentialStorage = nil
      configuration.httpShouldSetCookies = false
    }
    let text = await command(
      session.request("http://a.test/").authenticate(username: "user", password: "pass"))
    #expect(text == "$ curl -v \\\n\t-X GET \\\n\t-u user:pass \\\n\t\"http://a.test/\"")
    let without = await command(session.request("http://a.test/"))
    #expect(without == "$ curl -v \\\n\t-X GET \\\n\t\"http://a.test/\"")
  }

  @Test("A request that was not created has a message") func noRequest() async {
    let request = session().request("")
    #expect(request.cURLDescription() == "$ curl command could not be created")
    #expect(request.description == "No request created yet.")
    _ = await request.end()
    #expect(request.cURLDescription().hasPrefix("$ curl"))
    #expect(await command(session().request("/relative")).hasPrefix("$ curl"))
  }

  @Test("The handler is called once, before and after the creation") func handler() async {
    let texts = Recorder<String>()
    let request = session().request("http://a.test/")
    request.cURLDescription(on: .global()) { texts.add("replaced \($0)") }
    request.cURLDescription { texts.add($0) }
    _ = await request.end()
    await texts.wait(for: 1)
    request.cURLDescription { texts.add($0) }
    let values = await texts.wait(for: 2)
    #expect(values.allSatisfy { $0.hasPrefix("$ curl -v") })
  }

  @Test("The command can be masked before the creation, too") func maskedHandler() async {
    let (texts, plain) = (Recorder<String>(), Recorder<String>())
    let request = session().request("http://a.test/?token=planted")
    request.cURLDescription { _ in Issue.record("an earlier handler was called") }
    request.cURLDescription(redacting: .standard) { texts.add($0) }
    let (masked, all) = (request.cURLDescriptions(redacting: .standard), request.cURLDescriptions())
    _ = await request.end()
    for await command in masked { texts.add(command) }
    for await command in all { plain.add(command) }
    let values = await texts.wait(for: 2)
    #expect(values.allSatisfy { $0.hasSuffix("\"http://a.test/?token=redacted\"") }, "\(values)")
    #expect(plain.values.count == 1 && plain.values.allSatisfy { $0.contains("planted") })
    let late = request.cURLDescriptions(redacting: .standard)
    for await command in late { #expect(!command.contains("planted")) }
    let failed = session().request("")
    failed.cURLDescription(redacting: .standard) { texts.add($0) }
    _ = await failed.end()
    #expect(await texts.wait(for: 3).last == "$ curl command could not be created")
  }

  @Test("The handler is called if the request cannot be created") func creationFailure() async throws {
    let texts = Recorder<String>()
    let failed = session().request("")
    failed.cURLDescription { texts.add($0) }
    _ = await failed.end()
    #expect(await texts.wait(for: 1) == ["$ curl command could not be created"])
    failed.cURLDescription { texts.add($0) }
    await texts.wait(for: 2)
    let unadapted = session(interceptor: SpyInterceptor(adapt: { _, _ in .failure(TestError()) }))
      .request("http://a.test/")
    let created = Recorder<URLRequest>()
    unadapted.onURLRequestCreation(on: .global()) { created.add($0) }
    unadapted.cURLDescription { texts.add($0) }
    _ = await unadapted.end()
    #expect(try await texts.value(2).hasSuffix("\"http://a.test/\""))
    #expect(created.count == 0)
  }

  @Test("The handler is called if the request has ended before its creation", arguments: [false, true])
  func neverCreated(isCancelled: Bool) async {
    let texts = Recorder<String>()
    let session = session()
    let request = session.request("http://a.test/", shouldAutomaticallyResume: false)
    if isCancelled { request.cancel() }
    async let response = request.end()
    if !isCancelled {
      // Until it has a handler, the session does not know the request, and would not end it.
      #expect(await eventually { session.core.unstartedCount == 1 })
      session.session.finishTasksAndInvalidate()
    }
    #expect(await response.error != nil)
    #expect(request.request == nil)
    request.cURLDescription(on: .global()) { texts.add($0) }
    #expect(await texts.wait(for: 1) == ["$ curl command could not be created"])
  }

  @Test("The creation handler is called for each attempt") func attempts() async {
    let fake = FakeTransport(.failure(.connectionLost))
    let seen = Recorder<URLRequest>()
    let request = session(fake, interceptor: SpyInterceptor(retries: 1)).request("http://a.test/")
    request.onURLRequestCreation(on: .global()) { _ in Issue.record("an earlier handler was called") }
    request.onURLRequestCreation(on: .global()) { seen.add($0) }
    _ = await request.end()
    await seen.wait(for: 2)
    let late = Recorder<URLRequest>()
    request.onURLRequestCreation(on: .global()) { late.add($0) }
    #expect(await late.wait(for: 1).first?.url?.absoluteString == "http://a.test/")
  }

  @Test("The description contains the response once there is one") func description() async {
    let gate = Latch()
    let reached = Latch()
    let request = session(FakeTransport(.status(404).held(by: gate, reached: reached)))
      .request("http://a.test/x", method: .put)
    async let response = request.end()
    await reached.wait()
    #expect(request.description == "PUT http://a.test/x")
    gate.open()
    _ = await response
    #expect(request.description == "PUT http://a.test/x (404)")
  }
}
