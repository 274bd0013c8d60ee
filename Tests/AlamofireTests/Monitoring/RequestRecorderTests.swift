import Alamofire
import Foundation
import HTTPTestServer
import Scenarios
import Testing

@Suite("Recording of requests", .timeLimit(.minutes(5))) struct RequestRecorderTests {
  private let server: HTTPTestServer

  init() throws { server = try HTTPTestServer() }

  private func session(_ recorder: RequestRecorder) -> Session {
    Session.real(configuration: .isolated, eventMonitors: [recorder])
  }

  private func entries(_ recorder: RequestRecorder) throws -> [[String: Any]] {
    recorder.queue.sync {}
    let document = try JSONSerialization.jsonObject(with: recorder.har()) as? [String: Any]
    let log = try #require(document?["log"] as? [String: Any])
    #expect(log["version"] as? String == "1.2")
    #expect((log["creator"] as? [String: Any])?["name"] as? String == "Alamofire")
    return try #require(log["entries"] as? [[String: Any]])
  }

  @Test("The archive has the members that the format requires") func members() async throws {
    let recorder = RequestRecorder(bodyLimit: 1_000)
    _ = await session(recorder).request(server.url("/get?a=b&c")).serializingData().response
    let entry = try #require(try entries(recorder).first)
    let request = try #require(entry["request"] as? [String: Any])
    let response = try #require(entry["response"] as? [String: Any])
    let timings = try #require(entry["timings"] as? [String: Double])
    #expect(
      Set(request.keys).isSuperset(of: [
        "method", "url", "httpVersion", "cookies", "headers", "queryString", "headersSize", "bodySize",
      ]))
    #expect(
      Set(response.keys).isSuperset(of: [
        "status", "statusText", "httpVersion", "cookies", "headers", "content", "redirectURL", "headersSize",
        "bodySize",
      ]))
    #expect(
      request["queryString"] as? [[String: String]] == [
        ["name": "a", "value": "b"], ["name": "c", "value": ""],
      ])
    #expect(response["status"] as? Int == 200 && response["httpVersion"] as? String == "HTTP/1.1")
    let content = try #require(response["content"] as? [String: Any])
    #expect((content["text"] as? String)?.contains("\"args\"") == true)
    #expect(entry["serverIPAddress"] as? String == "127.0.0.1")
    #expect(entry["cache"] is [String: Any])
    #expect((entry["startedDateTime"] as? String)?.hasSuffix("Z") == true)
    let phases = ["blocked", "dns", "connect", "send", "wait", "receive"].compactMap { timings[$0] }
    #expect(phases.count == 6)
    let sum = phases.map { max(0, $0) }.reduce(0, +)
    #expect(abs(sum - (entry["time"] as? Double ?? -1)) < 0.001)
  }

  @Test("A server puts no markup into a timeline, whatever it joins with it")
  func markup() async throws {
    let recorder = RequestRecorder()
    let session = session(recorder)
    for text in ["\u{600}<h9>", "<\u{301}h9>", "\u{D4E}<h9>\u{D4E}&\u{600}&\u{600}\"\u{600}'"] {
      server.enqueue(.raw("HTTP/1.1 200 OK\r\n\(text)x: y\r\n\r\n"))
      let response = await session.request(server.url("/a")).serializingData().response
      #expect(response.error != nil)
    }
    recorder.queue.sync {}
    let page = Array(recorder.timeline().utf8)
    for text in ["<h9>", "<\u{301}", "\u{600}&\u{600}", "\u{600}\"", "\u{600}'"] {
      let bytes = Array(text.utf8)
      let isFound = page.indices.contains { page[$0...].starts(with: bytes) }
      #expect(!isFound, "\(text.unicodeScalars.map(\.value))")
    }
    #expect(String(decoding: page, as: UTF8.self).unicodeScalars.contains("\u{600}"))
  }

  @Test("Each attempt has its own body, however late its event arrives") func bodiesOfAttempts() async throws
  {
    server.enqueue(
      Reply(status: 503, headers: [.contentType("text/plain")], body: .bytes(Array("first".utf8))),
      .text("second"))
    let recorder = RequestRecorder(bodyLimit: 1_000)
    let mayGoOn = DispatchSemaphore(value: 0)
    recorder.queue.async { mayGoOn.wait() }
    let response = await session(recorder)
      .request(server.url("/a"), interceptor: RetryPolicy(retryLimit: 1, exponentialBackoffScale: 0.01))
      .validate().serializingData().response
    mayGoOn.signal()
    #expect(response.value == Data("second".utf8))
    let texts = try entries(recorder).map { entry in
      ((entry["response"] as? [String: Any])?["content"] as? [String: Any])?["text"] as? String
    }
    #expect(texts == ["first", "second"])
  }

  @Test("The body of a POST is not in the entry of the GET that follows it") func redirectedBody()
    async throws
  {
    server.enqueue(.raw("HTTP/1.1 303 See Other\r\nLocation: /get\r\nContent-Length: 0\r\n\r\n"))
    let recorder = RequestRecorder(bodyLimit: 1_000)
    _ = await session(recorder).request(server.url("/"), method: .post, parameters: ["a": "b"])
      .serializingData().response
    let requests = try entries(recorder).compactMap { $0["request"] as? [String: Any] }
    #expect(requests.compactMap { $0["method"] as? String } == ["POST", "GET"])
    #expect((requests.first?["postData"] as? [String: Any])?["text"] as? String == "a=b")
    #expect(requests.count == 2 && requests.last?["postData"] == nil)
  }

  @Test("The versions of a request and of its response are apart") func versions() async throws {
    server.enqueue(.raw("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"))
    let recorder = RequestRecorder()
    _ = await session(recorder).request(server.url("/")).serializingData().response
    let entry = try #require(try entries(recorder).first)
    let versions = ["request", "response"].map { (entry[$0] as? [String: Any])?["httpVersion"] as? String }
    #expect(versions == ["HTTP/1.1", "HTTP/1.0"])
  }

  @Test("Redirects, retries and failures have their own entries") func hops() async throws {
    let recorder = RequestRecorder()
    let session = session(recorder)
    _ = await session.request(server.url("/redirect/2")).serializingData().response
    server.enqueue(.status(503))
    _ = await session.request(server.url("/get"), interceptor: RetryPolicy(exponentialBackoffScale: 0.001))
      .validate().serializingData().response
    _ = await session.request("http://127.0.0.1:1/").serializingData().response
    let entries = try entries(recorder)
    let statuses = entries.map { ($0["response"] as? [String: Any])?["status"] as? Int ?? -1 }
    #expect(statuses == [302, 302, 200, 503, 200, 0])
    #expect((entries[5]["comment"] as? String)?.contains("does not accept the connection") == true)
    #expect((entries[0]["response"] as? [String: Any])?["redirectURL"] as? String != "")
    #expect(recorder.count == 6)
    recorder.removeAll()
    #expect(recorder.count == 0)
  }

  @Test("Each attempt has the error that ended it, without the secrets of its text") func comments()
    async throws
  {
    let recorder = RequestRecorder()
    let request = session(recorder).request(
      "http://127.0.0.1:1/", interceptor: RetryPolicy(retryLimit: 1, exponentialBackoffScale: 0.001))
    _ = await request.serializingData().response
    recorder.queue.sync {}
    let comments = try entries(recorder).map { $0["comment"] as? String ?? "" }
    #expect(comments.count == 2 && comments.allSatisfy { $0.contains("does not accept") }, "\(comments)")
    // Errors of other code, such as the error of a `URLProtocol` class, have their own texts.
    struct Refusal: LocalizedError {
      var errorDescription: String? { "https://ann:planted@h/?access_token=planted was refused." }
    }
    recorder.request(
      request, didCompleteTask: try #require(request.task), with: .sessionTaskFailed(error: Refusal()))
    let later = try entries(recorder).map { $0["comment"] as? String ?? "" }
    #expect(later[0] == comments[0])
    // An error of another request is not this one's.
    recorder.request(
      session(recorder).request(server.url("/")), didCompleteTask: try #require(request.task),
      with: .explicitlyCancelled)
    #expect(try entries(recorder).map { $0["comment"] as? String ?? "" } == later)
    #expect(later[1].contains("was refused") && !later[1].contains("planted"), "\(later)")
  }

  @Test("The oldest entries are removed, and bodies over the limit are left out") func limits() async throws {
    let recorder = RequestRecorder(bodyLimit: 3, entryLimit: 2)
    let session = session(recorder)
    for text in ["a", "bbb", "cccc"] {
      server.enqueue(.text(text))
      _ = await session.request(server.url("/\(text)")).serializingData().response
    }
    let texts = try entries(recorder).map {
      (($0["response"] as? [String: Any])?["content"] as? [String: Any])?["text"] as? String
    }
    #expect(texts == ["bbb", nil])
  }

  @Test("A recorder keeps one entry at least, and no bodies by default") func smallLimits() async throws {
    let recorders = [
      RequestRecorder(entryLimit: 0), RequestRecorder(bodyLimit: -1, entryLimit: 1), RequestRecorder(),
    ]
    let session = Session.real(configuration: .isolated, eventMonitors: recorders)
    for path in ["/a", "/b"] {
      server.enqueue(.text("text"))
      _ = await session.request(server.url(path), method: .post, parameters: ["c": "d"]).serializingData()
        .response
    }
    for (recorder, count) in zip(recorders, [1, 1, 2]) {
      let entries = try entries(recorder)
      #expect(entries.count == count)
      let last = try #require(entries.last)
      let (request, response) = (last["request"] as? [String: Any], last["response"] as? [String: Any])
      #expect(request?["url"] as? String == server.url("/b"))
      #expect(request?["postData"] == nil)
      #expect((response?["content"] as? [String: Any])?["text"] == nil)
    }
  }

  @Test("A recorder keeps a thousand entries by default") func defaultLimit() async {
    let recorder = RequestRecorder()
    let session = Session.retained(
      fake: FakeTransport(), observers: SessionObservers(eventMonitors: [recorder]))
    let metrics = await session.request("http://a.test/").end().metrics
    let request = session.request("http://a.test/")
    for _ in 0..<1_001 { metrics.map { recorder.request(request, didGatherMetrics: $0) } }
    #expect(recorder.count == 1_000)
  }

  @Test("The body of a response is the last hop's") func bodyOfLastHop() async throws {
    let recorder = RequestRecorder(bodyLimit: 1_000)
    server.enqueue(.redirect(to: "/1", status: 302), .text("end"))
    _ = await session(recorder).request(server.url("/0")).serializingData().response
    let texts = try entries(recorder).map {
      (($0["response"] as? [String: Any])?["content"] as? [String: Any])?["text"] as? String ?? ""
    }
    #expect(texts == ["", "end"])
  }

  @Test("Bodies in memory are recorded for each hop that sends them") func requestBodies() async throws {
    let recorder = RequestRecorder(bodyLimit: 1_000)
    let session = session(recorder)
    let data = Data("data".utf8)
    server.enqueue(.redirect(to: "/1", status: 307), .redirect(to: "/2", status: 303), .text(""))
    _ = await session.upload(data, to: server.url("/0")).serializingData().response
    server.enqueue(.status(503), .text(""))
    _ = await session.upload(
      data, to: server.url("/3"),
      interceptor: RetryPolicy(exponentialBackoffScale: 0.001, retryableHTTPMethods: [.post])
    )
    .validate().serializingData().response
    _ = await session.upload(
      multipartFormData: { form in
        form.append(Data("planted".utf8), withName: "password")
        form.append(Data("shown".utf8), withName: "a")
      }, to: server.url("/4")
    ).serializingData().response
    _ = await session.upload(InputStream(data: data), to: server.url("/5")).serializingData().response
    _ = await session.upload(Data(repeating: 0x61, count: 1_001), to: server.url("/6")).serializingData()
      .response
    let texts = try entries(recorder).map { entry in
      let request = entry["request"] as? [String: Any]
      return (request?["postData"] as? [String: Any])?["text"] as? String
    }
    #expect(texts.count == 8)
    #expect(Array(texts.prefix(5)) == ["data", "data", nil, "data", "data"])
    let form = try #require(texts[5])
    #expect(form.contains("shown") && form.contains("redacted") && !form.contains("planted"))
    #expect(Array(texts.suffix(2)) == [nil, nil])
  }

  /// Names of header fields, query items, form fields and JSON members with secrets.
  private static let names = [
    "access_token", "refresh-token", "id_token", "api_key", "apiKey", "X-API-Key", "client_secret",
    "password",
    "passwd", "passphrase", "secret", "sessionid", "X-Auth-Token", "signature", "credential", "private_key",
    "access_key", "csrf", "jwt", "assertion", "auth", "pwd", "otp", "sid", "X-Signature",
  ]

  @Test(
    "None of a hundred planted secrets is in a log, the wire log, an archive, a timeline or a description",
    .steps)
  func plantedSecrets() async throws {
    let recorder = RequestRecorder(bodyLimit: 100_000)
    let entries = Recorder<String>()
    let log = RequestLog(level: .debug, bodyLimit: 100_000) { entries.add("\($0)") }
    let wire = Recorder<String>()
    let wireLog = WireLog { wire.add("\($0)") }
    let session = Session.real(configuration: .isolated, eventMonitors: [log, recorder, wireLog])
    let query = Self.names.map { "\($0)=planted-q" }.joined(separator: "&")
    var headers = HTTPHeaders(Self.names.map { HTTPHeader(name: $0, value: "planted-h") })
    headers.add(name: "X-Customer", value: "planted-x")
    headers.add(name: "Cookie", value: "a=planted-c")
    headers.add(.authorization(bearerToken: "planted-b"))
    let json = "{" + Self.names.map { "\"\($0)\": \"planted-j\"" }.joined(separator: ", ") + "}"
    let target = server.url("/to?\(query)").replacing("http://", with: "http://ann:planted-u@")
    server.enqueue(
      Reply(
        status: 302, headers: [HTTPHeader(name: "Location", value: "/from?\(query)#access_token=planted-f")]),
      Reply(
        status: 422,
        headers: Self.names.map { HTTPHeader(name: $0, value: "planted-r") } + [
          HTTPHeader(name: "Set-Cookie", value: "id=planted-s; Path=/"),
          HTTPHeader(name: "Content-Type", value: "application/json"),
        ], body: .bytes(Array(json.utf8))))
    let form = Dictionary(uniqueKeysWithValues: Self.names.map { ($0, "planted-p") })
    let request = session.request(target, method: .post, parameters: form, headers: headers)
      .transportOptions { $0.protectedHeaders = ["X-Customer"] }.validate()
    step("request with secrets")
    let response = await request.serializingString().response
    recorder.queue.sync {}
    log.queue.sync {}
    wireLog.queue.sync {}
    #expect(wire.values.count >= 4)
    #expect(response.response?.statusCode == 422 && recorder.count == 2 && entries.values.count >= 3)
    step("search of the texts")
    var texts =
      entries.values + wire.values + [
        String(decoding: try recorder.har(), as: UTF8.self), recorder.timeline(), "\(request)",
        response.description, response.metrics?.description ?? "",
        response.error.map { "\($0) \($0.localizedDescription)" } ?? "",
      ]
    texts.append(response.debugDescription)
    for text in texts {
      let lines = text.split(separator: "\n").filter { $0.contains("planted") }
      #expect(lines.isEmpty, "\(lines)")
    }
  }

  @Test("Entries are in the order in which the requests began") func order() async throws {
    let recorder = RequestRecorder()
    let session = session(recorder)
    async let slow = session.request(server.url("/delay/0.3")).serializingData().response
    _ = try await server.takeRequest()
    _ = await session.request(server.url("/get")).serializingData().response
    _ = await slow
    let urls = try entries(recorder).map { ($0["request"] as? [String: Any])?["url"] as? String ?? "" }
    #expect(urls == [server.url("/delay/0.3"), server.url("/get")])
  }

  @Test("The timeline has a line for each request, and nothing of a server is markup") func timeline()
    async throws
  {
    let recorder = RequestRecorder()
    let session = session(recorder)
    _ = await session.request(server.url("/get?a=%3Cb%3E&c='")).serializingData().response
    _ = await session.request("http://127.0.0.1:1/").serializingData().response
    recorder.queue.sync {}
    let page = recorder.timeline()
    #expect(page.components(separatedBy: "<tr").count == 4)
    #expect(page.contains("GET \(server.url("/get?a=%3Cb%3E&amp;c=&#39;"))") || page.contains("c=%27"))
    #expect(page.contains("<tr class=\"bad\">") && page.contains("class=\"wait\""))
    server.enqueue(.status(400), .status(399))
    for path in ["/400", "/399"] { _ = await session.request(server.url(path)).serializingData().response }
    recorder.queue.sync {}
    let rows = recorder.timeline().components(separatedBy: "<tr")
    #expect(rows.map { $0.hasPrefix(" class=\"bad\"") } == [false, false, false, true, true, false])
    #expect(!page.contains("<script") && page.hasPrefix("<!doctype html>"))
    #expect(RequestRecorder().timeline().contains("0 requests"))
  }

  @Test("Fields of a response keep order and spelling, and each Set-Cookie is separate") func fields()
    async throws
  {
    let fields = [
      HTTPHeader(name: "x-Z", value: "1"),
      HTTPHeader(name: "Set-Cookie", value: "a=1; Expires=Wed, 01 Jan 2070 00:00:00 GMT"),
      HTTPHeader(name: "A", value: "2"), HTTPHeader(name: "set-cookie", value: "b=2"),
    ]
    server.enqueue(Reply(status: 200, headers: fields, body: .bytes([65])))
    let response = await Session.real(configuration: .isolated)
      .request(server.url("/"), headers: ["X-b": "1", "x-A": "2"]).serializingData().response
    let transaction = try #require(response.metrics?.transactionMetrics.last)
    #expect(Array(transaction.responseFields.prefix(4)) == fields)
    let sent = transaction.requestFields.map(\.name).filter { $0.lowercased().hasPrefix("x-") }
    #expect(sent == ["X-b", "x-A"])
  }
}
