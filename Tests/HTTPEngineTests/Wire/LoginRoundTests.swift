import Dispatch
import FoundationEssentials
import HTTPTestServer
import HTTPWire
import Scenarios
import Synchronization
import Testing

/// The rounds of logins at the edges: connections that end, bodies in between, and proxies that forward requests.
@Suite("Rounds of logins", .timeLimit(.minutes(5))) struct LoginRoundTests {
  private static let first = "NTLM TlRMTVNTUAAB"
  private static let last = "NTLM TlRMTVNTUAAD"
  private static let login = ConnectionLogin(
    scheme: .ntlm, credential: PasswordCredential(user: "anna", password: "secret"))

  private static func refusal(
    _ token: String? = NTLMExample.challenge, _ fields: String = "Content-Length: 2\r\n", body: String = "no"
  ) -> String {
    let value = token.map { "NTLM \($0)" } ?? "NTLM"
    return "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: \(value)\r\n\(fields)\r\n\(body)"
  }

  private static let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nin"

  /// Makes a server that reads a head for each of the replies. The replies are grouped by connection, in order.
  private static func server(_ connections: [[String]], _ heads: Received) throws -> StreamTestServer {
    let left = Mutex(connections)
    return try StreamTestServer { connection in
      for reply in left.withLock({ $0.isEmpty ? [] : $0.removeFirst() }) {
        heads.add(try connection.readHead())
        try connection.write(reply)
      }
      if left.withLock({ $0.isEmpty }) { connection.waitForEnd() }
    }
  }

  private static func request(
    _ client: Client, _ port: Int, _ method: String = "GET", body: RequestBody = .none
  ) throws -> WireRequest {
    try client.request("http://127.0.0.1:\(port)/in", method, body: body).changing {
      $0.login = Self.login
    }
  }

  private static func field(_ head: String, _ name: String = "Authorization") -> String {
    let line = head.split(separator: "\r\n").first { $0.hasPrefix("\(name): ") }
    return line.map { String($0.dropFirst(name.count + 2)) } ?? ""
  }

  private static func steps(_ heads: Received) -> [String] {
    heads.texts.map { String(field($0).prefix(17)) }
  }

  // MARK: Servers

  @Test(
    "If the connection ends after a challenge, another connection requests it again",
    arguments: ["Connection: close\r\nContent-Length: 2\r\n", ""])
  func closingChallenge(fields: String) async throws {
    let heads = Received()
    let server = try Self.server(
      [[Self.refusal(NTLMExample.challenge, fields)], [Self.refusal(), Self.answer]], heads)
    let client = Client()
    #expect(try await client.send(Self.request(client, server.port)).text == "in")
    #expect(Self.steps(heads) == [Self.first, Self.first, Self.last])
    #expect(server.connectionCount == 2)
  }

  @Test("Without the body, which would be lost with the first message, a read-once body arrives whole")
  func readOnceBody() async throws {
    let heads = Received()
    let server = try StreamTestServer { connection in
      heads.add(try connection.readHead())
      try connection.write(Self.refusal())
      heads.add(try connection.readHead())
      heads.add(try connection.readExactly(4))
      try connection.write(Self.answer)
      connection.waitForEnd()
    }
    let client = Client()
    let source = ScriptedSource(.bytes(Array("body".utf8)), length: 4, isRepeatable: false)
    let request = try Self.request(client, server.port, "PUT", body: .source(source))
    #expect(try await client.send(request).text == "in")
    #expect(heads.texts.last == "body")
    #expect(heads.texts[0].contains("\r\nContent-Length: 0\r\n") && !heads.texts[0].contains("Expect"))
  }

  @Test(
    "A server that wants no login gets the request with its body",
    arguments: ["200 OK", "303 See Other\r\nLocation: /thanks", "400 Bad Request"])
  func needlessLogin(status: String) async throws {
    let heads = Received()
    let server = try StreamTestServer { connection in
      heads.add(try connection.readHead())
      try connection.write("HTTP/1.1 \(status)\r\nContent-Length: 5\r\n\r\nempty")
      heads.add(try connection.readHead())
      heads.add(try connection.readExactly(4))
      try connection.write(Self.answer)
      connection.waitForEnd()
    }
    let client = Client()
    let request = try Self.request(client, server.port, "POST", body: .bytes(Data("body".utf8)))
    #expect(try await client.send(request).text == "in")
    #expect(heads.texts.last == "body")
  }

  @Test("A refusal with a large body ends its connection, and a challenge in chunks is read to its end")
  func bodies() async throws {
    let heads = Received()
    let large = String(repeating: "x", count: 70_000)
    let server = try Self.server(
      [
        [Self.refusal(nil, "Content-Length: 70000\r\n", body: large)],
        [
          Self.refusal(
            NTLMExample.challenge, "Transfer-Encoding: chunked\r\n", body: "2\r\nno\r\n0\r\nX-A: b\r\n\r\n"),
          Self.answer,
        ],
      ], heads)
    let client = Client()
    #expect(try await client.send(Self.request(client, server.port)).text == "in")
    #expect(Self.steps(heads) == [Self.first, Self.first, Self.last])
  }

  @Test("A connection that breaks after a challenge is a failure, and the request is not sent again")
  func brokenRound() async throws {
    let heads = Received()
    let server = try Self.server(
      [[Self.refusal(NTLMExample.challenge, "Content-Length: 20\r\n", body: "half")], []], heads)
    let client = Client()
    let failure = try await client.failure(
      of: Self.request(client, server.port, "POST", body: .bytes(Data("body".utf8))))
    #expect(failure.kind == .connectionLost)
    #expect(failure.message.contains("between two requests of the login"), "\(failure.message)")
    #expect(Self.steps(heads) == [Self.first])
  }

  @Test(
    "A message that is none ends the login with the refusal and its body",
    arguments: ["AAAA", "TlRM", "TlRMTVNTUAAB"])
  func malformedChallenge(token: String) async throws {
    let heads = Received()
    let server = try Self.server([[Self.refusal(token), Self.answer]], heads)
    let client = Client()
    let response = try await client.send(Self.request(client, server.port))
    #expect(response.status == 401)
    #expect(response.text == "no")
    #expect(heads.texts.count == 1)
  }

  @Test("Only the last head is delivered, and the observer of the bytes sees every round")
  func observers() async throws {
    let heads = Received()
    let server = try Self.server([[Self.refusal(), Self.answer]], heads)
    let client = Client()
    let watcher = Watcher()
    let bytes = RecordedBytes()
    let request = try Self.request(client, server.port).changing { $0.wireObserver = bytes }
    #expect(try await client.send(request, watcher: watcher).text == "in")
    #expect(watcher.heads.map(\.status) == [200])
    #expect(bytes.text(.requestHead).split(separator: "GET /in ").count == 2)
    #expect(bytes.text(.responseHead).split(separator: "HTTP/1.1 ").count == 2)
    #expect(bytes.text(.responseBody) == "noin")
  }

  @Test("A cancelled login ends, and its connection closes") func cancellation() async throws {
    let heads = Received()
    let ended = Moment()
    let server = try StreamTestServer { connection in
      heads.add(try connection.readHead())
      try connection.write(Self.refusal(NTLMExample.challenge, "Content-Length: 20\r\n", body: "half"))
      connection.waitForEnd()
      ended.come()
    }
    let client = Client()
    let request = try Self.request(client, server.port)
    let task = Task { try await client.failure(of: request) }
    #expect(await ProcessFacts.eventually { heads.texts.count == 1 })
    task.cancel()
    #expect(try await task.value.kind == .cancelled)
    await ended.wait()
  }

  @Test("A login without a ticket sends the request without credentials, and delivers the refusal")
  func withoutTicket() async throws {
    let heads = Received()
    let reply = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Negotiate\r\nContent-Length: 2\r\n\r\nno"
    let server = try Self.server([[reply]], heads)
    let client = Client()
    let login = ConnectionLogin(scheme: .negotiate, credential: PasswordCredential(user: "", password: ""))
    let request = try client.request("http://127.0.0.1:\(server.port)/").changing { $0.login = login }
    #expect(try await client.send(request).status == 401)
    #expect(heads.texts.count == 1 && Self.field(heads.texts[0]).isEmpty)
  }

  // MARK: Proxies

  private static func proxyRefusal(_ challenge: String, _ fields: String = "") -> String {
    "HTTP/1.1 407 Login\r\nProxy-Authenticate: \(challenge)\r\n\(fields)Content-Length: 2\r\n\r\nno"
  }

  private static func client(_ port: Int) -> Client {
    Client {
      var server = ProxyServer(.http, host: "127.0.0.1", port: port, username: "ann", password: "pw")
      server.authentication = .negotiated
      $0.proxy = .server(server)
    }
  }

  private static func proxyFields(_ heads: Received) -> [String] {
    heads.texts.map { field($0, "Proxy-Authorization") }
  }

  @Test("A connection that NTLM has authenticated for a proxy carries the next request without credentials")
  func proxyNTLM() async throws {
    let heads = Received()
    let proxy = try Self.server(
      [
        [
          Self.proxyRefusal("NTLM"), Self.proxyRefusal("NTLM \(NTLMExample.challenge)"), Self.answer,
          Self.answer,
        ]
      ], heads)
    let client = Self.client(proxy.port)
    for _ in 0..<2 { #expect(try await client.get("http://nowhere.test/").text == "in") }
    let fields = Self.proxyFields(heads).map { String($0.prefix(17)) }
    #expect(fields == ["", Self.first, Self.last, ""])
    #expect(proxy.connectionCount == 1)
    #expect(heads.texts.allSatisfy { $0.hasPrefix("GET http://nowhere.test/ HTTP/1.1\r\n") })
  }

  @Test("Digest of a proxy covers the target as sent, and the next request increments the nonce count")
  func proxyDigest() async throws {
    let heads = Received()
    let challenge = #"Digest realm="p", nonce="one", qop="auth""#
    let proxy = try Self.server([[Self.proxyRefusal(challenge), Self.answer, Self.answer]], heads)
    let client = Self.client(proxy.port)
    for _ in 0..<2 { #expect(try await client.get("http://nowhere.test:81/a?b=c").text == "in") }
    let fields = Self.proxyFields(heads)
    try #require(fields.count == 3)
    #expect(fields[0].isEmpty)
    #expect(fields[1].contains("nc=00000001") && fields[2].contains("nc=00000002"), "\(fields)")
    #expect(fields[1...].allSatisfy { $0.contains(#"uri="http://nowhere.test:81/a?b=c""#) }, "\(fields)")
  }

  /// Sends three requests at a time through a proxy.
  private static func sendThree(_ client: Client) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 1...3 {
        group.addTask {
          let response = try await client.get("http://nowhere.test/\(index)")
          #expect(response.text == "in")
        }
      }
      try await group.waitForAll()
    }
  }

  /// Returns the counts of the nonces in the answers to the proxy, sorted; empty texts for requests without one.
  private static func counts(_ heads: Received) -> [String] {
    proxyFields(heads).map { field in
      field.firstRange(of: "nc=").map { String(field[$0.upperBound...].prefix(8)) } ?? ""
    }.sorted()
  }

  @Test("Each request to a proxy has another count of the nonce, also those in flight at a time")
  func proxyCounts() async throws {
    let heads = Received()
    let isFirst = Mutex(true)
    let together = Mutex(0)
    let allAreThere = DispatchSemaphore(value: 0)
    let challenge = #"Digest realm="p", nonce="one", qop="auth""#
    let proxy = try StreamTestServer { connection in
      let begins = isFirst.withLock { isFirst in
        defer { isFirst = false }
        return isFirst
      }
      for reply in begins ? [Self.proxyRefusal(challenge), Self.answer] : [] {
        heads.add(try connection.readHead())
        try connection.write(reply)
      }
      for round in 0..<2 {
        heads.add(try connection.readHead())
        let count = together.withLock { count in
          count += 1
          return count
        }
        if count == 3 { for _ in 0..<3 { allAreThere.signal() } }
        if round == 0 { _ = allAreThere.wait(timeout: .now() + 60) }
        try connection.write(Self.answer)
      }
      connection.waitForEnd()
    }
    let client = Self.client(proxy.port)
    #expect(try await client.get("http://nowhere.test/0").text == "in")
    try await Self.sendThree(client)
    #expect(try await client.get("http://nowhere.test/4").text == "in")
    #expect(Self.counts(heads) == ["", "00000001", "00000002", "00000003", "00000004", "00000005"])
  }

  @Test("Answers to one nonce that several requests are asked with at once have different counts")
  func countsOfFirstChallenge() async throws {
    let heads = Received()
    let refused = Mutex(0)
    let allAreRefused = DispatchSemaphore(value: 0)
    let challenge = #"Digest realm="p", nonce="one", qop="auth""#
    let proxy = try StreamTestServer { connection in
      _ = try connection.readHead()
      let count = refused.withLock { count in
        count += 1
        return count
      }
      if count == 3 { for _ in 0..<3 { allAreRefused.signal() } }
      _ = allAreRefused.wait(timeout: .now() + 60)
      try connection.write(Self.proxyRefusal(challenge))
      heads.add(try connection.readHead())
      try connection.write(Self.answer)
      connection.waitForEnd()
    }
    let client = Self.client(proxy.port)
    try await Self.sendThree(client)
    #expect(Self.counts(heads) == ["00000001", "00000002", "00000003"])
  }

  @Test("Without a ticket, the 407 of a proxy that wants one is delivered") func noTicket() async throws {
    let heads = Received()
    let proxy = try Self.server([[Self.proxyRefusal("Negotiate"), Self.proxyRefusal("Negotiate")]], heads)
    let client = Client {
      var server = ProxyServer(.http, host: "127.0.0.1", port: proxy.port, username: "", password: "t")
      server.authentication = .negotiated
      $0.proxy = .server(server)
    }
    let response = try await client.get("http://nowhere.test/")
    #expect(response.status == 407)
    #expect(response.text == "no")
  }

  @Test("A wrong password of a proxy ends with its 407") func wrongPassword() async throws {
    let heads = Received()
    let proxy = try Self.server(
      [
        [
          Self.proxyRefusal("NTLM"), Self.proxyRefusal("NTLM \(NTLMExample.challenge)"),
          Self.proxyRefusal("NTLM"),
        ]
      ],
      heads)
    let response = try await Self.client(proxy.port).get("http://nowhere.test/")
    #expect(response.status == 407)
    #expect(response.text == "no")
    #expect(heads.texts.count == 3)
  }

  @Test("A read-once body that was sent is not sent again for a proxy") func readOnceBodyForProxy()
    async throws
  {
    let heads = Received()
    let proxy = try StreamTestServer { connection in
      heads.add(try connection.readHead())
      heads.add(try connection.readExactly(4))
      try connection.write(Self.proxyRefusal(#"Basic realm="p""#))
      connection.waitForEnd()
    }
    let client = Self.client(proxy.port)
    let source = ScriptedSource(.bytes(Array("body".utf8)), length: 4, isRepeatable: false)
    let request = try client.request("http://nowhere.test/", "PUT", body: .source(source))
    #expect(try await client.send(request).status == 407)
    #expect(proxy.connectionCount == 1)
    #expect(source.starts == 1)
  }

  @Test("Long bodies wait for the answer of a proxy that may want a login", .steps) func longBodyForProxy()
    async throws
  {
    let heads = Received()
    let connections = Counter()
    let proxy = try StreamTestServer { connection in
      connections.enter()
      let number = connections.now
      while true {
        let head = try connection.readHead()
        heads.add(head)
        let isRefused = number == 1 || number == 2 && heads.texts.count > 3
        guard !isRefused else {
          let nonce = number == 1 ? #"nonce="one""# : #"nonce="two", stale=true"#
          try connection.write(Self.proxyRefusal(#"Digest realm="p", \#(nonce), qop="auth""#))
          return connection.waitForEnd()
        }
        try connection.write(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
        heads.add(try connection.readExactly(100_000))
        try connection.write(Self.answer)
      }
    }
    let client = Self.client(proxy.port)
    let bytes = [UInt8](repeating: 7, count: 100_000)
    for number in 1...2 {
      step("body \(number)")
      let source = ScriptedSource(.bytes(bytes), length: 100_000)
      let request = try client.request("http://nowhere.test/", "PUT", body: .source(source))
      #expect(try await client.send(request).text == "in")
    }
    step("heads of the requests")
    try #require(heads.texts.count == 6, "\(heads.texts.count)")
    for (index, mark) in [(0, "PUT"), (1, #"nonce="one""#), (3, #"nonce="one""#), (4, #"nonce="two""#)] {
      #expect(heads.texts[index].contains("Expect: 100-continue"), "\(index)")
      #expect(heads.texts[index].contains(mark), "\(index)")
    }
    #expect(heads.values[2] == bytes && heads.values[5] == bytes)
  }

  @Test("A login of the server passes a proxy that wants one, too") func both() async throws {
    let heads = Received()
    let proxy = try Self.server(
      [
        [
          Self.proxyRefusal(#"Basic realm="p""#), Self.refusal(), Self.answer,
        ]
      ], heads)
    let client = Self.client(proxy.port)
    let request = try client.request("http://nowhere.test/").changing { $0.login = Self.login }
    #expect(try await client.send(request).text == "in")
    #expect(Self.steps(heads) == [Self.first, Self.first, Self.last])
    #expect(Self.proxyFields(heads).map { $0.isEmpty } == [true, false, false])
  }

  @Test("An answer to the server that a proxy refuses is not sent on another connection") func staleAnswer()
    async throws
  {
    let heads = Received()
    let challenges = [#"nonce="one""#, #"nonce="two", stale=true"#].map {
      #"Digest realm="p", qop="auth", \#($0)"#
    }
    let proxy = try Self.server(
      [
        [
          Self.proxyRefusal(challenges[0]), Self.refusal(),
          Self.proxyRefusal(challenges[1], "Connection: close\r\n"),
        ],
        [Self.refusal(nil)],
      ], heads)
    let client = Self.client(proxy.port)
    let request = try client.request("http://nowhere.test/").changing { $0.login = Self.login }
    let failure = try await client.failure(of: request)
    #expect(failure.kind == .connectionLost, "\(failure.message)")
    #expect(failure.message.contains("between two requests of the login"), "\(failure.message)")
    #expect(Self.steps(heads) == [Self.first, Self.first, Self.last])
    #expect(Self.proxyFields(heads).map { $0.isEmpty } == [true, false, false])
    #expect(proxy.connectionCount == 1)
  }

  @Test("A login of the server leaves a proxy the password that it gets without asking") func basicOfProxy()
    async throws
  {
    let heads = Received()
    let proxy = try Self.server([[Self.refusal(nil), Self.refusal(), Self.answer]], heads)
    let client = Client {
      $0.proxy = .http("127.0.0.1", port: proxy.port, username: "ann", password: "pw")
    }
    let request = try client.request("http://nowhere.test/").changing { $0.login = Self.login }
    #expect(try await client.send(request).text == "in")
    #expect(Self.steps(heads) == [Self.first, Self.first, Self.last])
    #expect(Self.proxyFields(heads) == Array(repeating: "Basic YW5uOnB3", count: 3))
  }

  @Test("A proxy at a Unix-domain socket forwards requests and opens tunnels") func socket() async throws {
    let server = try UnixSocketServer([Self.proxyRefusal(#"Basic realm="p""#), Self.answer])
    let client = Client {
      var proxy = ProxyServer(.http, host: "proxy.test", port: 9, username: "ann", password: "pw")
      proxy.authentication = .negotiated
      $0.unixSocket = server.path
      $0.proxy = .server(proxy)
    }
    #expect(try await client.get("http://nowhere.test/x").text == "in")
    #expect(server.heads.allSatisfy { $0.hasPrefix("GET http://nowhere.test/x HTTP/1.1\r\n") })
    let refusing = try UnixSocketServer(["HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"])
    let other = Client {
      $0.unixSocket = refusing.path
      $0.proxy = .server(ProxyServer(.http, host: "proxy.test", port: 9))
    }
    let failure = try await other.failure(of: "https://nowhere.test/")
    #expect(failure.kind == .cannotConnectToHost)
    #expect(refusing.heads.allSatisfy { $0.hasPrefix("CONNECT nowhere.test:443 HTTP/1.1\r\n") })
    #expect(refusing.heads.count == 1)
  }
}

/// Collects the bytes of one request on its connection.
private final class RecordedBytes: WireObserver {
  private let parts = Mutex<[WirePart: [UInt8]]>([:])

  func bytesMoved(_ part: WirePart, _ bytes: UnsafeRawBufferPointer) {
    parts.withLock { $0[part, default: []] += Array(bytes) }
  }

  func wireEnded() {}

  func text(_ part: WirePart) -> String {
    String(decoding: parts.withLock { $0[part] ?? [] }, as: UTF8.self)
  }
}
