import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite("Validation of WebSocket handshakes", .timeLimit(.minutes(5))) struct WebSocketValidationTests {
  private static let closed: [SocketEvent] = [.connected(nil), .disconnected(1000, nil), .completed(nil)]

  private static func server() throws -> HTTPTestServer {
    var endpoint = WebSocketEndpoint { connection in
      try connection.close()
      try connection.drain()
    }
    endpoint.fields = [HTTPHeader(name: "X-Version", value: "2")]
    return try HTTPTestServer.webSocket(.none, endpoint)
  }

  private struct OldServer: Error {}

  @Test("A connection that ends while its handshake is validated ends the request")
  func endDuringValidation() async throws {
    let fake = FakeSocketSession()
    let (reached, gate) = (Latch(), DispatchSemaphore(value: 0))
    let socket = fake.session.webSocketRequest(to: "ws://a.test/").validate { _, _, _ in
      reached.open()
      gate.wait()
      return .success(())
    }
    let events = socket.recorded()
    let stream = try await fake.streams.streams.value(0)
    try await stream.accept()
    await reached.wait()
    stream.fail()
    await stream.ends.wait(for: 1)
    gate.signal()
    #expect(await events.wait(for: 2) == [.connected(nil), .completed(.networkConnectionLost)])
  }

  @Test("A refusal has the reason that validators of any request give, and its body")
  func refusal() async throws {
    let server = try HTTPTestServer()
    server.enqueue(.text("Too many clients").with(status: 503))
    let socket = Session.forSockets().webSocketRequest(to: server.socketURL()).validate()
    _ = await socket.events()
    guard case .responseValidationFailed(.customValidationFailed(let error)) = socket.error,
      case .unacceptableStatusCode(503) = (error as? ResponseRefusal)?.reason
    else {
      Issue.record("\(String(describing: socket.error))")
      return
    }
    #expect(socket.error?.responseCode == 503)
    #expect(socket.response?.statusCode == 503)
    #expect(socket.data == Data("Too many clients".utf8))
  }

  @Test(
    "A refusal that validators accept is an error with the beginning of its body", arguments: [false, true])
  func acceptedRefusal(isValidated: Bool) async throws {
    let server = try HTTPTestServer()
    server.enqueue(.text("Too many clients").with(status: 503))
    let socket = Session.forSockets().webSocketRequest(to: server.socketURL())
    if isValidated { socket.validate(statusCode: [101, 503]).validate(statusCode: 100..<600) }
    #expect(await socket.events() == [.completed(.badServerResponse)])
    let text = try #require(socket.error?.localizedDescription)
    #expect(text.contains("status 503") && text.contains("\"Too many clients\""))
  }

  @Test(
    "The limit of a response's body applies to a refusal",
    arguments: [(15, .dataLengthExceedsMaximum), (16, .badServerResponse), (nil, .badServerResponse)]
      as [(Int64?, URLError.Code)])
  func limitedRefusal(limit: Int64?, code: URLError.Code) async throws {
    let server = try HTTPTestServer()
    server.enqueue(.text("Too many clients").with(status: 503))
    let socket = Session.forSockets().webSocketRequest(to: server.socketURL())
      .transportOptions { $0.bodySizeLimit = limit }
    #expect(await socket.events() == [.completed(code)])
    #expect(socket.response?.statusCode == 503)
  }

  @Test("A validator rejects a handshake before the connection is delivered")
  func rejection() async throws {
    let server = try Self.server()
    let session = Session.forSockets()
    let socket = session.webSocketRequest(to: server.socketURL())
    socket.validate { [weak socket] request, response, data in
      #expect(request?.url?.absoluteString == server.socketURL() && data == nil)
      #expect(socket?.response == response)
      return response.value(forHTTPHeaderField: "X-Version") == "3" ? .success(()) : .failure(OldServer())
    }
    let events = await socket.events()
    #expect(events.count == 1)
    guard case .responseValidationFailed(.customValidationFailed(let error)) = socket.error else {
      Issue.record("\(String(describing: socket.error))")
      return
    }
    #expect(error is OldServer)
    #expect(socket.response?.statusCode == 101)
    #expect(await eventually { server.openConnectionCount == 0 })
  }

  @Test("Validators see the last response alone, once, off the engine's thread")
  func lastResponse() async throws {
    let server = try Self.server()
    server.enqueue(.redirect(to: server.socketURL()))
    let calls = Recorder<String>()
    let socket = Session.forSockets().webSocketRequest(to: server.socketURL("/first"))
      .validate { _, response, _ in
        calls.add("\(response.statusCode) \(threadName())")
        return .success(())
      }
    #expect(await socket.events() == Self.closed)
    #expect(calls.values.map { $0.prefix(4) } == ["101 "])
    #expect(!calls.values.contains { $0.contains("http-engine") })
  }

  @Test(
    "A retrier receives the error of a validator, and opens the connection again", arguments: [false, true])
  func retry(isRefused: Bool) async throws {
    let server = try Self.server()
    if isRefused { server.enqueue(.status(503)) }
    let calls = Recorder<Int>()
    let errors = Recorder<Int>()
    let retrier = Retrier { request, _, error, completion in
      errors.add(error.asAFError?.responseCode ?? 0)
      completion(request.retryCount == 0 ? .retry : .doNotRetry)
    }
    let socket = Session.forSockets().webSocketRequest(
      to: server.socketURL(), interceptor: Interceptor(adapters: [], retriers: [retrier])
    )
    .validate()
    .validate { _, _, _ in
      calls.add(0)
      return isRefused || calls.count == 2 ? .success(()) : .failure(OldServer())
    }
    #expect(await socket.events() == Self.closed)
    #expect(errors.values == [isRefused ? 503 : 0])
    #expect(calls.count == (isRefused ? 1 : 2))
  }

  @Test("A request that is suspended by a validator waits for no pong") func suspension() async throws {
    let pings = Recorder<Int>()
    let server = try HTTPTestServer.webSocket { connection in
      while let event = try connection.next() { if case .ping = event { pings.add(1) } }
    }
    let session = Session.forSockets()
    // The server has this time for a pong, also on a busy machine.
    let configuration = WebSocketRequest.Configuration.pingInterval(1)
    let suspended = session.webSocketRequest(to: server.socketURL(), configuration: configuration)
    suspended.validate { [weak suspended] _, _, _ in
      suspended?.suspend()
      return .success(())
    }
    let events = suspended.recorded()
    #expect(await eventually { suspended.isSuspended })
    // By then the other one would have sent a ping and failed without its answer.
    let other = session.webSocketRequest(to: server.socketURL(), configuration: configuration)
    let others = other.recorded()
    await pings.wait(for: 2)
    other.close(sending: .normalClosure)
    #expect(await others.wait(for: 3).last == .completed(nil))
    try #require(!suspended.isFinished)
    suspended.resume()
    await pings.wait(for: 3)
    suspended.close(sending: .normalClosure)
    #expect(await events.wait(for: 3).last == .completed(nil))
  }

  @Test("A request that is cancelled by a validator delivers no connection")
  func cancellation() async throws {
    let server = try Self.server()
    let socket = Session.forSockets().webSocketRequest(to: server.socketURL())
    socket.validate { [weak socket] _, _, _ in
      socket?.cancel()
      return .success(())
    }
    #expect(await socket.events() == [.cancelled])
  }
}
