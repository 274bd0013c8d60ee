import Alamofire
import HTTPTestServer
import Testing

// Samples of Testing.md; see `SampleTests`.

private struct User: Codable, Sendable, Equatable {
  var name: String
}

private struct UserClient: Sendable {
  let session: Session
  let baseURL: String

  func user(_ id: Int) async throws -> User {
    try await session.request("\(baseURL)/users/\(id)")
      .validate().serializingDecodable(User.self).value
  }
}

/// The samples are run, because they contain expectations.
@Suite("Guide to testing", .timeLimit(.minutes(5))) struct TestingGuideTests {
  @Test("Requests are retried until a reply succeeds") func retriesSample() async throws {
    try await retries(server: HTTPTestServer())
  }

  @Test(
    "A reset is repeated by the engine only on a used connection, once, and not for a POST",
    arguments: [
      ("GET", [Reply.reset], 1), ("GET", [.text("a"), .reset, .text("b")], 3),
      ("GET", [.text("a"), .reset, .reset], 3),
      ("POST", [.text("a"), .reset], 2),
    ])
  func resets(method: String, replies: [Reply], count: Int) async throws {
    let server = try HTTPTestServer()
    for reply in replies { server.enqueue(reply) }
    let session = Session(configuration: .af.ephemeral)
    if replies.count > 1 { _ = await session.request(server.url("/")).serializingData().response }
    let request = session.request(server.url("/"), method: HTTPMethod(rawValue: method))
    let response = await request.serializingString().response
    #expect(response.value == (replies.last?.effect == .reset ? nil : "b"))
    #expect(server.requestCount == count)
    #expect(request.retryCount == 0)
  }

  @Test("A body of the test's own is truncated, and its bytes are recorded as they are") func bodies()
    async throws
  {
    let server = try HTTPTestServer()
    server.enqueue(.json(#"{"name": "Ada"}"#).with(effect: .closeAfterBody(bytes: 9)))
    let session = Session(configuration: .af.ephemeral)
    let response = await session.request(
      server.url("/"), method: .post, parameters: User(name: "Ada"), encoder: .json
    ).serializingData().response
    #expect(response.error != nil)
    let request = try await server.takeRequest()
    #expect(try JSONDecoder().decode(User.self, from: Data(request.body)) == User(name: "Ada"))
  }

  @Test("A request that is held by a gate can be cancelled") func gatesSample() async throws {
    try await gates(server: HTTPTestServer(), session: Session())
  }

  @Test("A server with a certificate of a test authority is trusted") func tlsSample() async throws {
    try await tls()
  }

  @Test("Routes answer requests without a reply") func routesSample() async throws {
    let server = try routes()
    let session = Session()
    let client = UserClient(session: session, baseURL: server.baseURL)
    let error = await #expect(throws: AFError.self) { try await client.user(7) }
    #expect(error?.responseCode == 401)
    let user = try await session.request(
      server.url("/users/7"), headers: [.authorization(bearerToken: "new")]
    ).serializingDecodable(User.self).value
    #expect(user == User(name: "user 7"))
  }

  @Test("A script serves a WebSocket connection") func socketSample() async throws {
    let server = try HTTPTestServer()
    socket(server: server)
    let session = Session()
    let task = session.webSocketRequest(to: server.url("/")).webSocketTask()
    var messages = task.streamingMessages().makeAsyncIterator()
    guard case .string("welcome")? = await messages.next() else { throw URLError(.badServerResponse) }
    try await task.send(.string("hello"))
    guard case .string("hello")? = await messages.next() else { throw URLError(.badServerResponse) }
  }

  @Test("A body in parts is a stream of events") func eventsSample() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    events(server: server, gate: gate)
    let session = Session()
    var configuration = EventSourceRequest.Configuration()
    configuration.initialDelay = 0
    var data: [String] = []
    let request = session.eventSourceRequest(server.url("/"), configuration: configuration)
    for try await event in request.events() {
      data.append(event.data)
      gate.open()
    }
    #expect(data == ["a", "b"])
    #expect(server.recordedRequests.map { $0.header("Last-Event-ID") } == [nil, "2"])
  }

  @Test("A server for plain HTTP is a proxy") func proxySample() async throws {
    try await proxy()
  }

  @Test("A stub takes the place of a server") func stubsSample() async throws {
    try await stubs()
  }
}

@Test("A user is decoded, and the identifier is in the path") func user() async throws {
  let server = try HTTPTestServer()
  server.enqueue(.json(#"{"name": "Ada"}"#))

  let client = UserClient(session: Session(), baseURL: server.baseURL)
  #expect(try await client.user(7) == User(name: "Ada"))

  let request = try await server.takeRequest()
  #expect(request.method == "GET")
  #expect(request.path == "/users/7")
}

private func retries(server: HTTPTestServer) async throws {
  server.enqueue(.status(503), .reset, .json(#"{"name": "Ada"}"#))
  let policy = RetryPolicy(retryLimit: 2, exponentialBackoffScale: 0)
  let client = UserClient(session: Session(interceptor: policy), baseURL: server.baseURL)
  #expect(try await client.user(7) == User(name: "Ada"))
  #expect(server.requestCount == 3)
}

private func gates(server: HTTPTestServer, session: Session) async {
  let gate = Gate()
  server.enqueue(.text("late").held(by: gate))
  let request = session.request(server.url("/"))
  let response = Task { await request.serializingString().response }
  await gate.waitUntilReached()  // the request is at the server
  request.cancel()
  #expect(await response.value.error?.isExplicitlyCancelledError == true)
  gate.open()
}

private func tls() async throws {
  let authority = try TestIdentity(.init(commonName: "Test CA", isCA: true))
  let identity = try TestIdentity(
    .init(commonName: "localhost", dnsNames: ["localhost"], issuer: authority))
  let client = try TestIdentity(.init(commonName: "client", issuer: authority))
  let tls = TLSOptions(clientAuthority: authority.certificatePEM, requiresClientCertificate: true)
  let server = try HTTPTestServer(.tls(identity, tls))

  var options = TransportOptions()
  options.trustStore = .pem(Data(authority.certificatePEM.utf8))
  options.clientIdentity = try ClientIdentity(
    pem: Data(client.certificatePEM.utf8), privateKey: Data(client.privateKeyPEM.utf8))
  let session = Session(transportOptions: options)
  #expect(await session.request(server.url("/get")).serializingData().response.error == nil)
}

private func routes() throws -> HTTPTestServer {
  let routes = Routes.standard.adding("/users/{id}", methods: ["GET"]) { request, parameters in
    guard request.header("Authorization") == "Bearer new" else { return .status(401) }
    return .json(#"{"name": "user \#(parameters[0])"}"#)
  }
  let server = try HTTPTestServer(routes: routes)
  return server
}

private func socket(server: HTTPTestServer) {
  let endpoint = WebSocketEndpoint(compresses: true) { connection in
    try connection.send("welcome")
    while case .text(let text)? = try connection.nextMessage() { try connection.send(text) }
  }
  server.enqueue(.webSocket(endpoint))
}

private func events(server: HTTPTestServer, gate: Gate) {
  server.enqueue(
    Reply(
      headers: [.contentType("text/event-stream")],
      body: .parts(["id: 1\ndata: a\n\n", .gate(gate), "id: 2\ndata: b\n\n"])),
    .status(204))
}

private func proxy() async throws {
  let proxy = try HTTPTestServer()
  proxy.enqueue(.text("by the proxy"))

  var options = TransportOptions()
  options.proxy = .http("127.0.0.1", port: proxy.port, username: "ann", password: "secret")
  let session = Session(transportOptions: options)
  let text = try await session.request("http://example.com/").serializingString().value
  #expect(text == "by the proxy")
  #expect(try await proxy.takeRequest().target == "http://example.com/")
}

final class UserStub: URLProtocol {
  override class func canInit(with request: URLRequest) -> Bool {
    request.url?.host == "example.com"
  }

  override func startLoading() {
    guard let url = request.url,
      let response = HTTPURLResponse(
        url: url, statusCode: 200, httpVersion: "HTTP/1.1",
        headerFields: ["Content-Type": "application/json"])
    else { return }
    client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
    client?.urlProtocol(self, didLoad: Data(#"{"name": "Ada"}"#.utf8))
    client?.urlProtocolDidFinishLoading(self)
  }

  override func stopLoading() {}
}

private func stubs() async throws {
  let configuration = URLSessionConfiguration.af.ephemeral
  configuration.protocolClasses = [UserStub.self]
  let client = UserClient(session: Session(configuration: configuration), baseURL: "https://example.com")
  let user = try await client.user(7)
  #expect(user == User(name: "Ada"))
}
