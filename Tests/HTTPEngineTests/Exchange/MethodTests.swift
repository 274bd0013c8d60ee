import FoundationEssentials
import HTTPTestServer
import HTTPWire
import Testing

@Suite(.timeLimit(.minutes(5))) struct MethodTests {
  @Test(
    "A method without a body is sent unchanged",
    arguments: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY", "PROPFIND", "purge"])
  func methods(method: String) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.text("answer"))
    let client = Client()
    let response = try await client.send(client.request(server.url("/a?b=c"), method))
    #expect(response.status == 200)
    #expect(response.text == (method == "HEAD" ? "" : "answer"))
    let request = try await server.takeRequest()
    #expect(request.method == method)
    #expect(request.target == "/a?b=c")
    #expect(request.version == "HTTP/1.1")
    // Methods that define a meaning for content announce an empty body (RFC 9110 §8.6).
    let length = ["POST", "PUT", "PATCH"].contains(method) ? "0" : nil
    #expect(request.header("Content-Length") == length)
    #expect(request.headers.map(\.name) == (length == nil ? ["Host"] : ["Host", "Content-Length"]))
    #expect(!request.isChunked)
  }

  @Test("CONNECT is refused before anything is sent", arguments: [nil, "https"] as [String?])
  func connect(scheme: String?) async throws {
    let server = try HTTPTestServer(scheme == nil ? .none : .tls(.localhost))
    let client = Client()
    for body in [RequestBody.none, .bytes(Data("body".utf8))] {
      let failure = try await client.failure(of: client.request(server.url("/"), "CONNECT", body: body))
      #expect(failure.kind == .badURL && failure.message.contains("CONNECT makes a tunnel"), "\(failure)")
    }
    #expect(server.connectionCount == 0)
  }

  @Test("An empty body counts as no body", arguments: ["GET", "DELETE", "OPTIONS", "POST", "PUT"])
  func emptyBody(method: String) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.ok)
    let client = Client()
    _ = try await client.send(client.request(server.url("/"), method, body: .bytes(Data())))
    let request = try await server.takeRequest()
    #expect(request.header("Content-Length") == (method.hasPrefix("P") ? "0" : nil))
    #expect(request.bodyLength == 0)
  }

  @Test("One handle sends every method in turn") func oneHandle() async throws {
    let server = try HTTPTestServer(routes: .none)
    let client = Client(connectionsPerHost: 1)
    let body = RequestBody.bytes(Data("body".utf8))
    let large = RequestBody.bytes(Data(Content.bytes(100_000)))
    let turns: [(String, RequestBody, Int)] = [
      ("GET", .none, 0), ("POST", body, 4), ("GET", .none, 0), ("HEAD", .none, 0), ("PUT", large, 100_000),
      ("PUT", body, 4), ("DELETE", .none, 0), ("POST", .none, 0), ("HEAD", .none, 0),
      ("POST", large, 100_000),
      ("GET", body, 4), ("GET", .none, 0), ("PATCH", large, 100_000), ("QUERY", body, 4), ("POST", body, 4),
    ]
    for (method, body, length) in turns {
      server.enqueue(.text("x"))
      let response = try await client.send(client.request(server.url("/"), method, body: body))
      #expect(response.text == (method == "HEAD" ? "" : "x"))
      let request = try await server.takeRequest()
      #expect(request.method == method)
      #expect(request.bodyLength == length)
      #expect(request.isBodyComplete)
    }
    #expect(server.connectionCount == 1)
  }

  @Test("A HEAD request with a body is refused with a reason") func headWithBody() async throws {
    let server = try HTTPTestServer()
    let client = Client()
    let request = try client.request(server.url("/"), "HEAD", body: .bytes(Data([1])))
    let failure = try await client.failure(of: request)
    #expect(failure.kind == .badURL)
    #expect(failure.helps())
    #expect(server.connectionCount == 0)
  }

  @Test("A HEAD request ends with its head") func head() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.bytes(30_000_000), .text("next"))
    let client = Client()
    let watcher = Watcher()
    let response = try await client.send(client.request(server.url("/"), "HEAD"), watcher: watcher)
    #expect(response.head.block.value(of: "Content-Length") == "30000000")
    #expect(response.body == nil)
    #expect(watcher.heads.count == 1)
    #expect(try await client.get(server.url("/")).text == "next")
    #expect(server.connectionCount == 1)
  }
}
