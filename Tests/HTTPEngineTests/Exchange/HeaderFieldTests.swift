import FoundationEssentials
import HTTPTestServer
import HTTPWire
import Testing

@Suite(.timeLimit(.minutes(5))) struct HeaderFieldTests {
  static func send(_ fields: [HTTPHeader], _ method: String = "GET", body: RequestBody = .none) async throws
    -> RecordedRequest
  {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.ok)
    let client = Client()
    _ = try await client.send(client.request(server.url("/"), method, fields: fields, body: body))
    return try await server.takeRequest()
  }

  @Test("Fields preserve order, spelling and repetition") func order() async throws {
    let fields = [
      HTTPHeader(name: "X-Last", value: "1"), HTTPHeader(name: "accept", value: "text/html"),
      HTTPHeader(name: "X-Twice", value: "a"), HTTPHeader(name: "User-Agent", value: "test/1"),
      HTTPHeader(name: "X-Twice", value: "b"), HTTPHeader(name: "Accept-Encoding", value: "gzip;q=0.5"),
    ]
    let request = try await Self.send(fields)
    #expect(request.headers.filter { $0.name != "Host" } == fields)
  }

  @Test("A field without a value is sent") func emptyValue() async throws {
    let fields = [HTTPHeader(name: "X-Empty", value: ""), HTTPHeader(name: "Accept", value: "")]
    let request = try await Self.send(fields)
    #expect(request.header("X-Empty") == "")
    #expect(request.header("Accept") == "")
  }

  @Test("No field is added to a request with a body", arguments: [20, 200_000])
  func noAddedFields(size: Int) async throws {
    let request = try await Self.send(
      [HTTPHeader(name: "X-A", value: "1")], "POST", body: .bytes(Data(Content.bytes(size))))
    #expect(Set(request.headers.map(\.name)) == ["Host", "X-A", "Content-Length"])
  }

  @Test("Given fields have priority") func priority() async throws {
    let fields = [
      HTTPHeader(name: "Content-Type", value: "text/x"), HTTPHeader(name: "Host", value: "other.example"),
    ]
    let request = try await Self.send(fields, "POST", body: .bytes(Data([1])))
    #expect(request.headers(named: "Content-Type") == ["text/x"])
    #expect(request.headers(named: "Host") == ["other.example"])
  }

  @Test("Host contains the port") func host() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.ok)
    _ = try await Client().get(server.url("/"))
    #expect(try await server.takeRequest().header("Host") == "127.0.0.1:\(server.port)")
  }

  @Test("Fields of one request are not sent with the next") func nextRequest() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.ok, .ok, .ok, .ok)
    let client = Client(connectionsPerHost: 1)
    let field = [HTTPHeader(name: "Authorization", value: "secret")]
    let body = RequestBody.bytes(Data([1]))
    _ = try await client.send(client.request(server.url("/"), fields: field))
    _ = try await client.send(client.request(server.url("/")))
    _ = try await client.send(client.request(server.url("/"), "POST", body: body))
    _ = try await client.send(client.request(server.url("/"), "POST", fields: field, body: body))
    let seen = server.recordedRequests.map { $0.headers(named: "Authorization") }
    #expect(seen == [["secret"], [], [], ["secret"]])
    #expect(
      server.recordedRequests.allSatisfy { $0.header("Content-Type") == nil && $0.header("Accept") == nil })
  }

  @Test("Many and long fields are read") func longFields() async throws {
    let server = try HTTPTestServer(routes: .none)
    var reply = Reply.text("body")
    reply.headers += (0..<300).map { HTTPHeader(name: "X-\($0)", value: String(repeating: "v", count: 200)) }
    reply.headers.append(HTTPHeader(name: "X-Long", value: String(repeating: "l", count: 60_000)))
    server.enqueue(reply)
    let response = try await Client().get(server.url("/"))
    #expect(response.head.block.fields.count == 303)
    #expect(response.head.block.value(of: "x-long")?.count == 60_000)
    #expect(response.text == "body")
  }

  @Test("The path is sent unchanged") func path() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.ok, .ok, .ok, .ok)
    let client = Client()
    for target in ["/a/../b/./c//d%2Fe?x=%20&y=/../", "/%7Ea?", "/%7e/%2e%2e/a|b", "/"] {
      _ = try await client.get(server.url(target))
      #expect(try await server.takeRequest().target == target)
    }
  }
}
