import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite("Handshakes of WebSocket requests", .timeLimit(.minutes(5))) struct WebSocketHandshakeTests {
  /// Returns the events of a connection that the server closes after its handshake.
  private static func closed(_ subprotocol: String? = nil) -> [SocketEvent] {
    [.connected(subprotocol), .disconnected(1000, nil), .completed(nil)]
  }

  private static let closing = WebSocketEndpoint { connection in
    try connection.close()
    try connection.drain()
  }

  @Test("The server chooses one of the offered subprotocols")
  func subprotocol() async throws {
    var endpoint = Self.closing
    endpoint.subprotocols = ["v2", "v1"]
    let server = try HTTPTestServer.webSocket(.none, endpoint)
    let session = Session.forSockets()
    let configured = session.webSocketRequest(to: server.socketURL(), configuration: .protocol("v1, v2"))
    #expect(await configured.events() == Self.closed("v1"))
    #expect(try await server.takeRequest().headers(named: "Sec-WebSocket-Protocol") == ["v1, v2"])
    let named = session.webSocketRequest(to: server.socketURL(), headers: [.websocketProtocol("v2")])
    #expect(await named.events() == Self.closed("v2"))
  }

  @Test(
    "A response that is not a valid handshake ends the request",
    arguments: [
      HTTPHeader(name: "Sec-WebSocket-Accept", value: "AAAAAAAAAAAAAAAAAAAAAAAAAAA="),
      HTTPHeader(name: "Upgrade", value: "h2c"), HTTPHeader(name: "Connection", value: "close"),
      HTTPHeader(name: "Sec-WebSocket-Protocol", value: "other"),
      HTTPHeader(name: "Sec-WebSocket-Extensions", value: "permessage-deflate"),
    ])
  func invalidResponse(field: HTTPHeader) async throws {
    var endpoint = WebSocketEndpoint()
    endpoint.fields = [field]
    let server = try HTTPTestServer.webSocket(.none, endpoint)
    let socket = Session.forSockets().webSocketRequest(to: server.socketURL())
    #expect(await socket.events() == [.completed(.badServerResponse)])
    #expect(socket.response?.statusCode == 101)
  }

  @Test("timeLimits.firstByte limits the wait for the first byte of the response") func firstByte()
    async throws
  {
    var options = TransportOptions()
    options.timeLimits.firstByte = .seconds(5)
    options.timeLimits.idle = .seconds(86_400)
    let fake = FakeSocketSession(options: options)
    let socket = fake.session.webSocketRequest(to: "ws://a.test/")
    let events = socket.recorded()
    let stream = try await fake.streams.streams.value(0)
    let head = Data(try await stream.acceptance().utf8)
    await stream.timeouts.wait(for: 1)
    await stream.settle()
    stream.send(head.prefix(1))
    await stream.timeouts.wait(for: 2)
    stream.send(head.dropFirst(1))
    #expect(await events.wait(for: 1) == [.connected(nil)])
    let timeouts = stream.timeouts.values.prefix(2).compactMap { $0 }
    #expect(timeouts.map { $0 <= .seconds(5) } == [true, false])
    socket.cancel()

    let late = fake.session.webSocketRequest(to: "ws://a.test/")
    let end = late.recorded()
    let silent = try await fake.streams.streams.value(1)
    await silent.timeouts.wait(for: 1)
    silent.fail(.timedOut)
    #expect(await end.wait(for: 1) == [.completed(.timedOut)])
    #expect((late.error?.underlyingError as? URLError)?.timedOutPhase == .firstByte)
  }

  @Test("A response that is not HTTP ends the request")
  func garbage() async throws {
    let server = try HTTPTestServer()
    let session = Session.forSockets { $0.headerSizeLimit = 10_000 }
    server.enqueue(
      .raw("SSH-2.0-server\r\n\r\n"),
      .raw("HTTP/1.1 101 Switching Protocols\r\nUpgrade : websocket\r\n\r\n"),
      .raw("HTTP/1.1 101 Switching Protocols\r\nX: " + String(repeating: "x", count: 10_000) + "\r\n\r\n"),
      .raw("HTTP/1.1 101 Switching"))
    var ends: [[SocketEvent]] = []
    for _ in 0..<4 { ends.append(await session.webSocketRequest(to: server.socketURL("/get")).events()) }
    #expect(
      ends == [
        [.completed(.badServerResponse)], [.completed(.badServerResponse)],
        [.completed(.dataLengthExceedsMaximum)], [.completed(.networkConnectionLost)],
      ])
  }

  @Test("Informational responses before the handshake are skipped")
  func informational() async throws {
    let server = try HTTPTestServer.webSocket(.none, Self.closing)
    server.enqueue(.status(204).preceded(by: 103))
    let socket = Session.forSockets().webSocketRequest(to: server.socketURL())
    #expect(await socket.events() == [.completed(.badServerResponse)])
    #expect(socket.response?.statusCode == 204)
  }

  @Test("Cookies are sent and stored")
  func cookies() async throws {
    var endpoint = Self.closing
    endpoint.fields = [HTTPHeader(name: "Set-Cookie", value: "fresh=2; Path=/")]
    let server = try HTTPTestServer.webSocket(.none, endpoint)
    let session = Session.forSockets()
    _ = await session.request(server.url("/response-headers?Set-Cookie=old%3D1%3B%20Path%3D%2F"))
      .serializingData().response
    #expect(await session.webSocketRequest(to: server.socketURL()).events() == Self.closed())
    #expect(server.recordedRequests.last?.header("Cookie") == "old=1")
    _ = await session.request(server.url("/get")).serializingData().response
    #expect(server.recordedRequests.last?.header("Cookie")?.contains("fresh=2") == true)
  }

  @Test("Redirects to all four schemes are followed")
  func redirects() async throws {
    let server = try HTTPTestServer.webSocket(.none, Self.closing)
    let session = Session.forSockets()
    server.enqueue(
      .redirect(to: server.socketURL("/next")), .redirect(to: server.url("/last"), status: 307),
      .redirect(to: "/socket", status: 301))
    let socket = session.webSocketRequest(to: server.socketURL("/first"))
    #expect(await socket.events() == Self.closed())
    #expect(server.recordedRequests.map(\.path) == ["/first", "/next", "/last", "/socket"])
    #expect(socket.response?.url?.absoluteString == server.socketURL("/socket"))
  }

  @Test("A location that is only the name of a scheme is a relative path", arguments: ["ws", "wss", "WSS"])
  func relativeLocation(location: String) async throws {
    let server = try HTTPTestServer.webSocket(.none, Self.closing)
    server.enqueue(.redirect(to: location), .redirect(to: "/socket"))
    let socket = Session.forSockets().webSocketRequest(to: server.socketURL("/v1/first"))
    #expect(await socket.events() == Self.closed())
    #expect(server.recordedRequests.map(\.path) == ["/v1/first", "/v1/\(location)", "/socket"])
  }

  @Test("A protected subprotocol of the configuration stays with its origin", arguments: [false, true])
  func protectedSubprotocol(isProtected: Bool) async throws {
    let server = try HTTPTestServer.webSocket(.none, Self.closing)
    let other = try HTTPTestServer.webSocket(.none, Self.closing)
    server.enqueue(.redirect(to: "/next"), .redirect(to: other.socketURL()))
    let socket = Session.forSockets()
      .webSocketRequest(to: server.socketURL("/first"), configuration: .protocol("secret"))
      .transportOptions { if isProtected { $0.protectedHeaders = ["sec-websocket-protocol"] } }
    #expect(await socket.events() == Self.closed())
    let name = "Sec-WebSocket-Protocol"
    #expect(server.recordedRequests.map { $0.header(name) } == ["secret", "secret"])
    #expect(other.recordedRequests.map { $0.header(name) } == [isProtected ? nil : "secret"])
  }

  @Test("URLProtocol classes are not asked about WebSocket requests")
  func protocolClasses() async throws {
    let server = try HTTPTestServer.webSocket(.none, Self.closing)
    let configuration = URLSessionConfiguration.isolated
    configuration.protocolClasses = [AskedProtocol.self]
    let session = Session(configuration: configuration)
    #expect(await session.webSocketRequest(to: server.socketURL()).events() == Self.closed())
    #expect(AskedProtocol.urls.count == 0)
    _ = await session.request(server.url("/get")).serializingData().response
    #expect(AskedProtocol.urls.count == 1)
  }

  @Test("A redirect of a data request to ws is refused")
  func dataRedirect() async throws {
    let server = try HTTPTestServer()
    server.enqueue(.redirect(to: server.socketURL("/next")))
    let response = await Session.forSockets().request(server.url("/get")).serializingData().response
    #expect(response.error?.transferCode == .unsupportedURL)
    let direct = await Session.forSockets().request(server.socketURL("/get")).serializingData().response
    #expect(direct.error?.transferCode == .unsupportedURL)
  }

  @Test("Challenges are answered", arguments: ["/basic-auth/ann/secret", "/digest-auth/auth/ann/secret"])
  func challenge(path: String) async throws {
    let server = try HTTPTestServer()
    let session = Session.forSockets()
    let socket = session.webSocketRequest(to: server.socketURL(path))
      .authenticate(username: "ann", password: "secret")
    // The route answers the credentials with status 200.
    #expect(await socket.events() == [.completed(.badServerResponse)])
    #expect(socket.response?.statusCode == 200)
    #expect(server.requestCount == 2)
    #expect(server.recordedRequests.last?.header("Authorization") != nil)
  }

  @Test("Schemes that cannot authenticate a handshake do not stand before those that can") func otherSchemes()
    async throws
  {
    let server = try HTTPTestServer(routes: .none)
    let challenge = { (value: String) in Reply.status(401).with(header: "WWW-Authenticate", value: value) }
    server.enqueue(challenge("Negotiate, NTLM, Basic realm=\"x\""), .status(200))
    let session = Session.forSockets()
    let socket = session.webSocketRequest(to: server.socketURL("/"))
      .authenticate(username: "ann", password: "secret")
    #expect(await socket.events() == [.completed(.badServerResponse)])
    #expect(server.recordedRequests.last?.header("Authorization") == "Basic YW5uOnNlY3JldA==")
    server.enqueue(challenge("NTLM"))
    let other = session.webSocketRequest(to: server.socketURL("/"))
      .authenticate(username: "ann", password: "secret")
    #expect(await other.events() == [.completed(.unsupportedURL)])
  }

  @Test("A retrier opens a refused connection again, with a fresh key")
  func retry() async throws {
    let server = try HTTPTestServer.webSocket(.none, Self.closing)
    server.enqueue(.status(503))
    let interceptor = Interceptor(
      adapters: [
        Adapter { request, _, completion in
          var request = request
          request.headers.add(name: "X-Token", value: "t")
          completion(.success(request))
        }
      ],
      retriers: [
        Retrier { request, _, _, completion in
          completion(request.response?.statusCode == 503 && request.retryCount == 0 ? .retry : .doNotRetry)
        }
      ])
    let socket = Session.forSockets().webSocketRequest(to: server.socketURL(), interceptor: interceptor)
    #expect(await socket.events() == Self.closed())
    #expect(server.recordedRequests.map { $0.header("X-Token") } == ["t", "t"])
    let keys = server.recordedRequests.map { $0.header("Sec-WebSocket-Key") }
    #expect(keys[0] != nil && keys[0] != keys[1])
    #expect(socket.retryCount == 1)
  }

  @Test("A retrier opens a lost connection again")
  func reconnection() async throws {
    let server = try HTTPTestServer.webSocket { connection in
      try connection.send("one")
      connection.reset()
    }
    let retrier = Retrier { request, _, _, completion in
      completion(request.retryCount == 0 ? .retry : .doNotRetry)
    }
    let socket = Session.forSockets().webSocketRequest(
      to: server.socketURL(), interceptor: Interceptor(adapters: [], retriers: [retrier]))
    let events = await socket.events()
    #expect(events.filter { $0 == .connected(nil) }.count == 2)
    #expect(events.last == .completed(.networkConnectionLost))
  }

  // MARK: Metrics

  @Test("The metrics have the times of the handshake in their order")
  func times() async throws {
    let server = try HTTPTestServer.webSocket(.none, Self.closing)
    let socket = Session.forSockets().webSocketRequest(to: server.socketURL())
    #expect(await socket.events() == Self.closed())
    let transaction = try #require(socket.metrics?.transactionMetrics.last)
    let dates = [
      transaction.fetchStartDate, transaction.connectEndDate, transaction.requestStartDate,
      transaction.requestEndDate, transaction.responseStartDate, transaction.responseEndDate,
    ].compactMap { $0 }
    #expect(dates.count == 6 && dates == dates.sorted())
    #expect(transaction.countOfRequestHeaderBytesSent > 0)
  }

  @Test("The metrics count the whole head of a response that arrives in pieces")
  func headSize() async throws {
    let fake = FakeSocketSession()
    let socket = fake.session.webSocketRequest(to: "ws://a.test/")
    let events = socket.recorded()
    let stream = try await fake.streams.streams.value(0)
    let head = Data(try await stream.acceptance(fields: "X: y\r\n").utf8)
    stream.send(head.prefix(20))
    #expect(await eventually { stream.readCount == 2 })
    stream.send(head.dropFirst(20) + closeFrame())
    #expect(await events.wait(for: 3) == Self.closed())
    let transaction = socket.metrics?.transactionMetrics.last
    #expect(transaction?.countOfResponseHeaderBytesReceived == Int64(head.count))
  }

  @Test("The metrics of a refused handshake have its hops, the last one with the refusal")
  func refusal() async throws {
    let server = try HTTPTestServer.webSocket()
    server.enqueue(.redirect(to: "/gate"), .status(403))
    let socket = Session.forSockets().webSocketRequest(to: server.socketURL("/first"))
    #expect(await socket.events() == [.completed(.badServerResponse)])
    #expect(socket.response?.statusCode == 403)
    #expect(socket.allMetrics.count == 1)
    let hops = try #require(socket.metrics).transactionMetrics
    #expect(hops.map { ($0.response as? HTTPURLResponse)?.statusCode } == [302, 403])
    #expect(hops.map { $0.request.url?.path } == ["/first", "/gate"])
    var last = Date.distantPast
    for hop in hops {
      let dates = [
        hop.fetchStartDate, hop.connectEndDate, hop.requestStartDate, hop.requestEndDate,
        hop.responseStartDate, hop.responseEndDate,
      ].compactMap { $0 }
      #expect(dates.count == 6 && dates == dates.sorted())
      // The clock of the dates differs from the clock of the durations by less than this.
      #expect(try #require(dates.first) > last.addingTimeInterval(-0.01))
      last = try #require(dates.last)
      #expect(hop.countOfRequestHeaderBytesSent > 0 && hop.countOfResponseHeaderBytesReceived > 0)
    }
  }

  @Test("A handshake without an answer has the metrics of its hop")
  func lostHandshake() async throws {
    let fake = FakeSocketSession()
    let socket = fake.session.webSocketRequest(to: "ws://a.test/path")
    let events = socket.recorded()
    let stream = try await fake.streams.streams.value(0)
    await stream.writes.wait(for: 1)
    stream.fail()
    #expect(await events.wait(for: 1) == [.completed(.networkConnectionLost)])
    let hops = try #require(socket.metrics).transactionMetrics
    #expect(hops.map { $0.request.url?.path } == ["/path"])
    #expect(hops.allSatisfy { $0.response == nil && $0.responseStartDate == nil })
  }

  // MARK: Trust

  private final class Evaluator: ServerTrustEvaluating {
    let calls = Recorder<String>()
    let refuses: Bool

    init(refuses: Bool) { self.refuses = refuses }

    func evaluate(_ trust: SecTrust, forHost host: String) throws {
      calls.add("\(host) \(threadName())")
      if refuses { throw URLError(.userCancelledAuthentication) }
    }
  }

  @Test("An evaluator decides about the server, outside of the handshake", arguments: [false, true])
  func evaluator(refuses: Bool) async throws {
    let server = try HTTPTestServer.webSocket(.tls(.localhost), Self.closing)
    let evaluator = Evaluator(refuses: refuses)
    let session = Session.forSockets(manager: ServerTrustManager(evaluators: ["localhost": evaluator]))
    let events = await session.webSocketRequest(to: server.socketURL()).events()
    if refuses {
      #expect(events.count == 1 && events != [.completed(nil)])
      #expect(server.requestCount == 0)
    } else {
      #expect(events == Self.closed())
    }
    #expect(evaluator.calls.values.allSatisfy { $0.hasPrefix("localhost ") && !$0.contains("http-engine") })
    #expect(evaluator.calls.count == 1)
  }

  @Test("An untrusted server is refused")
  func untrusted() async throws {
    let server = try HTTPTestServer.webSocket(.tls(.localhost), Self.closing)
    let session = Session.forSockets { $0.trustStore = .system }
    let events = await session.webSocketRequest(to: server.socketURL()).events()
    #expect(events.count == 1 && events != [.completed(nil)])
    #expect(server.requestCount == 0)
  }

  // MARK: Proxies

  @Test("The connection goes through a tunnel of an HTTP proxy", arguments: [false, true])
  func proxy(isSecure: Bool) async throws {
    let server = try HTTPTestServer.webSocket(isSecure ? .tls(.localhost) : .none, Self.closing)
    let seen = Recorder<String>()
    let proxy = try ProxiedByteStreamTests.proxy(to: server.port, seen: seen)
    let session = Session.forSockets { $0.proxy = .http("127.0.0.1", port: proxy.port) }
    let scheme = isSecure ? "wss" : "ws"
    let socket = session.webSocketRequest(to: "\(scheme)://localhost:7777/socket")
    #expect(await socket.events() == Self.closed())
    #expect(seen.values.first == "CONNECT localhost:7777 HTTP/1.1")
    #expect(try await server.takeRequest().header("Host") == "localhost:7777")
  }

  @Test("The connection goes through the proxy of its scheme", arguments: [false, true])
  func proxyOfScheme(isSecure: Bool) async throws {
    let server = try HTTPTestServer.webSocket(isSecure ? .tls(.localhost) : .none, Self.closing)
    let (seen, others) = (Recorder<String>(), Recorder<String>())
    let proxy = try ProxiedByteStreamTests.proxy(to: server.port, seen: seen)
    let other = try ProxiedByteStreamTests.proxy(to: 1, seen: others, status: "403 Forbidden")
    let session = Session.forSockets {
      let own = Proxy.http("127.0.0.1", port: proxy.port)
      let foreign = Proxy.http("127.0.0.1", port: other.port)
      $0.proxy = isSecure ? .perScheme(http: foreign, https: own) : .perScheme(http: own, https: foreign)
      // Concerns no handshake of HTTP/1.1.
      $0.httpVersions = .http2PriorKnowledge
    }
    let socket = session.webSocketRequest(to: "\(isSecure ? "wss" : "ws")://localhost:7777/socket")
    #expect(await socket.events() == Self.closed())
    #expect(seen.values.first == "CONNECT localhost:7777 HTTP/1.1" && others.count == 0)
  }
}

/// A class that does not accept any request.
private final class AskedProtocol: URLProtocol {
  static let urls = Recorder<URL?>()

  override class func canInit(with request: URLRequest) -> Bool {
    urls.add(request.url)
    return false
  }
}
