import Alamofire
import HTTPTestServer
import Testing

/// The samples are run, because they contain expectations.
@Suite("Guide to testing", .timeLimit(.minutes(5))) struct TestingGuideTests {
  private let samples = TestingSamples()

  @Test("Requests are retried until a reply succeeds") func retriesSample() async throws {
    try await samples.retries(server: HTTPTestServer())
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
    try await samples.gates(server: HTTPTestServer(), session: Session())
  }

  @Test("A server with a certificate of a test authority is trusted") func tlsSample() async throws {
    try await samples.tls()
  }

  @Test("Routes answer requests without a reply") func routesSample() async throws {
    let server = try samples.routes()
    let session = Session()
    let client = TestingSamples.UserClient(session: session, baseURL: server.baseURL)
    let error = await #expect(throws: AFError.self) { try await client.user(7) }
    #expect(error?.responseCode == 401)
    let user = try await session.request(
      server.url("/users/7"), headers: [.authorization(bearerToken: "new")]
    ).serializingDecodable(User.self).value
    #expect(user == User(name: "user 7"))
  }

  @Test("A script serves a WebSocket connection") func socketSample() async throws {
    let server = try HTTPTestServer()
    samples.socket(server: server)
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
    samples.events(server: server, gate: gate)
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
    try await samples.proxy()
  }

  @Test("A stub replaces a server") func stubsSample() async throws {
    try await samples.stub()
  }
}
