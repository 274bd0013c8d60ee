import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite("HSTS, trust and proxies of WebSocket requests", .timeLimit(.minutes(5)))
struct WebSocketPolicyTests {
  private static let ended: [SocketEvent] = [.connected(nil), .disconnected(1000, nil), .completed(nil)]
  private static let policy = HTTPHeader(name: "Strict-Transport-Security", value: "max-age=1000")

  private let hosts = StrictTransportSecurity()

  /// Starts a server whose endpoint closes each connection, for `shop.example` if it uses TLS.
  private func server(isSecure: Bool, fields: [HTTPHeader] = []) throws -> HTTPTestServer {
    let identity = try TestIdentity(
      .init(commonName: "shop", dnsNames: ["shop.example", "localhost"], issuer: .localhostAuthority))
    let endpoint = WebSocketEndpoint(fields: fields) { connection in
      try connection.close()
      try connection.drain()
    }
    return try .webSocket(isSecure ? .tls(identity) : .none, endpoint)
  }

  private func session(
    to server: HTTPTestServer, manager: ServerTrustManager? = nil,
    _ change: (inout TransportOptions) -> Void = { _ in }
  ) -> Session {
    .forSockets(
      { options in
        options.strictTransportSecurity = hosts
        options.hostOverrides = [
          .init(host: "shop.example", target: "127.0.0.1", targetPort: server.port)
        ]
        change(&options)
      }, manager: manager)
  }

  @Test(
    "A scheme of WebSocket connections is allowed by its own name or the name of the HTTP scheme",
    arguments: [
      (["ws"], true), (["http"], true), (["ws", "https"], true), (["wss"], false), (["https"], false),
      ([], false),
    ] as [(Set<String>, Bool)])
  func allowedSchemes(schemes: Set<String>, isAllowed: Bool) async throws {
    let server = try server(isSecure: false)
    let session = session(to: server) { $0.allowedSchemes = schemes }
    let events = await session.webSocketRequest(to: "ws://shop.example/socket").events()
    #expect(events == (isAllowed ? Self.ended : [.completed(.unsupportedURL)]))
  }

  @Test(
    "A secure connection is allowed by its own name or by https",
    arguments: [(["wss"], true), (["https"], true), (["ws"], false), (["http"], false)]
      as [(Set<String>, Bool)])
  func allowedSecureSchemes(schemes: Set<String>, isAllowed: Bool) async throws {
    let server = try server(isSecure: true)
    let session = session(to: server) { $0.allowedSchemes = schemes }
    let events = await session.webSocketRequest(to: "wss://shop.example/socket").events()
    #expect(events == (isAllowed ? Self.ended : [.completed(.unsupportedURL)]))
  }

  // MARK: HSTS

  @Test("The HSTS policy of a handshake applies to later ws URLs")
  func learnedPolicy() async throws {
    let server = try server(isSecure: true, fields: [Self.policy])
    let session = session(to: server)
    #expect(await session.webSocketRequest(to: "wss://shop.example/socket").events() == Self.ended)
    #expect(hosts.hosts == ["shop.example"])
    let socket = session.webSocketRequest(to: "ws://shop.example/socket")
    #expect(await socket.events() == Self.ended)
    #expect(socket.response?.url?.absoluteString == "wss://shop.example/socket")
    #expect(socket.request?.url?.absoluteString == "ws://shop.example/socket")
    #expect(server.recordedRequests.allSatisfy { $0.tls != nil })
  }

  @Test("The HSTS policy of a refused handshake is stored")
  func refusedHandshake() async throws {
    let server = try server(isSecure: true)
    var reply = Reply(status: 503)
    reply.headers.append(Self.policy)
    server.enqueue(reply)
    let socket = session(to: server).webSocketRequest(to: "wss://shop.example/socket")
    #expect(await socket.events() == [.completed(.badServerResponse)])
    #expect(hosts.hosts == ["shop.example"])
  }

  @Test("The HSTS policy is stored while the connection is open")
  func openConnection() async throws {
    let identity = try TestIdentity(
      .init(commonName: "shop", dnsNames: ["shop.example", "localhost"], issuer: .localhostAuthority))
    let server = try HTTPTestServer.webSocket(
      .tls(identity), WebSocketEndpoint(fields: [Self.policy]) { try $0.drain() })
    let socket = session(to: server).webSocketRequest(to: "wss://shop.example/socket")
    let events = socket.recorded()
    await events.wait(for: 1)
    #expect(hosts.hosts == ["shop.example"])
    socket.cancel()
  }

  @Test("The HSTS policy of a server without TLS, or that was not verified, is ignored")
  func ignoredPolicy() async throws {
    let plain = try server(isSecure: false, fields: [Self.policy])
    #expect(
      await session(to: plain).webSocketRequest(to: "ws://shop.example/socket").events() == Self.ended)
    let server = try server(isSecure: true, fields: [Self.policy])
    let manager = ServerTrustManager(evaluators: ["shop.example": .disabled])
    let lax = session(to: server, manager: manager) { $0.trustStore = .system }
    #expect(await lax.webSocketRequest(to: "wss://shop.example/socket").events() == Self.ended)
    #expect(hosts.hosts.isEmpty)
  }

  @Test("A ws URL of a host with an HSTS policy is never opened without TLS")
  func noFallback() async throws {
    hosts.preload("shop.example")
    let server = try server(isSecure: false)
    let socket = session(to: server).webSocketRequest(to: "ws://shop.example:8080/socket")
    let events = await socket.events()
    #expect(events.count == 1 && events != [.completed(nil)])
    #expect(server.requestCount == 0)
  }

  @Test("A redirect to a ws URL of a host with an HSTS policy uses TLS")
  func upgradedRedirect() async throws {
    hosts.preload("shop.example")
    let server = try server(isSecure: true)
    let first = try HTTPTestServer()
    first.enqueue(.redirect(to: "ws://shop.example/socket"))
    let socket = session(to: server).webSocketRequest(to: first.socketURL("/first"))
    #expect(await socket.events() == Self.ended)
    #expect(socket.response?.url?.absoluteString == "wss://shop.example/socket")
  }

  @Test("A handshake goes to no alternative service")
  func alternativeServices() async throws {
    let services = AlternativeServices()
    let server = try server(
      isSecure: true, fields: [HTTPHeader(name: "Alt-Svc", value: #"h2="other.example:9""#)])
    let session = session(to: server) { $0.alternativeServices = services }
    for _ in 0..<2 {
      #expect(await session.webSocketRequest(to: "wss://shop.example/socket").events() == Self.ended)
    }
    #expect(server.requestCount == 2)
  }

  // MARK: Redirects

  @Test("Redirects to wss and https are followed", arguments: ["wss", "https"], [false, true])
  func secureRedirect(scheme: String, beginsSecurely: Bool) async throws {
    let server = try server(isSecure: true)
    let first = try HTTPTestServer(beginsSecurely ? .tls(.localhost) : .none)
    first.enqueue(.redirect(to: "\(scheme)://localhost:\(server.port)/socket", status: 308))
    let socket = session(to: server).webSocketRequest(
      to: first.socketURL("/first"),
      headers: [.authorization("secret"), HTTPHeader(name: "X-Own", value: "1")])
    #expect(await socket.events() == Self.ended)
    let request = try await server.takeRequest()
    #expect(request.tls != nil)
    #expect(request.header("Authorization") == nil && request.header("X-Own") == "1")
    #expect(socket.response?.url?.absoluteString == "wss://localhost:\(server.port)/socket")
  }

  @Test("Redirects to other schemes, and too many redirects, are refused")
  func refusedRedirects() async throws {
    let server = try HTTPTestServer()
    server.enqueue(.redirect(to: "ftp://a.test/"))
    let session = session(to: server) { $0.redirectLimit = 3 }
    let socket = session.webSocketRequest(to: server.socketURL("/first"))
    #expect(await socket.events() == [.completed(.unsupportedURL)])
    #expect(socket.response?.statusCode == 302)
    for index in 0..<4 { server.enqueue(.redirect(to: "/again\(index)")) }
    let endless = session.webSocketRequest(to: server.socketURL("/first"))
    #expect(await endless.events() == [.completed(.httpTooManyRedirects)])
    #expect(server.requestCount == 5)
  }

  @Test("A redirect handler sees ws URLs")
  func redirectHandler() async throws {
    let server = try server(isSecure: false)
    server.enqueue(.redirect(to: server.url("/socket")))
    let seen = Recorder<String>()
    let socket = session(to: server).webSocketRequest(to: server.socketURL("/first"))
      .redirect(
        using: Redirector(
          behavior: .modify { _, proposed, response in
            seen.add("\(response.url?.absoluteString ?? "-") \(proposed.url?.absoluteString ?? "-")")
            return proposed
          }))
    #expect(await socket.events() == Self.ended)
    #expect(seen.values == ["\(server.socketURL("/first")) \(server.socketURL("/socket"))"])
  }

  // MARK: Trust

  /// A delegate that decides about servers.
  private final class Decider: SessionDelegate, @unchecked Sendable {
    let disposition: URLSession.AuthChallengeDisposition
    let calls = Recorder<String>()

    init(_ disposition: URLSession.AuthChallengeDisposition) {
      self.disposition = disposition
      super.init()
    }

    override func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      let space = challenge.protectionSpace
      calls.add("\(space.host) \(task is URLSessionWebSocketTask) \(threadName() != "http-engine")")
      completionHandler(disposition, space.serverTrust.map { URLCredential(trust: $0) })
    }
  }

  @Test(
    "A delegate decides about a server that the trust store refuses",
    arguments: [
      URLSession.AuthChallengeDisposition.useCredential, .performDefaultHandling, .rejectProtectionSpace,
      .cancelAuthenticationChallenge,
    ])
  func delegate(disposition: URLSession.AuthChallengeDisposition) async throws {
    let server = try server(isSecure: true)
    let decider = Decider(disposition)
    let session = Session.forSockets({ $0.trustStore = .system }, delegate: decider)
    let events = await session.webSocketRequest(to: server.socketURL()).events()
    switch disposition {
    case .useCredential: #expect(events == Self.ended)
    case .performDefaultHandling: #expect(events == [.completed(.serverCertificateHasUnknownRoot)])
    case .rejectProtectionSpace: #expect(events == [.completed(.serverCertificateUntrusted)])
    default: #expect(events == [.completed(.cancelled)])
    }
    if disposition != .useCredential { #expect(server.receivedByteCount == 0) }
    #expect(decider.calls.values == ["localhost true true"])
  }

  // MARK: Proxies

  @Test("The connection goes through a SOCKS proxy", arguments: [false, true], [false, true])
  func socks(isSecure: Bool, resolvesNames: Bool) async throws {
    let server = try server(isSecure: isSecure)
    let port = server.port
    let targets = Recorder<String>()
    let proxy = try StreamTestServer { connection in
      _ = try connection.read(atMost: 2)
      _ = try connection.read()  // the methods of authentication
      try connection.write([5, 0])
      let head = try connection.read(atMost: 4)
      guard head.count == 4 else { return }
      let count = head[3] == 3 ? Int(try connection.read(atMost: 1)[0]) : head[3] == 1 ? 4 : 16
      let name = try connection.read(atMost: count)
      let bytes = try connection.read(atMost: 2)
      let shown = head[3] == 3 ? String(decoding: name, as: UTF8.self) : "address"
      targets.add("\(shown) \(Int(bytes[0]) << 8 | Int(bytes[1]))")
      try connection.relay(toPort: port) { try connection.write([5, 0, 0, 1, 127, 0, 0, 1, 0, 1]) }
    }
    let session = Session.forSockets {
      $0.proxy =
        resolvesNames ? .socks5h("127.0.0.1", port: proxy.port) : .socks5("127.0.0.1", port: proxy.port)
    }
    let socket = session.webSocketRequest(to: "\(isSecure ? "wss" : "ws")://localhost:7777/socket")
    #expect(await socket.events() == Self.ended)
    #expect(targets.values == ["\(resolvesNames ? "localhost" : "address") 7777"])
    #expect(try await server.takeRequest().header("Host") == "localhost:7777")
  }
}
