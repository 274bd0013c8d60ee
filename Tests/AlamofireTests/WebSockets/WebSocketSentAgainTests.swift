import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

/// A finished WebSocket request can be sent again. Handlers and loops belong to the run to which they were added.
@Suite("WebSocket requests that are sent again", .timeLimit(.minutes(5))) struct WebSocketSentAgainTests {
  /// Answers the first message with the number of the connection, and closes.
  private func server() throws -> HTTPTestServer {
    let count = Recorder<Int>()
    return try .webSocket { connection in
      count.add(1)
      let text = "connection \(count.count)"
      _ = try connection.nextMessage()
      try connection.send(text)
      try connection.close()
      try connection.drain()
    }
  }

  private static func events(_ number: Int) -> [SocketEvent] {
    [.text("connection \(number)"), .disconnected(1000, nil), .completed(nil)]
  }

  /// Returns the events until the completion, without `connected`, which a handler that is added to a running request
  /// may have missed.
  private func ended(_ recorder: Recorder<SocketEvent>) async -> [SocketEvent] {
    _ = await eventually { recorder.values.last == .completed(nil) }
    return recorder.values.filter { $0 != .connected(nil) }
  }

  @Test("Each run has its handlers, messages and outcome")
  func twoRuns() async throws {
    let server = try server()
    let session = Session.forSockets()
    let socket = session.webSocketRequest(to: server.socketURL())
    let first = socket.recorded()
    socket.send(.string("go"))
    #expect(await ended(first) == Self.events(1))
    for run in 2...4 {
      session.retryRequest(socket, withDelay: nil)
      let next = socket.recorded()
      let sends = Recorder<Bool>()
      socket.send(.string("go"), queue: .global()) { result in
        if case .success = result { sends.add(true) } else { sends.add(false) }
      }
      #expect(await ended(next) == Self.events(run))
      #expect(await sends.wait(for: 1) == [true])
    }
    #expect(first.values == [.connected(nil)] + Self.events(1))
    #expect(socket.retryCount == 3 && socket.isFinished)
  }

  @Test("A loop that has not begun reads the events of its own run")
  func unreadLoop() async throws {
    let server = try server()
    let session = Session.forSockets()
    let socket = session.webSocketRequest(to: server.socketURL())
    let loop = socket.webSocketTask().streamingMessageEvents()
    socket.send(.string("go"))
    #expect(await ended(socket.recorded()) == Self.events(1))
    session.retryRequest(socket, withDelay: nil)
    let second = socket.recorded()
    socket.send(.string("go"))
    #expect(await ended(second) == Self.events(2))
    var events: [SocketEvent] = []
    for await event in loop { events.append(SocketEvent(event)) }
    #expect(events == [.connected(nil)] + Self.events(1))
  }

  @Test("The release of a loop and the events of an earlier run cancel nothing")
  func earlierRun() async throws {
    let server = try server()
    let session = Session.forSockets()
    let socket = session.webSocketRequest(to: server.socketURL())
    typealias Event = WebSocketRequest.Event<URLSessionWebSocketTask.Message, Never>
    let old = Recorder<Event>()
    socket.streamMessageEvents(on: .global()) { old.add($0) }
    let second: Recorder<SocketEvent>
    do {
      let loop = socket.webSocketTask().streamingMessageEvents()
      socket.send(.string("go"))
      await old.wait(for: 4)
      session.retryRequest(socket, withDelay: nil)
      second = socket.recorded()
      withExtendedLifetime(loop) {}
    }
    let answers = Recorder<Bool>()
    for event in old.values {
      event.cancel()
      event.close(sending: .goingAway)
      event.sendPing(respondingOn: .global()) { response in
        if case .unsent = response { answers.add(true) } else { answers.add(false) }
      }
    }
    #expect(await answers.wait(for: 4) == [true, true, true, true])
    #expect(socket.isResumed)
    socket.send(.string("go"))
    #expect(await ended(second) == Self.events(2))
  }

  @Test("No message is sent between two runs")
  func betweenRuns() async throws {
    let server = try server()
    let session = Session.forSockets()
    let socket = session.webSocketRequest(to: server.socketURL())
    socket.send(.string("go"))
    #expect(await ended(socket.recorded()) == Self.events(1))
    await #expect(throws: AFError.self) { try await socket.webSocketTask().send(.string("lost")) }
    session.retryRequest(socket, withDelay: nil)
    let second = socket.recorded()
    socket.send(.string("go"))
    #expect(await ended(second) == Self.events(2))
  }
}
