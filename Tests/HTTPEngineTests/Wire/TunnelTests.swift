import FoundationEssentials
import HTTPTestServer
import HTTPWire
import Testing

/// CONNECT (RFC 9110 §9.3.6) and the logins of proxies.
@Suite("Tunnels and logins of proxies", .timeLimit(.minutes(5))) struct TunnelTests {
  private func client(_ port: Int, _ authentication: ProxyServer.Authentication? = nil) -> Client {
    Client {
      var server = ProxyServer(.http, host: "127.0.0.1", port: port, username: "ann", password: "pw")
      if let authentication { server.authentication = authentication }
      $0.proxy = .server(server)
    }
  }

  @Test(
    "A tunnel carries no field of the request, and what its 2xx says of a body is ignored",
    arguments: [
      "HTTP/1.1 200 Connection established\r\n\r\n",
      "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
      "HTTP/1.1 204 No Content\r\nX-A: b\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nX-A: b\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
    ])
  func tunnel(reply: String) async throws {
    let heads = Received()
    let proxy = try StreamTestServer { connection in
      heads.add(try connection.readHead())
      try connection.write(reply)
      try connection.startTLS(.localhost)
      heads.add(try connection.readHead())
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
      connection.waitForEnd()
    }
    let client = client(proxy.port)
    let request = try client.request(
      "https://localhost:9/x", fields: [HTTPHeader(name: "Authorization", value: "Bearer s3cret")])
    #expect(try await client.send(request).text == "ok")
    let texts = heads.texts
    try #require(texts.count == 2)
    #expect(texts[0].hasPrefix("CONNECT localhost:9 HTTP/1.1\r\n"), "\(texts[0])")
    #expect(texts[0].contains("\r\nHost: localhost:9\r\n"), "\(texts[0])")
    #expect(texts[0].contains("\r\nProxy-Authorization: Basic "), "\(texts[0])")
    #expect(!texts[0].contains("s3cret"))
    #expect(texts[1].hasPrefix("GET /x HTTP/1.1\r\n") && texts[1].contains("s3cret"))
    #expect(!texts[1].contains("Proxy-Authorization"))
  }

  @Test(
    "Informational responses to CONNECT are skipped",
    arguments: [
      "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 P\r\n\r\n",
    ])
  func informational(before: String) async throws {
    let proxy = try StreamTestServer { connection in
      _ = try connection.readHead()
      try connection.write(before + "HTTP/1.1 200 Connection established\r\n\r\n")
      try connection.startTLS(.localhost)
      _ = try connection.readHead()
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
      connection.waitForEnd()
    }
    #expect(try await client(proxy.port).get("https://localhost:9/x").text == "ok")
    #expect(proxy.connectionCount == 1)
  }

  @Test("Other responses to CONNECT with an invalid length are refused") func invalidLength() async throws {
    let proxy = try StreamTestServer { connection in
      _ = try connection.readHead()
      try connection.write("HTTP/1.1 502 No\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n")
      connection.waitForEnd()
    }
    let failure = try await client(proxy.port).failure(of: "https://localhost:9/x")
    #expect(failure.kind == .cannotConnectToProxy, "\(failure)")
  }

  @Test("A stale nonce of Digest is replaced without another question") func staleNonce() async throws {
    let proxy = try HTTPTestServer(routes: .none)
    let challenge = { (nonce: String, stale: String) in
      Reply.status(407).with(
        header: "Proxy-Authenticate", value: #"Digest realm="p", nonce="\#(nonce)", qop="auth"\#(stale)"#)
    }
    proxy.enqueue(challenge("one", ""), challenge("two", ", stale=true"), .text("in"))
    #expect(try await client(proxy.port, .negotiated).get("http://nowhere.test/").text == "in")
    let answers = proxy.recordedRequests.map { $0.header("Proxy-Authorization") ?? "" }
    #expect(answers.count == 3)
    #expect(answers[0].isEmpty)
    #expect(answers[1].contains(#"nonce="one""#) && answers[1].contains("qop=auth"), "\(answers)")
    #expect(answers[2].contains(#"nonce="two""#), "\(answers)")
  }

  @Test("A proxy that calls each nonce of a tunnel stale is given up")
  func endlessTunnelChallenges() async throws {
    let count = Counter()
    let proxy = try StreamTestServer { connection in
      while true {
        _ = try connection.readHead()
        count.enter()
        try connection.write(
          """
          HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\
          Proxy-Authenticate: Digest realm="p", nonce="\(count.now)", qop="auth", stale=true\r\n\r\n
          """)
        if count.now > 50 { return }
      }
    }
    let failure = try await client(proxy.port, .negotiated).failure(of: "https://localhost:9/x")
    #expect(failure.kind == .proxyAuthenticationRequired, "\(failure.message)")
    #expect(count.now < 50, "\(count.now) requests")
  }

  @Test("Challenges of a proxy that never end are given up") func endlessChallenges() async throws {
    let proxy = try HTTPTestServer(routes: .none)
    for number in 0..<50 {
      proxy.enqueue(
        .status(407).with(
          header: "Proxy-Authenticate",
          value: #"Digest realm="p", nonce="\#(number)", qop="auth", stale=true"#))
    }
    #expect(try await client(proxy.port, .negotiated).get("http://nowhere.test/").status == 407)
    #expect(proxy.requestCount < 50, "\(proxy.requestCount) requests")
  }

  private static func answer(_ connection: StreamTestConnection) throws {
    try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    connection.waitForEnd()
  }

  /// Checks what no proxy could do that reads the request: it would connect to the host of its URL.
  @Test("If its host is overridden, a cleartext request goes through a tunnel to the target")
  func override() async throws {
    let heads = Received()
    let proxy = try StreamTestServer { connection in
      heads.add(try connection.readHead())
      try connection.write("HTTP/1.1 200 OK\r\n\r\n")
      heads.add(try connection.readHead())
      try Self.answer(connection)
    }
    let client = Client {
      $0.proxy = .server(ProxyServer(.http, host: "127.0.0.1", port: proxy.port))
      $0.hostOverrides = [.init(host: "shop.test", target: "other.test", targetPort: 81)]
    }
    #expect(try await client.get("http://shop.test/x").text == "ok")
    #expect(
      heads.texts == [
        "CONNECT other.test:81 HTTP/1.1\r\nHost: other.test:81\r\n\r\n",
        "GET /x HTTP/1.1\r\nHost: shop.test\r\n\r\n",
      ])
  }

  @Test("TLS of the server goes through TLS of the proxy, and the tunnel is used again")
  func tunnelOverTLS() async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    let proxy = try StreamTestServer(.tls(.localhost)) { connection in
      _ = try connection.readHead()
      try connection.relay(toPort: server.port) { try connection.write("HTTP/1.1 200 OK\r\n\r\n") }
    }
    var way = ProxyServer(.https, host: "localhost", port: proxy.port)
    way.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
    let client = Client { [way] in $0.proxy = .server(way) }
    for size in [1, 300_000] {
      let response = try await client.get("https://localhost:\(server.port)/bytes/\(size)")
      #expect(response.bytes == Reply.patternBytes(size))
      #expect(response.metrics.values.isProxyConnection)
    }
    #expect(proxy.connectionCount == 1)
  }

  @Test("NTLM authenticates the connection that becomes the tunnel") func ntlm() async throws {
    let heads = Received()
    let proxy = try StreamTestServer { connection in
      for challenge in ["NTLM", "NTLM \(NTLMExample.challenge)"] {
        heads.add(try connection.readHead())
        try connection.write(
          "HTTP/1.1 407 Login\r\nProxy-Authenticate: \(challenge)\r\nContent-Length: 2\r\n\r\nno")
      }
      heads.add(try connection.readHead())
      try connection.write("HTTP/1.1 200 OK\r\n\r\n")
      try connection.startTLS(.localhost)
      _ = try connection.readHead()
      try Self.answer(connection)
    }
    #expect(try await client(proxy.port, .negotiated).get("https://localhost:9/x").text == "ok")
    let texts = heads.texts
    try #require(texts.count == 3)
    #expect(texts.allSatisfy { $0.hasPrefix("CONNECT localhost:9 HTTP/1.1\r\n") })
    // The bytes of the messages after their signature are 1 and 3.
    #expect(!texts[0].contains("Proxy-Authorization"))
    #expect(texts[1].contains("\r\nProxy-Authorization: NTLM TlRMTVNTUAAB"), "\(texts[1])")
    #expect(texts[2].contains("\r\nProxy-Authorization: NTLM TlRMTVNTUAAD"), "\(texts[2])")
    #expect(proxy.connectionCount == 1)
  }

  /// The end of a connection on which a proxy has sent the challenge of NTLM.
  enum ChallengeEnd: CaseIterable {
    case withinBody, afterBody, excessByte, longBody, malformedChunk

    /// The rest of the response after the fields with challenges.
    var rest: String {
      switch self {
      case .withinBody: "Content-Length: 3\r\n\r\nno"
      case .afterBody: "Content-Length: 2\r\n\r\nno"
      case .excessByte: "Content-Length: 2\r\n\r\nno!"
      case .longBody:
        "Transfer-Encoding: chunked\r\n\r\n11170\r\n\(String(repeating: "x", count: 70_000))\r\n0\r\n\r\n"
      case .malformedChunk: "Transfer-Encoding: chunked\r\n\r\nx\r\n"
      }
    }
  }

  private static let first = "NTLM TlRMTVNTUAAB"
  private static let last = "NTLM TlRMTVNTUAAD"

  /// Reads the head of a request, and refuses it with challenges of NTLM and Basic.
  private static func refuse(
    _ connection: StreamTestConnection, _ heads: Received, _ challenge: String?,
    _ rest: String = ChallengeEnd.afterBody.rest
  ) throws {
    heads.add(try connection.readHead())
    let ntlm = challenge.map { "NTLM \($0)" } ?? "NTLM"
    try connection.write(
      "HTTP/1.1 407 Login\r\nProxy-Authenticate: \(ntlm), Basic realm=\"p\"\r\n\(rest)")
  }

  /// Returns the beginnings of the credentials for the proxy.
  private static func credentials(_ heads: Received) -> [String] {
    heads.texts.map { head in
      head.firstRange(of: "\r\nProxy-Authorization: ").map { String(head[$0.upperBound...].prefix(17)) } ?? ""
    }
  }

  @Test(
    "The answer to a challenge is not sent on another connection, where the login begins again",
    arguments: ChallengeEnd.allCases)
  func lostAnswer(end: ChallengeEnd) async throws {
    let heads = Received()
    let connections = Counter()
    let proxy = try StreamTestServer { connection in
      connections.enter()
      guard connections.now > 1 else {
        try Self.refuse(connection, heads, nil)
        try Self.refuse(connection, heads, NTLMExample.challenge, end.rest)
        connection.closeWriting()
        return connection.waitForEnd()
      }
      try Self.refuse(connection, heads, NTLMExample.challenge)
      heads.add(try connection.readHead())
      try connection.write("HTTP/1.1 200 OK\r\n\r\n")
      try connection.startTLS(.localhost)
      _ = try connection.readHead()
      try Self.answer(connection)
    }
    #expect(try await client(proxy.port, .negotiated).get("https://localhost:9/x").text == "ok")
    #expect(Self.credentials(heads) == ["", Self.first, Self.first, Self.last])
    #expect(proxy.connectionCount == 2)
  }

  @Test(
    "A proxy that ends each connection after its challenge is given up, and gets no password",
    arguments: ChallengeEnd.allCases)
  func lostAnswers(end: ChallengeEnd) async throws {
    let heads = Received()
    let connections = Counter()
    let proxy = try StreamTestServer { connection in
      connections.enter()
      if connections.now == 1 { try Self.refuse(connection, heads, nil) }
      try Self.refuse(connection, heads, NTLMExample.challenge, end.rest)
      connection.closeWriting()
      connection.waitForEnd()
    }
    let failure = try await client(proxy.port, .negotiated).failure(of: "https://localhost:9/x")
    #expect(failure.kind == .cannotConnectToProxy, "\(failure.message)")
    #expect(Self.credentials(heads) == ["", Self.first, Self.first])
    #expect(proxy.connectionCount == 2)
  }

  @Test(
    "A proxy that offers no scheme for the credential has not refused it",
    arguments: [
      ("ann", "Negotiate", "Basic, Digest and NTLM"),
      ("ann", #"Digest realm="p", nonce="n", algorithm=MD4"#, "Basic, Digest and NTLM"),
      ("", #"Bearer realm="p""#, "a ticket is needed"),
    ])
  func unanswerableChallenge(user: String, challenge: String, words: String) async throws {
    let proxy = try HTTPTestServer(routes: .none)
    proxy.enqueue(.status(407).with(header: "Proxy-Authenticate", value: challenge))
    let client = Client {
      var server = ProxyServer(.http, host: "127.0.0.1", port: proxy.port, username: user, password: "pw")
      server.authentication = .negotiated
      $0.proxy = .server(server)
    }
    let failure = try await client.failure(of: "https://localhost:9/x")
    #expect(failure.kind == .proxyAuthenticationRequired, "\(failure.message)")
    #expect(failure.message.contains(words), "\(failure.message)")
    #expect(!failure.message.contains("does not accept"), "\(failure.message)")
    #expect(try await proxy.takeRequest().header("Proxy-Authorization") == nil)
  }

  @Test("A credential that a proxy has got and refused is not accepted", arguments: [true, false])
  func refusedCredential(isNegotiated: Bool) async throws {
    let proxy = try HTTPTestServer(routes: .none)
    let asks = Reply.status(407).with(header: "Proxy-Authenticate", value: #"Basic realm="p""#)
    proxy.enqueue(asks, asks)
    let failure = try await client(proxy.port, isNegotiated ? .negotiated : .basic)
      .failure(of: "https://localhost:9/x")
    #expect(failure.kind == .proxyAuthenticationRequired, "\(failure.message)")
    #expect(failure.message.contains("does not accept the name and the password"), "\(failure.message)")
    #expect(proxy.requestCount == (isNegotiated ? 2 : 1))
  }

  @Test("A connection that a proxy breaks is the one to the proxy", arguments: [true, false])
  func brokenConnection(isTunnel: Bool) async throws {
    let proxy = try StreamTestServer { connection in
      _ = try connection.readHead()
      connection.reset()
    }
    let client = client(proxy.port)
    // The connection to a proxy that forwards requests belongs to no origin.
    let url = "\(isTunnel ? "https" : "http")://nowhere.test/"
    let failure = try await client.failure(of: client.request(url, "POST"))
    let name = "the proxy http://127.0.0.1:\(proxy.port)"
    let peer = isTunnel ? "nowhere.test through \(name)" : name
    #expect(failure.message.contains("The connection to \(peer) broke: "), "\(failure.message)")
    if isTunnel {
      #expect(failure.kind == .cannotConnectToProxy)
      #expect(failure.message.contains("before the request was sent. (The"), "\(failure.message)")
    }
  }

  @Test("The time of connecting includes the answer of the proxy") func times() async throws {
    let gate = Gate()
    let proxy = try StreamTestServer { connection in
      _ = try connection.readHead()
      try connection.pass(gate)
      try connection.write("HTTP/1.1 200 OK\r\n\r\n")
      try connection.startTLS(.localhost)
      _ = try connection.readHead()
      try Self.answer(connection)
    }
    async let response = client(proxy.port).get("https://localhost:9/")
    await gate.waitForArrival()
    try await Client().passTime(.milliseconds(50))
    gate.open()
    let values = try await response.metrics.values
    #expect(values.connectEnd - values.lookupEnd >= 50_000 && values.secureEnd >= values.connectEnd)
    #expect(values.isProxyConnection && values.remotePort == Int32(proxy.port))
  }
}
