import FoundationEssentials
import HTTPTestServer
import HTTPWire
import Testing

/// The requests of a login that authenticates its connection.
@Suite("Steps of logins", .timeLimit(.minutes(5))) struct LoginStepTests {
  @Test("NTLM sends the body with its last message only, and the connection closes after the response")
  func ntlm() async throws {
    let heads = Received()
    let rest = Received()
    let server = try StreamTestServer { connection in
      heads.add(try connection.readHead())
      try connection.write(
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: NTLM \(NTLMExample.challenge)\r\nContent-Length: 2\r\n\r\nno"
      )
      heads.add(try connection.readHead())
      rest.add(try connection.readExactly(10))
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nin")
      rest.add(try connection.readToEnd())
    }
    let client = Client()
    let login = ConnectionLogin(
      scheme: .ntlm, credential: PasswordCredential(user: "anna", password: "secret"))
    let request = try client.request(
      "http://127.0.0.1:\(server.port)/", "POST", body: .bytes(Data("0123456789".utf8))
    ).changing { $0.login = login }
    #expect(try await client.send(request).text == "in")
    #expect(await ProcessFacts.eventually { rest.values.count == 2 }, "the connection was not closed")
    #expect(rest.texts == ["0123456789", ""])
    let texts = heads.texts
    try #require(texts.count == 2)
    // The bytes of the messages after their signature are 1 and 3.
    #expect(texts[0].contains("\r\nAuthorization: NTLM TlRMTVNTUAAB"), "\(texts[0])")
    #expect(texts[0].contains("\r\nContent-Length: 0\r\n"), "\(texts[0])")
    #expect(texts[1].contains("\r\nAuthorization: NTLM TlRMTVNTUAAD"), "\(texts[1])")
    #expect(texts[1].contains("\r\nContent-Length: 10\r\n"), "\(texts[1])")
  }

  @Test(
    "A request with an empty body is not sent again to a server that wants no login",
    arguments: ["200 OK", "303 See Other\r\nLocation: /thanks"])
  func emptyBody(status: String) async throws {
    let heads = Received()
    let server = try StreamTestServer { connection in
      while true {
        heads.add(try connection.readHead())
        try connection.write("HTTP/1.1 \(status)\r\nContent-Length: 2\r\n\r\n#\(heads.texts.count)")
      }
    }
    let client = Client()
    let login = ConnectionLogin(
      scheme: .ntlm, credential: PasswordCredential(user: "anna", password: "secret"))
    let request = try client.request(
      "http://127.0.0.1:\(server.port)/", "POST", body: .source(ScriptedSource(length: 0))
    ).changing { $0.login = login }
    #expect(try await client.send(request).text == "#1", "the first response is the response to the request")
    try #require(heads.texts.count == 1, "\(heads.texts)")
    #expect(heads.texts[0].contains("\r\nAuthorization: NTLM TlRMTVNTUAAB"), "\(heads.texts[0])")
    #expect(heads.texts[0].contains("\r\nContent-Length: 0\r\n"), "\(heads.texts[0])")
  }

  @Test("A request with an empty body is not sent again through a proxy that wants no login any more")
  func emptyBodyForProxy() async throws {
    let heads = Received()
    let proxy = try StreamTestServer { connection in
      heads.add(try connection.readHead())
      try connection.write("HTTP/1.1 407 Login\r\nProxy-Authenticate: NTLM\r\nContent-Length: 0\r\n\r\n")
      while true {
        heads.add(try connection.readHead())
        try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n#\(heads.texts.count)")
      }
    }
    let client = Client {
      var server = ProxyServer(.http, host: "127.0.0.1", port: proxy.port, username: "ann", password: "pw")
      server.authentication = .negotiated
      $0.proxy = .server(server)
    }
    let request = try client.request(
      "http://nowhere.test/", "POST", body: .source(ScriptedSource(length: 0)))
    #expect(try await client.send(request).text == "#2", "the second response is the response to the request")
    try #require(heads.texts.count == 2, "\(heads.texts)")
    #expect(heads.texts[1].contains("\r\nProxy-Authorization: NTLM TlRMTVNTUAAB"), "\(heads.texts[1])")
  }

  @Test("A login begins on a connection that has not carried other requests") func ownConnection()
    async throws
  {
    let server = try StreamTestServer { connection in
      while true {
        let head = String(decoding: try connection.readHead(), as: UTF8.self)
        try connection.write(
          head.contains("Authorization: NTLM TlRMTVNTUAAB")
            ? "HTTP/1.1 401 No\r\nWWW-Authenticate: NTLM \(NTLMExample.challenge)\r\nContent-Length: 0\r\n\r\n"
            : "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nin")
      }
    }
    let client = Client()
    let url = "http://127.0.0.1:\(server.port)/"
    #expect(try await client.get(url).text == "in")
    let login = ConnectionLogin(
      scheme: .ntlm, credential: PasswordCredential(user: "anna", password: "secret"))
    let request = try client.request(url).changing { $0.login = login }
    #expect(try await client.send(request).text == "in")
    #expect(server.connectionCount == 2)
    #expect(try await client.get(url).metrics.values.isReusedConnection, "the first one is still there")
    #expect(server.connectionCount == 2)
  }
}
