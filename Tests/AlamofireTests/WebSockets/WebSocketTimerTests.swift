import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

/// The waits for the Close frame and for pongs, while messages are still to be written or to be read.
@Suite("The timers of WebSocket requests", .timeLimit(.minutes(5))) struct WebSocketTimerTests {
  private static let message = URLSessionWebSocketTask.Message.data(Data(count: 1_000_000))

  /// Opens a connection on which the first piece of a message is being written.
  private func connectedWhileWriting(
    _ fake: FakeSocketSession, _ configuration: WebSocketRequest.Configuration = .default
  ) async throws -> (WebSocketRequest, Recorder<SocketEvent>, FakeByteStream) {
    let socket = fake.session.webSocketRequest(to: "ws://a.test/", configuration: configuration)
    socket.send(Self.message)
    let events = socket.recorded()
    let stream = try await fake.streams.streams.value(0)
    await stream.writes.wait(for: 1)
    stream.holdWrites()
    try await stream.accept()
    await stream.writes.wait(for: 2)
    await events.wait(for: 1)
    return (socket, events, stream)
  }

  /// Lets pass the time after which a connection ends that began earlier and gets no answer.
  private func passTime(_ fake: FakeSocketSession, _ configuration: WebSocketRequest.Configuration)
    async throws
  {
    let other = fake.session.webSocketRequest(to: "ws://a.test/", configuration: configuration)
    let ends = other.recorded()
    try await fake.streams.streams.value(1).accept()
    await ends.wait(for: 1)
    if configuration.pingInterval == nil { other.close(sending: .goingAway) }
    #expect(await ends.wait(for: 2) == [.connected(nil), .completed(.timedOut)], "so much time has passed")
  }

  @Test("The wait for the server's Close frame begins when the own one was written") func unwrittenClose()
    async throws
  {
    var configuration = WebSocketRequest.Configuration.default
    configuration.closeTimeout = .milliseconds(50)
    let fake = FakeSocketSession()
    let (socket, events, stream) = try await connectedWhileWriting(fake, configuration)
    socket.close(sending: .goingAway)
    try await passTime(fake, configuration)
    #expect(stream.ends.count == 0 && events.values == [.connected(nil)])
    stream.finishWrites()
    #expect(await stream.events(count: 2).last == .closed(WebSocketClosure(code: .goingAway, reason: "")))
    #expect(await events.wait(for: 2) == [.connected(nil), .completed(.timedOut)], "there is no answer")
  }

  @Test("The Close frame of the server counts if the own one still waits behind a message")
  func overtakenClose()
    async throws
  {
    let fake = FakeSocketSession()
    let (socket, events, stream) = try await connectedWhileWriting(fake)
    socket.close(sending: .normalClosure)
    stream.send(closeFrame(1009, "too big"))
    #expect(await events.wait(for: 2) == [.connected(nil), .disconnected(1009, "too big")])
    stream.finishWrites()
    #expect(await events.wait(for: 3).last == .completed(nil))
  }

  @Test("The wait for a pong begins when the ping was written") func unwrittenPing() async throws {
    let fake = FakeSocketSession()
    let (socket, events, stream) = try await connectedWhileWriting(fake, .pingInterval(0.05))
    defer { socket.cancel() }
    try await passTime(fake, .pingInterval(0.05))
    #expect(stream.ends.count == 0 && events.values == [.connected(nil)])
    stream.finishWrites()
    #expect(await events.wait(for: 2) == [.connected(nil), .completed(.timedOut)], "there is no answer")
  }

  @Test("A connection that is suspended while a pong is due is not cut before it is resumed")
  func suspendedPong() async throws {
    // On a slow machine, the time for the pong may be over before the connection is suspended.
    for interval in [0.1, 1, 5, 20] {
      let fake = FakeSocketSession()
      let (socket, events, stream) = try await fake.connected(.pingInterval(interval))
      defer { socket.cancel() }
      #expect(await stream.events(count: 1).count == 1)
      socket.suspend()
      await stream.settle()
      guard stream.ends.count == 0 else { continue }
      try await passTime(fake, .pingInterval(interval))
      #expect(stream.ends.count == 0 && events.values == [.connected(nil)])
      socket.resume()
      let end = await events.wait(for: 2).last
      #expect(end == .completed(.timedOut), "a resumed connection waits for a pong again")
      #expect(stream.events.count == 2, "each ping is sent once")
      return
    }
    Issue.record("the connection was never suspended in time")
  }

  @Test("A connection that waits for the readers of its messages does not wait for a pong") func unreadPong()
    async throws
  {
    let fake = FakeSocketSession()
    let socket = fake.session.webSocketRequest(to: "ws://a.test/", configuration: .pingInterval(0.5))
    var reader = socket.webSocketTask().streamingMessages().makeAsyncIterator()
    let frame = serverFrame(0x82, [UInt8](repeating: 1, count: 60_000))
    let stream = try await fake.streams.streams.value(0)
    try await stream.accept(then: (0..<20).reduce(into: Data()) { all, _ in all += frame })
    #expect(await stream.events(count: 1).count >= 1, "a ping is sent")
    try await passTime(fake, .pingInterval(0.5))
    #expect(stream.ends.count == 0)
    for _ in 0..<20 { #expect(await reader.next() != nil) }
    _ = await eventually { stream.ends.count == 1 }
    #expect(stream.ends.count == 1, "there is no answer")
    socket.cancel()
  }

  @Test("A server that ends without a Close frame ends a connection with a write that waits")
  func stuckWrite()
    async throws
  {
    let fake = FakeSocketSession()
    let (socket, events, stream) = try await connectedWhileWriting(fake)
    defer { socket.cancel() }
    stream.send(Data(), isLast: true)
    #expect(await events.wait(for: 2) == [.connected(nil), .completed(.networkConnectionLost)])
    #expect(stream.ends.count == 1)
  }
}
