import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite("WebSocket requests", .timeLimit(.minutes(5))) struct WebSocketRequestTests {
  @Test("Text and bytes are echoed", arguments: [false, true])
  func echo(isSecure: Bool) async throws {
    let server = try HTTPTestServer.webSocket(isSecure ? .tls(.localhost) : .none)
    let session = Session.forSockets()
    let socket = session.webSocketRequest(to: server.socketURL())
    let events = socket.recorded()
    socket.send(.string("grüße"))
    socket.send(.data(Data([0, 1, 255])))
    await events.wait(for: 3)
    // The response is known while the connection is open.
    #expect(socket.response?.statusCode == 101)
    #expect(socket.response?.url?.absoluteString == server.socketURL())
    #expect(socket.task?.response == socket.response)
    socket.close(sending: .normalClosure, reason: Data("done".utf8))
    #expect(
      await events.wait(for: 5) == [
        .connected(nil), .text("grüße"), .data(Data([0, 1, 255])), .disconnected(1000, "done"),
        .completed(nil),
      ])
    #expect(socket.isCancelled && socket.error == nil)
    #expect(socket.response?.statusCode == 101)
    let request = try await server.takeRequest()
    #expect(request.header("Sec-WebSocket-Version") == "13")
    #expect(request.header("Accept-Encoding") == nil)
    #expect(request.header("Sec-WebSocket-Extensions") == nil)
  }

  @Test("The response of a redirected request names the server while the connection is open")
  func redirectedResponse() async throws {
    let server = try HTTPTestServer.webSocket()
    server.enqueue(.redirect(to: "/socket"))
    let socket = Session.forSockets().webSocketRequest(to: server.socketURL("/first"))
    let events = socket.recorded()
    #expect(await events.wait(for: 1) == [.connected(nil)])
    #expect(socket.response?.url?.absoluteString == server.socketURL())
    socket.cancel()
  }

  @Test("A closure by the server is delivered with its code and reason")
  func serverCloses() async throws {
    let server = try HTTPTestServer.webSocket { connection in
      try connection.send("only")
      try connection.close(4001, reason: "moved")
      try connection.drain()
    }
    let socket = Session.forSockets().webSocketRequest(to: server.socketURL())
    #expect(
      await socket.events() == [
        .connected(nil), .text("only"), .disconnected(4001, "moved"), .completed(nil),
      ])
    #expect(socket.isFinished)
  }

  @Test("A cancelled request has no closing handshake")
  func cancellation() async throws {
    let server = try HTTPTestServer.webSocket { try $0.drain() }
    let session = Session.forSockets()
    let socket = session.webSocketRequest(to: server.socketURL())
    let events = socket.recorded()
    await events.wait(for: 1)
    socket.cancel()
    #expect(await events.wait(for: 2) == [.connected(nil), .cancelled])
    #expect(await eventually { server.openConnectionCount == 0 })
  }

  @Test("Messages of every size arrive whole", arguments: [0, 1, 125, 126, 65_535, 65_536, 1_048_576])
  func sizes(count: Int) async throws {
    let server = try HTTPTestServer.webSocket()
    let socket = Session.forSockets().webSocketRequest(to: server.socketURL())
    let data = Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) })
    let text = String(repeating: "a", count: count)
    let task = socket.webSocketTask()
    let messages = task.streamingMessages()
    try await task.send(.data(data))
    try await task.send(.string(text))
    var received: [URLSessionWebSocketTask.Message] = []
    for await message in messages {
      received.append(message)
      if received.count == 2 { break }
    }
    guard case .data(let first)? = received.first, case .string(let second)? = received.last else {
      Issue.record("the messages changed their kinds")
      return
    }
    #expect(first == data && second == text)
  }

  @Test("A message that is sent by await starts the request")
  func awaitedSend() async throws {
    let server = try HTTPTestServer.webSocket { connection in
      guard try connection.nextMessage() == .text("first") else { return }
      try connection.close(4001)
      try connection.drain()
    }
    let socket = Session.forSockets().webSocketRequest(to: server.socketURL())
    try await socket.webSocketTask().send(.string("first"))
    #expect(await socket.events().last == .completed(nil))
  }

  @Test("A status other than 101 is an error with the status in the response")
  func refusal() async throws {
    let server = try HTTPTestServer()
    let session = Session.forSockets()
    let socket = session.webSocketRequest(to: server.socketURL("/status/503"))
    #expect(await socket.events() == [.completed(.badServerResponse)])
    #expect(socket.response?.statusCode == 503)
    #expect(socket.response?.url?.absoluteString == server.socketURL("/status/503"))
    #expect(socket.error?.localizedDescription.contains("503") == true)
  }

  @Test("A message above the limit ends the connection")
  func largeMessage() async throws {
    let server = try HTTPTestServer.webSocket { connection in
      try connection.send([UInt8](repeating: 1, count: 1001))
      try connection.drain()
    }
    let socket = Session.forSockets().webSocketRequest(
      to: server.socketURL(), configuration: .maximumMessageSize(1000))
    #expect(await socket.events() == [.connected(nil), .completed(.dataLengthExceedsMaximum)])
  }
}
