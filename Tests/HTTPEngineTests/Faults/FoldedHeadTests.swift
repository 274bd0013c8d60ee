import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

/// Responses in which the first field line begins with white space.
@Suite(.timeLimit(.minutes(5))) struct FoldedHeadTests {
  private static let folded =
    "HTTP/1.1 200 OK\r\n folded: value that is long enough to move\r\nContent-Length: 0\r\n\r\n"

  @Test("A folded first field does not affect later requests", arguments: [false, true])
  func firstField(isTLS: Bool) async throws {
    let server = try HTTPTestServer(isTLS ? .tls(.localhost) : .none, routes: .none)
    let client = Client()
    for round in 0..<40 {
      server.enqueue(.text("before \(round)"), .raw(Self.folded), .text("after \(round)"))
      #expect(try await client.get(server.url("/")).text == "before \(round)")
      #expect(try await client.failure(of: server.url("/")).kind == .badServerResponse)
      #expect(try await client.get(server.url("/")).text == "after \(round)")
    }
  }

  @Test("A folded first field of a proxy does not affect later requests") func firstFieldOfProxy()
    async throws
  {
    let origin = try HTTPTestServer(.tls(.localhost))
    let proxy = try StreamTestServer { connection in
      _ = try connection.readRequest()
      try connection.write(
        "HTTP/1.1 407 No\r\n folded: value that is long enough to move\r\nContent-Length: 0\r\n\r\n")
    }
    let plain = try HTTPTestServer()
    let client = Client()
    let proxied = Client.profile {
      $0.proxy = .server(ProxyServer(.http, host: "127.0.0.1", port: proxy.port))
    }
    for _ in 0..<40 {
      #expect(try await client.get(plain.url("/get")).status == 200)
      _ = try await client.failure(of: client.request(origin.url("/get"), profile: proxied))
    }
  }

  @Test("A folded first field after a redirect does not affect later requests") func firstFieldAfterRedirect()
    async throws
  {
    let server = try HTTPTestServer(routes: .none)
    let client = Client()
    for _ in 0..<40 {
      server.enqueue(
        .raw("HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n"), .raw(Self.folded))
      #expect(try await client.get(server.url("/")).status == 302)
      _ = try? await client.get(server.url("/next"))
    }
  }

  @Test(
    "A line that continues no field is refused",
    arguments: [
      folded, "HTTP/1.1 200 OK\r\n\tfolded: value\r\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 103 Early Hints\r\n folded: value\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ])
  func refusedInTime(response: String) async throws {
    let server = try HTTPTestServer(routes: .none)
    let client = Client()
    for _ in 0..<3 {
      server.enqueue(.text("before"), .raw(response))
      #expect(try await client.get(server.url("/")).text == "before")
      let failure = try await client.failure(of: server.url("/"))
      #expect(failure.kind == .badServerResponse)
      #expect(failure.message.contains("white space comes before its first field"), "\(failure.message)")
    }
  }

  @Test(
    "The head of the next step of a login is read as a head",
    arguments: [true, false])
  func headOfTheNextStep(isFolded: Bool) async throws {
    let server = try HTTPTestServer(routes: .none)
    let client = Client()
    let login = ConnectionLogin(
      scheme: .ntlm, credential: PasswordCredential(user: "anna", password: "secret"))
    for _ in 0..<3 {
      server.enqueue(
        Reply.status(401).with(header: "WWW-Authenticate", value: "NTLM \(NTLMExample.challenge)"),
        isFolded ? .raw(Self.folded) : .text("in"), .text("after"))
      let url = server.url("/")
      let request = try client.request(url).changing { $0.login = login }
      if isFolded {
        #expect(try await client.failure(of: request).kind == .badServerResponse)
      } else {
        #expect(try await client.send(request).text == "in")
      }
      #expect(try await client.get(url).text == "after")
    }
  }

  @Test(
    "A body that begins with white space is not read as a head",
    arguments: [" indented", "\tindented: a\r\n\r\n", " "])
  func indentedBody(body: String) async throws {
    let server = try HTTPTestServer(routes: .none)
    let client = Client()
    for _ in 0..<3 {
      server.enqueue(.raw("HTTP/1.1 200 OK\r\n\r\n" + body))
      #expect(try await client.get(server.url("/")).text == body)
    }
  }

  /// Sends a field line of more than 16 KiB, which arrives in parts.
  @Test("The rest of a long field line is not read as another line", arguments: ["X-Long:", "X-Long: "])
  func longFirstField(name: String) async throws {
    let server = try HTTPTestServer(routes: .none)
    let client = Client()
    let value = String(repeating: "a ", count: 20_000) + "end"
    for _ in 0..<2 {
      server.enqueue(.raw("HTTP/1.1 200 OK\r\n\(name)\(value)\r\nContent-Length: 2\r\n\r\nok"))
      let response = try await client.get(server.url("/"))
      #expect(response.text == "ok")
      #expect(response.head.block.value(of: "X-Long") == value)
    }
  }
}
