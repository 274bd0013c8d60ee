import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite("The end of WebSocket requests", .timeLimit(.minutes(5))) struct WebSocketEndTests {
  @Test(
    "A malformed frame is answered by a Close frame and ends the request",
    arguments: [
      [0xC1, 0], [0x83, 0], [0x80, 0], [0x09, 0], [0x81, 0x80, 0, 0, 0, 0], [0x81, 0x7E, 0, 1],
      [0x88, 1, 0], [0x88, 2, 0x03, 0xED], [0x81, 1, 0xFF], [0x01, 0, 0x81, 0],
    ] as [[UInt8]])
  func malformedFrame(bytes: [UInt8]) async throws {
    let ends = Recorder<WebSocketTestConnection.Event?>()
    let server = try HTTPTestServer.webSocket { connection in
      try connection.write(bytes)
      ends.add(try connection.next())
    }
    let socket = Session.forSockets().webSocketRequest(to: server.socketURL())
    #expect(await socket.events() == [.connected(nil), .completed(.badServerResponse)])
    let code = bytes == [0x81, 1, 0xFF] ? 1007 : 1002
    #expect(await ends.wait(for: 1) == [.closed(code: code, reason: "")])
  }

  @Test("A connection that ends without a Close frame is lost")
  func lostConnection() async throws {
    let server = try HTTPTestServer.webSocket { try $0.send("last") }
    let socket = Session.forSockets().webSocketRequest(to: server.socketURL())
    #expect(
      await socket.events() == [.connected(nil), .text("last"), .completed(.networkConnectionLost)])
    #expect(socket.response?.statusCode == 101)
  }

  @Test("A Close frame without an answer times out")
  func closeTimeout() async throws {
    let server = try HTTPTestServer.webSocket { connection in
      connection.answersControlFrames = false
      try connection.drain()
    }
    var configuration = WebSocketRequest.Configuration.default
    configuration.closeTimeout = .milliseconds(50)
    let socket = Session.forSockets().webSocketRequest(
      to: server.socketURL(), configuration: configuration)
    let events = socket.recorded()
    await events.wait(for: 1)
    socket.close(sending: .goingAway)
    #expect(await events.wait(for: 2) == [.connected(nil), .completed(.timedOut)])
  }

  @Test("A read in a cancelled task cancels the request, although the iterator is retained")
  func cancelledRead() async throws {
    let server = try HTTPTestServer.webSocket { try $0.drain() }
    let socket = Session.forSockets().webSocketRequest(to: server.socketURL())
    await Task {
      var iterator = socket.webSocketTask().streamingMessages().makeAsyncIterator()
      withUnsafeCurrentTask { $0?.cancel() }
      let isOver = await iterator.next() == nil
      #expect(isOver && socket.isCancelled)
      withExtendedLifetime(iterator) {}
    }.value
  }

  @Test("Messages between both Close frames are delivered")
  func messagesWhileClosing() async throws {
    let server = try HTTPTestServer.webSocket { connection in
      connection.answersControlFrames = false
      while case .text(let text)? = try connection.next() { try connection.send("answer to \(text)") }
      // The Close frame of the client has arrived.
      try connection.write([0x81, 4] + Array("last".utf8))
      try connection.write([0x88, 2, 0x03, 0xE8])
      try connection.drain()
    }
    let socket = Session.forSockets().webSocketRequest(to: server.socketURL())
    socket.send(.string("one"))
    let events = socket.recorded()
    socket.send(.string("two"))
    socket.close(sending: .normalClosure)
    #expect(
      await events.wait(for: 6) == [
        .connected(nil), .text("answer to one"), .text("answer to two"), .text("last"),
        .disconnected(1000, nil), .completed(nil),
      ])
  }

  @Test("Unprocessed messages do not hold up the closing handshake")
  func closeWithStalledReader() async throws {
    let server = try HTTPTestServer.webSocket { connection in
      connection.answersControlFrames = false
      _ = try connection.next()
      // The Close frame of the client has arrived.
      let frame = [0x82, 126, 0xEA, 0x60] + [UInt8](repeating: 1, count: 60_000)
      for _ in 0..<50 { try connection.write(frame) }
      try connection.write([0x88, 2, 0x03, 0xE8])
      try connection.drain()
    }
    var configuration = WebSocketRequest.Configuration.default
    // Long enough for a slow machine to receive the skipped messages.
    configuration.closeTimeout = .seconds(3)
    let socket = Session.forSockets().webSocketRequest(
      to: server.socketURL(), configuration: configuration)
    var reader = socket.webSocketTask().streamingMessages().makeAsyncIterator()
    let events = socket.recorded()
    socket.close(sending: .normalClosure)
    let ends = await eventually { if case .completed = events.values.last { true } else { false } }
    #expect(ends)
    #expect(events.values.suffix(2) == [.disconnected(1000, nil), .completed(nil)])
    // Those that were held are still there.
    var count = 0
    while await reader.next() != nil { count += 1 }
    #expect((1...40).contains(count))
  }

  @Test("Messages before a closure arrive before it")
  func closeAfterMessages() async throws {
    let seen = Recorder<WebSocketTestConnection.Event>()
    let server = try HTTPTestServer.webSocket { connection in
      while let event = try connection.next() { seen.add(event) }
    }
    let socket = Session.forSockets().webSocketRequest(to: server.socketURL())
    socket.send(.string("first"))
    let events = socket.recorded()
    socket.send(.string("second"))
    socket.close(sending: WebSocketCloseCode(rawValue: 4999), reason: Data("bye".utf8))
    #expect(
      await events.wait(for: 3) == [.connected(nil), .disconnected(4999, "bye"), .completed(nil)])
    #expect(
      await seen.wait(for: 3) == [.text("first"), .text("second"), .closed(code: 4999, reason: "bye")])
  }

  @Test("A close code that must not be sent is left out, and a long reason is cut between characters")
  func closeArguments() async throws {
    let seen = Recorder<WebSocketTestConnection.Event>()
    let server = try HTTPTestServer.webSocket { connection in
      while let event = try connection.next() { seen.add(event) }
    }
    let session = Session.forSockets()
    let reason = String(repeating: "ü", count: 100)
    for code in [1006, 1000] {
      let socket = session.webSocketRequest(to: server.socketURL())
      let events = socket.recorded()
      await events.wait(for: 1)
      socket.close(sending: WebSocketCloseCode(rawValue: code), reason: Data(reason.utf8))
      await events.wait(for: 3)
    }
    #expect(
      await seen.wait(for: 2) == [
        .closed(code: 1005, reason: ""), .closed(code: 1000, reason: String(reason.prefix(61))),
      ])
  }

  @Test("A request that was not resumed is never sent")
  func closeBeforeStart() async throws {
    let server = try HTTPTestServer.webSocket()
    let session = Session.forSockets()
    let socket = session.webSocketRequest(to: server.socketURL(), shouldAutomaticallyResume: false)
    let events = socket.recorded()
    socket.close(sending: .normalClosure)
    #expect(await events.wait(for: 1) == [.cancelled])
    #expect(server.requestCount == 0)
  }

  @Test("A task that is cancelled does not wait until its message is sent") func cancelledSend() async {
    let socket = Session.forSockets().webSocketRequest(
      to: "ws://127.0.0.1:9/", shouldAutomaticallyResume: false)
    let sending = Task { try await socket.webSocketTask().send(.string("x")) }
    sending.cancel()
    await #expect(throws: AFError.self) { try await sending.value }
    socket.cancel()
  }

  @Test("A message after the end completes with an error")
  func sendAfterEnd() async throws {
    let server = try HTTPTestServer.webSocket { connection in
      try connection.close()
      try connection.drain()
    }
    let socket = Session.forSockets().webSocketRequest(to: server.socketURL())
    _ = await socket.events()
    await #expect(throws: AFError.self) { try await socket.webSocketTask().send(.string("late")) }
    let pings = Recorder<Bool>()
    socket.sendPing(respondingOn: .global()) { response in
      if case .unsent = response { pings.add(true) } else { pings.add(false) }
    }
    #expect(await pings.wait(for: 1) == [true])
    // A handler that is added after the end receives the completion.
    #expect(await socket.events() == [.completed(nil)])
  }

  @Test("A request can be cancelled before, in and after the handshake", arguments: 0..<3)
  func cancellation(moment: Int) async throws {
    let gate = Gate()
    let server = try HTTPTestServer(
      routes: .standard.adding("/socket") { _, _ in
        moment < 2 ? .webSocket().held(by: gate) : .webSocket()
      })
    let session = Session.forSockets()
    let socket = session.webSocketRequest(to: server.socketURL())
    let sends = Recorder<Bool>()
    if moment < 2 {
      socket.send(.string("queued"), queue: .global()) { result in
        if case .success = result { sends.add(true) } else { sends.add(false) }
      }
    }
    let events = socket.recorded()
    switch moment {
    case 0: break
    case 1: _ = try await server.takeRequest()
    default: await events.wait(for: 1)
    }
    socket.cancel()
    #expect(await events.wait(for: moment == 2 ? 2 : 1).last == .cancelled)
    if moment < 2 { #expect(await sends.wait(for: 1) == [false]) }
    gate.open()
    #expect(await eventually { server.openConnectionCount == 0 })
  }

  /// Starts a server that answers no Close frame, with a client that would wait for it for an hour.
  private func unansweredClosure(
    seen: Recorder<WebSocketTestConnection.Event> = Recorder()
  ) async throws -> (WebSocketRequest, HTTPTestServer) {
    let server = try HTTPTestServer.webSocket { connection in
      connection.answersControlFrames = false
      while let event = try connection.next() { seen.add(event) }
    }
    var configuration = WebSocketRequest.Configuration.default
    configuration.closeTimeout = .seconds(3600)
    let socket = Session.forSockets().webSocketRequest(
      to: server.socketURL(), configuration: configuration)
    return (socket, server)
  }

  @Test("Cancelling after close ends the closing handshake at once")
  func cancelAfterClose() async throws {
    let (socket, server) = try await unansweredClosure()
    let events = socket.recorded()
    await events.wait(for: 1)
    socket.close(sending: .goingAway)
    #expect(socket.isCancelled)
    socket.cancel()
    #expect(await events.wait(for: 2) == [.connected(nil), .cancelled])
    #expect(await eventually { server.openConnectionCount == 0 })
    // This no longer has an effect.
    socket.cancel()
    socket.close(sending: .goingAway)
    #expect(socket.isCancelled)
  }

  @Test("Cancelling ends a closing handshake that waits for the connection")
  func cancelBeforeConnection() async throws {
    let gate = Gate()
    let server = try HTTPTestServer(
      routes: .standard.adding("/socket") { _, _ in .webSocket().held(by: gate) })
    let socket = Session.forSockets().webSocketRequest(to: server.socketURL())
    let events = socket.recorded()
    _ = try await server.takeRequest()
    socket.close(sending: .normalClosure)
    socket.cancel()
    #expect(await events.wait(for: 1) == [.cancelled])
    gate.open()
  }

  @Test("Leaving a loop after close does not cut the closing handshake short")
  func leftLoopAfterClose() async throws {
    let seen = Recorder<WebSocketTestConnection.Event>()
    let (socket, server) = try await unansweredClosure(seen: seen)
    for await _ in socket.webSocketTask().streamingMessageEvents() {
      socket.send(.string("last"))
      socket.close(sending: .normalClosure)
      break
    }
    #expect(await seen.wait(for: 2) == [.text("last"), .closed(code: 1000, reason: "")])
    socket.cancel()
    #expect(await eventually { server.openConnectionCount == 0 })
  }

  @Test("Closing ends the delay before a retry")
  func closeInDelay() async throws {
    let server = try HTTPTestServer()
    let asked = Recorder<Int>()
    let retrier = Retrier { _, _, _, completion in
      completion(.retryWithDelay(3600))
      asked.add(1)
    }
    let socket = Session.forSockets().webSocketRequest(
      to: server.socketURL("/status/503"), interceptor: Interceptor(adapters: [], retriers: [retrier]))
    let events = socket.recorded()
    await asked.wait(for: 1)
    socket.close(sending: .normalClosure)
    #expect(await events.wait(for: 1) == [.completed(.badServerResponse)])
    #expect(server.requestCount == 1)
  }

  @Test("The release of a session ends its connections")
  func release() async throws {
    let server = try HTTPTestServer.webSocket()
    var session: Session? = Session.forStreams()
    let socket = try #require(session).webSocketRequest(to: server.socketURL())
    let ends = Recorder<AFError?>()
    let events = Recorder<SocketEvent>()
    socket.streamMessageEvents(on: .global()) { event in
      events.add(SocketEvent(event))
      if case .completed(let completion) = event.kind { ends.add(completion.error) }
    }
    await events.wait(for: 1)
    session = nil
    #expect(await ends.wait(for: 1).first??.isSessionDeinitializedError == true)
    #expect(await eventually { server.openConnectionCount == 0 })
  }

  @Test("Messages that were not read before the end outlive the session")
  func releaseAfterEnd() async throws {
    let server = try HTTPTestServer.webSocket { connection in
      for text in ["one", "two", "three"] { try connection.send(text) }
      try connection.close()
      try connection.drain()
    }
    var session: Session? = Session.forStreams()
    let socket = try #require(session).webSocketRequest(
      to: server.socketURL(), shouldAutomaticallyResume: false)
    let messages = socket.webSocketTask().streamingMessages()
    socket.resume()
    #expect(await eventually { socket.isFinished })
    weak let released = session
    session = nil
    #expect(released == nil)
    var texts: [String] = []
    for await message in messages {
      if case .string(let text) = message { texts.append(text) }
    }
    #expect(texts == ["one", "two", "three"])
  }

  @Test("Leaving a loop cancels the request, unless that is disabled", arguments: [true, false])
  func leftLoop(cancels: Bool) async throws {
    let server = try HTTPTestServer.webSocket()
    let socket = Session.forSockets().webSocketRequest(to: server.socketURL())
    for await _ in socket.webSocketTask().streamingMessageEvents(automaticallyCancelling: cancels) { break }
    #expect(socket.isCancelled == cancels)
    socket.cancel()
  }

  // MARK: Pings

  @Test("A ping is answered with its latency")
  func ping() async throws {
    let server = try HTTPTestServer.webSocket()
    let socket = Session.forSockets().webSocketRequest(to: server.socketURL())
    let events = socket.recorded()
    await events.wait(for: 1)
    let latencies = Recorder<TimeInterval?>()
    for _ in 0..<100 {
      socket.sendPing(respondingOn: .global()) { response in
        if case .pong(let pong) = response { latencies.add(pong.latency) } else { latencies.add(nil) }
      }
    }
    #expect(await latencies.wait(for: 100).allSatisfy { ($0 ?? -1) >= 0 })
    socket.cancel()
  }

  @Test("A ping can be sent as soon as the connection is open, while earlier messages wait")
  func earlyPing() async throws {
    let server = try HTTPTestServer.webSocket()
    let socket = Session.forSockets().webSocketRequest(to: server.socketURL())
    for _ in 0..<3000 { socket.send(.data(Data(repeating: 1, count: 1000))) }
    let pongs = Recorder<Bool>()
    socket.streamMessageEvents(on: .global()) { event in
      guard case .connected = event.kind else { return }
      event.sendPing(respondingOn: .global()) { response in
        if case .pong = response { pongs.add(true) } else { pongs.add(false) }
      }
    }
    #expect(await pongs.wait(for: 1) == [true])
    socket.cancel()
  }

  @Test("Automatic pings continue after each pong")
  func automaticPings() async throws {
    let pings = Recorder<Int>()
    let server = try HTTPTestServer.webSocket { connection in
      while let event = try connection.next() { if case .ping = event { pings.add(1) } }
    }
    let socket = Session.forSockets().webSocketRequest(
      to: server.socketURL(), configuration: .pingInterval(3))
    let events = socket.recorded()
    await pings.wait(for: 3)
    socket.close(sending: .normalClosure)
    #expect(await events.wait(for: 3).last == .completed(nil))
  }

  @Test("A ping without an answer ends the request")
  func missingPong() async throws {
    let server = try HTTPTestServer.webSocket { connection in
      connection.answersControlFrames = false
      try connection.drain()
    }
    let socket = Session.forSockets().webSocketRequest(
      to: server.socketURL(), configuration: .pingInterval(0.01))
    #expect(await socket.events() == [.connected(nil), .completed(.timedOut)])
  }

  // MARK: Back-pressure and compression

  @Test("The server waits while messages are not processed")
  func pressure() async throws {
    let sent = Recorder<Int>()
    let count = 400
    let server = try HTTPTestServer.webSocket { connection in
      for index in 0..<count {
        try connection.send([UInt8](repeating: UInt8(truncatingIfNeeded: index), count: 100_000))
        sent.add(index)
      }
      try connection.close()
      try connection.drain()
    }
    let socket = Session.forSockets().webSocketRequest(to: server.socketURL())
    var iterator = socket.webSocketTask().streamingMessages().makeAsyncIterator()
    var received = 0
    while let message = await iterator.next() {
      guard case .data(let data) = message else { break }
      #expect(data.count == 100_000 && data.first == UInt8(truncatingIfNeeded: received))
      received += 1
      // A mebibyte is held here; the buffers of the system hold a few more.
      #expect(sent.count <= received + 150)
    }
    #expect(received == count)
  }

  @Test("Messages are compressed if both sides want it", arguments: [true, false])
  func compression(serverCompresses: Bool) async throws {
    let seen = Recorder<Bool>()
    let endpoint = WebSocketEndpoint(compresses: serverCompresses) { connection in
      seen.add(connection.isCompressed)
      try connection.echo()
    }
    let server = try HTTPTestServer.webSocket(.none, endpoint)
    let socket = Session.forSockets().webSocketRequest(
      to: server.socketURL(), configuration: .init(compressesMessages: true))
    let text = String(repeating: "the same words again, ", count: 10_000)
    let task = socket.webSocketTask()
    let messages = task.streamingMessages()
    for _ in 0..<3 { try await task.send(.string(text)) }
    var count = 0
    for await message in messages {
      guard case .string(let echo) = message, echo == text else { break }
      count += 1
      if count == 3 { break }
    }
    #expect(count == 3)
    #expect(seen.values == [serverCompresses])
    if serverCompresses { #expect(server.receivedByteCount < text.utf8.count) }
  }
}
