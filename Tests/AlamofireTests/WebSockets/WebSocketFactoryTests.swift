import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite("Factories of WebSocket requests", .timeLimit(.minutes(5))) struct WebSocketFactoryTests {
  private static let closing = WebSocketEndpoint { connection in
    try connection.close()
    try connection.drain()
  }
  private static let ended: [SocketEvent] = [.connected(nil), .disconnected(1000, nil), .completed(nil)]

  private struct Query: Encodable, Sendable {
    let room = "a b"
    let page = 2
  }

  @Test("Parameters are in the query, and the modifier runs before")
  func parameters() async throws {
    let server = try HTTPTestServer.webSocket(.none, Self.closing)
    let socket = Session.forSockets().webSocketRequest(
      to: server.socketURL("/socket?first=1"), parameters: Query(), headers: ["X-Own": "1"]
    ) { request in
      request.headers.add(name: "X-Modified", value: request.url?.query ?? "-")
    }
    #expect(await socket.events() == Self.ended)
    let request = try await server.takeRequest()
    #expect(request.target == "/socket?first=1&page=2&room=a%20b")
    #expect(request.header("X-Own") == "1" && request.header("X-Modified") == "first=1")
  }

  @Test("A decoder reads text and bytes, and wraps the error of the caller's decoder")
  func decoder() throws {
    let decoder = DecodableWebSocketMessageDecoder<Int>(decoder: JSONDecoder())
    #expect(try decoder.decode(.string("1")) == 1)
    #expect(try decoder.decode(.data(Data("2".utf8))) == 2)
    let error = try #require(throws: DecodableWebSocketMessageDecoder<Int>.Error.self) {
      try decoder.decode(.string("one"))
    }
    guard case .decoding(let cause) = error else {
      Issue.record("\(error)")
      return
    }
    #expect(cause is DecodingError)
  }

  @Test("Parameters that cannot be encoded in the query fail the request")
  func encoderOfBodies() async throws {
    let server = try HTTPTestServer.webSocket(.none, Self.closing)
    let socket = Session.forSockets().webSocketRequest(
      to: server.socketURL(), parameters: Query(), encoder: JSONParameterEncoder.default)
    let events = await socket.events()
    #expect(events.count == 1 && events != [.completed(nil)])
    #expect(server.requestCount == 0)
  }

  @Test("Without parameters, the URL is unchanged")
  func noParameters() async throws {
    let server = try HTTPTestServer.webSocket(.none, Self.closing)
    let socket = Session.forSockets().webSocketRequest(
      to: server.socketURL("/socket?x"), configuration: .default, parameters: nil as Query?)
    #expect(await socket.events() == Self.ended)
    #expect(try await server.takeRequest().target == "/socket?x")
  }

  @Test("The form with parameters has its configuration", arguments: [true, false])
  func configurationWithParameters(hasParameters: Bool) async throws {
    let server = try HTTPTestServer.webSocket { connection in
      try connection.send("four")
      try connection.close()
      try connection.drain()
    }
    var configuration = WebSocketRequest.Configuration.protocol("v2, v1")
    configuration.maximumMessageSize = 3
    configuration.compressesMessages = true
    let socket = Session.forSockets().webSocketRequest(
      to: server.socketURL(), configuration: configuration, parameters: hasParameters ? Query() : nil)
    #expect(await socket.events() == [.connected(nil), .completed(.dataLengthExceedsMaximum)])
    let request = try await server.takeRequest()
    #expect(request.headers(named: "Sec-WebSocket-Protocol") == ["v2, v1"])
    #expect(request.header("Sec-WebSocket-Extensions")?.hasPrefix("permessage-deflate") == true)
    #expect(request.target == (hasParameters ? "/socket?page=2&room=a%20b" : "/socket"))
  }

  /// Makes another request for each attempt.
  private struct Router: URLRequestConvertible {
    let url: String
    let count = Recorder<Int>()

    func asURLRequest() throws -> URLRequest {
      count.add(1)
      var request = try URLRequest(url: url, method: .get)
      request.headers.add(name: "X-Attempt", value: String(count.count))
      request.timeoutInterval = 30
      return request
    }
  }

  @Test("A URLRequestConvertible makes the request of each attempt")
  func convertible() async throws {
    let server = try HTTPTestServer.webSocket(.none, Self.closing)
    server.enqueue(.status(503))
    let router = Router(url: server.socketURL())
    let retrier = Retrier { request, _, _, completion in
      completion(request.retryCount == 0 ? .retry : .doNotRetry)
    }
    let socket = Session.forSockets().webSocketRequest(
      performing: router, configuration: .protocol("chat"),
      interceptor: Interceptor(adapters: [], retriers: [retrier]))
    #expect(await socket.events() == Self.ended)
    #expect(server.recordedRequests.map { $0.header("X-Attempt") } == ["1", "2"])
    #expect(server.recordedRequests.map { $0.header("Sec-WebSocket-Protocol") } == ["chat", "chat"])
    #expect(socket.convertible is Router)
  }

  @Test("A URLRequest is sent with its fields, and the session's", arguments: ["ws", "http"])
  func urlRequest(scheme: String) async throws {
    let server = try HTTPTestServer.webSocket(.none, Self.closing)
    var request = try URLRequest(url: "\(scheme)://127.0.0.1:\(server.port)/socket", method: .get)
    request.headers = [HTTPHeader(name: "X-Own", value: "1"), HTTPHeader(name: "Upgrade", value: "h2c")]
    let socket = Session.forSockets().webSocketRequest(performing: request)
    #expect(await socket.events() == Self.ended)
    let sent = try await server.takeRequest()
    #expect(sent.header("X-Own") == "1" && sent.headers(named: "Upgrade") == ["websocket"])
    #expect(sent.header("User-Agent")?.contains("Alamofire/") == true)
  }

  @Test("Another method than GET, or a body, is refused", arguments: ["POST", "PUT", "GET"])
  func otherMethods(method: String) async throws {
    let server = try HTTPTestServer.webSocket(.none, Self.closing)
    var request = try URLRequest(url: server.socketURL(), method: HTTPMethod(rawValue: method))
    if method != "PUT" { request.httpBody = Data("x".utf8) }
    let socket = Session.forSockets().webSocketRequest(performing: request)
    let events = await socket.events()
    #expect(events.count == 1 && events != [.completed(nil)])
    #expect(server.requestCount == 0)
  }

  @Test("A request that is not resumed waits, and other schemes are refused")
  func options() async throws {
    let server = try HTTPTestServer.webSocket(.none, Self.closing)
    let session = Session.forSockets()
    let waiting = session.webSocketRequest(
      performing: try URLRequest(url: server.socketURL(), method: .get), shouldAutomaticallyResume: false)
    let events = waiting.recorded()
    #expect(waiting.isInitialized)
    waiting.resume()
    #expect(await events.wait(for: 3) == Self.ended)
    for url in ["ftp://a.test/", "wsx://a.test/", "file:///etc/hosts", "data:,x"] {
      #expect(await session.webSocketRequest(to: url).events() == [.completed(.unsupportedURL)])
    }
    let invalid = await session.webSocketRequest(to: "ws://a b/").events()
    #expect(invalid.count == 1 && invalid != [.completed(nil)])
  }
}
