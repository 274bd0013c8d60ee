import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

/// The sequences of a ``WebSocketTask``, and the connection that it closes.
@Suite("Tasks of WebSocket requests", .timeLimit(.minutes(1))) struct WebSocketTaskTests {
  /// The forms in which messages are read.
  enum Form: CaseIterable { case events, messages, decodedEvents, decoded }

  struct Item: Decodable, Equatable, Sendable { let value: Int }

  /// Decodes JSON, and counts the documents.
  private struct CountingDecoder: DataDecoder {
    let documents = Recorder<Int>()

    func decode<D: Decodable>(_ type: D.Type, from data: Data) throws -> D {
      documents.add(data.count)
      return try JSONDecoder().decode(type, from: data)
    }
  }

  /// Starts a server that sends a message, and closes after the answer.
  private func server() throws -> HTTPTestServer {
    try .webSocket { connection in
      try connection.send("{\"value\": 1}")
      _ = try connection.nextMessage()
      try connection.close()
      try connection.drain()
    }
  }

  /// Reads the first element, and leaves the loop.
  private func readOne(_ form: Form, of task: WebSocketTask, cancels: Bool, isLimited: Bool) async {
    switch form {
    case .events:
      let stream = task.streamingMessageEvents(
        automaticallyCancelling: cancels, bufferingPolicy: isLimited ? .bufferingOldest(9) : .unbounded)
      for await _ in stream { break }
    case .messages:
      let stream = task.streamingMessages(
        automaticallyCancelling: cancels, bufferingPolicy: isLimited ? .bufferingOldest(9) : .unbounded)
      for await _ in stream { break }
    case .decodedEvents:
      let stream = task.streamingDecodableEvents(
        Item.self, automaticallyCancelling: cancels,
        bufferingPolicy: isLimited ? .bufferingOldest(9) : .unbounded)
      for await _ in stream { break }
    case .decoded:
      let stream = task.streamingDecodable(
        Item.self, automaticallyCancelling: cancels,
        bufferingPolicy: isLimited ? .bufferingOldest(9) : .unbounded)
      for await _ in stream { break }
    }
  }

  @Test(
    "Leaving a loop of any form cancels the request only if it should", arguments: Form.allCases,
    [true, false])
  func leaving(form: Form, cancels: Bool) async throws {
    for isLimited in [false, true] {
      let server = try server()
      let socket = Session.forSockets().webSocketRequest(to: server.socketURL())
      await readOne(form, of: socket.webSocketTask(), cancels: cancels, isLimited: isLimited)
      if cancels { #expect(await eventually { socket.isCancelled }, "limited: \(isLimited)") }
      socket.send(.string("end"))
      await socket.finished()
      #expect(socket.isCancelled == cancels, "limited: \(isLimited)")
    }
  }

  @Test("A loop reads decoded messages; a failure is an event, or is skipped", arguments: [false, true])
  func decoding(isLimited: Bool) async throws {
    let server = try HTTPTestServer.webSocket { connection in
      try connection.send("{\"value\": 1}")
      try connection.send("no document")
      try connection.send(Array("{\"value\": 3}".utf8))
      try connection.close(4001)
      try connection.drain()
    }
    let socket = Session.forSockets().webSocketRequest(
      to: server.socketURL(), shouldAutomaticallyResume: false)
    let task = socket.webSocketTask()
    let decoder = CountingDecoder()
    let values = task.streamingDecodable(
      Item.self, using: decoder, bufferingPolicy: isLimited ? .bufferingOldest(9) : .unbounded)
    let events = task.streamingDecodableEvents(
      Item.self, using: decoder, bufferingPolicy: isLimited ? .bufferingOldest(9) : .unbounded)
    #expect(socket.isInitialized)
    task.resume()
    var kinds: [String] = []
    for await event in events {
      switch event.kind {
      case .connected: kinds.append("connected")
      case .receivedMessage(let item): kinds.append("\(item.value)")
      case .serializerFailed: kinds.append("failed")
      case .disconnected(let code, _): kinds.append("disconnected \(code.rawValue)")
      case .completed(let completion): kinds.append(completion.error == nil ? "completed" : "an error")
      }
    }
    #expect(kinds == ["connected", "1", "failed", "3", "disconnected 4001", "completed"])
    var items: [Item] = []
    for await item in values { items.append(item) }
    #expect(items == [Item(value: 1), Item(value: 3)])
    #expect(decoder.documents.count == 6)
  }

  @Test("A buffering policy drops decoded messages that are not read", arguments: [false, true])
  func policy(hasEvents: Bool) async throws {
    let server = try HTTPTestServer.webSocket { connection in
      for value in 1...3 { try connection.send("{\"value\": \(value)}") }
      try connection.drain()
    }
    let socket = Session.forSockets().webSocketRequest(to: server.socketURL())
    let task = socket.webSocketTask()
    let decoder = CountingDecoder()
    var values: [Int] = []
    // The third message is decoded once the second one was dropped.
    if hasEvents {
      let events = task.streamingDecodableEvents(
        Item.self, using: decoder, bufferingPolicy: .bufferingOldest(2))
      await decoder.documents.wait(for: 3)
      task.cancel()
      for await event in events {
        if case .receivedMessage(let item) = event.kind { values.append(item.value) }
      }
    } else {
      let items = task.streamingDecodable(Item.self, using: decoder, bufferingPolicy: .bufferingOldest(1))
      await decoder.documents.wait(for: 3)
      task.cancel()
      for await item in items { values.append(item.value) }
    }
    #expect(values.first == 1 && !values.contains(2), "\(values)")
  }

  @Test("A task closes its connection with a code of Foundation and a reason") func foundationCode()
    async throws
  {
    let server = try HTTPTestServer.webSocket()
    let socket = Session.forSockets().webSocketRequest(to: server.socketURL())
    let events = socket.recorded()
    await events.wait(for: 1)
    let code = URLSessionWebSocketTask.CloseCode.goingAway
    socket.webSocketTask().close(sending: code, reason: Data("done".utf8))
    #expect(await events.wait(for: 3) == [.connected(nil), .disconnected(1001, "done"), .completed(nil)])
  }

  @Test("A message does not start a request that is not resumed automatically") func heldMessage() async {
    let fake = FakeByteStreams()
    let session = Session.forFakeSockets(fake, TransportOptions(), nil)
    let socket = session.webSocketRequest(to: "ws://a.test/", shouldAutomaticallyResume: false)
    let task = socket.webSocketTask()
    // It begins at once, and waits for the connection.
    let sending = Task.immediate { try await task.send(.string("first")) }
    #expect(socket.isInitialized)
    task.cancel()
    await #expect(throws: AFError.self) { try await sending.value }
    #expect(fake.streams.count == 0)
  }
}
