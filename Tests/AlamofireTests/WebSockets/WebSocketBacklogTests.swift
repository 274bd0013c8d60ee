import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

/// The cancellation of WebSocket requests whose handlers have not received all messages, and the order of completions
/// and events.
@Suite("WebSocket requests with a backlog", .timeLimit(.minutes(5))) struct WebSocketBacklogTests {
  private let queue = DispatchQueue(label: "test.handlers")
  private static let messages = (1...500).reduce(into: Data()) {
    $0 += serverFrame(0x81, Array("\($1)".utf8))
  }

  /// Records events on a queue, and stops at the first message until the test lets it continue.
  private func stopped(
    _ socket: WebSocketRequest, on queue: DispatchQueue
  ) -> (Recorder<SocketEvent>, DispatchSemaphore) {
    let (events, gate) = (Recorder<SocketEvent>(), DispatchSemaphore(value: 0))
    socket.streamMessageEvents(on: queue) { event in
      events.add(SocketEvent(event))
      if SocketEvent(event) == .text("1") { gate.wait() }
    }
    return (events, gate)
  }

  @Test("Cancelling drops the backlog, and the completion is next", arguments: [false, true])
  func backlog(isConcurrent: Bool) async throws {
    let fake = FakeSocketSession()
    let (socket, _, stream) = try await fake.connected()
    let (events, gate) = stopped(socket, on: isConcurrent ? .global() : queue)
    stream.send(Self.messages)
    await events.wait(for: 1)
    await stream.settle()
    socket.cancel()
    gate.signal()
    #expect(await events.wait(for: 2) == [.text("1"), .cancelled])
    await stream.settle()
    #expect(events.count == 2)
  }

  @Test(
    "Cancelling by an event ends the delivery, also after the end of the connection",
    arguments: [false, true])
  func byEvent(hasEnded: Bool) async throws {
    let fake = FakeSocketSession()
    let (socket, _, stream) = try await fake.connected()
    let events = Recorder<SocketEvent>()
    let gate = DispatchSemaphore(value: 0)
    socket.streamMessageEvents(on: queue) { event in
      events.add(SocketEvent(event))
      guard SocketEvent(event) == .text("1") else { return }
      gate.wait()
      event.cancel()
    }
    stream.send(Self.messages + (hasEnded ? closeFrame() : Data()), isLast: hasEnded)
    await events.wait(for: 1)
    if hasEnded { _ = await eventually { socket.isFinished } }
    gate.signal()
    #expect(await events.wait(for: 2) == [.text("1"), hasEnded ? .completed(nil) : .cancelled])
    queue.sync {}
    #expect(events.count == 2)
  }

  @Test("Events that come while a handler of a concurrent queue is busy follow in their order")
  func concurrentQueue() async throws {
    let queue = DispatchQueue(label: "test.concurrent", attributes: .concurrent)
    let fake = FakeSocketSession()
    let (socket, _, stream) = try await fake.connected()
    let (events, gate) = stopped(socket, on: queue)
    stream.send(serverFrame(0x81, Array("1".utf8)))
    await events.wait(for: 1)
    for text in ["2", "3", "4"] {
      stream.send(serverFrame(0x81, Array(text.utf8)))
      await stream.settle()
      // The item of the event has begun before this one, and found the handler busy.
      for _ in 0..<2 { await withCheckedContinuation { done in queue.async { done.resume() } } }
    }
    gate.signal()
    queue.sync(flags: .barrier) {}
    #expect(events.values == ["1", "2", "3", "4"].map { .text($0) })
    socket.cancel()
  }

  @Test(
    "A reader that is added after cancel gets only the completion; after close it gets messages, too",
    arguments: [true, false])
  func lateReader(isCancelled: Bool) async throws {
    let fake = FakeSocketSession()
    let (socket, _, stream) = try await fake.connected()
    // The read after the handshake has begun.
    #expect(await eventually { stream.readCount >= 2 })
    // The message arrives when the request is cancelled already, and before the stream ends.
    stream.pause()
    stream.send(serverFrame(0x81, Array("late".utf8)))
    if isCancelled { socket.cancel() } else { socket.close(sending: WebSocketCloseCode.normalClosure) }
    let handled = socket.recorded()
    let loop = socket.webSocketTask().streamingMessageEvents()
    stream.unpause()
    if !isCancelled { stream.send(closeFrame(), isLast: true) }
    let expected: [SocketEvent] =
      isCancelled ? [.cancelled] : [.text("late"), .disconnected(1000, nil), .completed(nil)]
    #expect(await handled.wait(for: expected.count) == expected)
    var looped: [SocketEvent] = []
    for await event in loop { looped.append(SocketEvent(event)) }
    #expect(looped == expected)
  }

  @Test("Cancelling ends a loop at once, although messages are there") func loop() async throws {
    let fake = FakeSocketSession()
    let (socket, _, stream) = try await fake.connected()
    let messages = socket.webSocketTask().streamingMessages()
    stream.send(Self.messages)
    var count = 0
    for await _ in messages {
      count += 1
      await stream.settle()
      if count == 2 { socket.cancel() }
    }
    #expect(count == 2)
  }

  @Test("A loop over a sequence that another loop has left receives nothing") func leftLoop() async throws {
    let fake = FakeSocketSession()
    let (socket, _, stream) = try await fake.connected()
    let messages = socket.webSocketTask().streamingMessages(automaticallyCancelling: false)
    func arrive(_ texts: String...) async {
      stream.send(texts.reduce(into: Data()) { $0 += serverFrame(0x81, Array($1.utf8)) })
      await stream.settle()
    }
    await arrive("with the first one", "with the first one, too")
    await arrive("before the loop")
    for await _ in messages { break }
    await arrive("after the loop")
    var late: [SocketEvent] = []
    for await message in messages { if case .string(let text) = message { late.append(.text(text)) } }
    #expect(late == [])
    #expect(!socket.isCancelled)
    socket.cancel()
  }

  @Test("Cancelling the closing handshake drops the backlog, the handshake itself does not")
  func closing() async throws {
    for cancels in [false, true] {
      let fake = FakeSocketSession()
      let (socket, _, stream) = try await fake.connected()
      let (events, gate) = stopped(socket, on: queue)
      stream.send(Self.messages)
      await events.wait(for: 1)
      socket.close(sending: WebSocketCloseCode.goingAway)
      if cancels { socket.cancel() } else { stream.send(closeFrame(1001), isLast: true) }
      gate.signal()
      let expected = cancels ? 2 : 502
      let all = await events.wait(for: expected)
      #expect(
        all.count == expected && all.last == (cancels ? .cancelled : .completed(nil)), "\(all.suffix(3))")
    }
  }

  @Test("The completion of send comes before the answer to the message, on one queue") func order()
    async throws
  {
    let server = try HTTPTestServer.webSocket { try $0.echo() }
    let socket = Session.forSockets().webSocketRequest(to: server.socketURL())
    let (order, done) = (Recorder<String>(), Recorder<Bool>())
    let queue = queue
    @Sendable func send(_ number: Int) {
      socket.send(.string("\(number)"), queue: queue) { _ in order.add("sent \(number)") }
    }
    socket.streamMessageEvents(on: queue) { event in
      switch event.kind {
      // The handler is busy while the answer arrives, so that both wait for it.
      case .connected: for number in 1...50 { send(number) }
      case .receivedMessage(.string(let text)):
        order.add("answer \(text)")
        if let number = Int(text), number < 1000 { send(number + 50) } else { event.cancel() }
      case .completed: done.add(true)
      default: break
      }
    }
    await done.wait(for: 1)
    let seen = order.values
    for number in 1...999 {
      let (sent, answer) = (seen.firstIndex(of: "sent \(number)"), seen.firstIndex(of: "answer \(number)"))
      if let answer { #expect((sent ?? .max) < answer, "message \(number)") }
    }
    #expect(seen.contains("answer 1000"))
  }

  @Test("A completion that was queued while a handler runs comes before the answer") func orderWhileBusy()
    async throws
  {
    let fake = FakeSocketSession()
    let (socket, _, stream) = try await fake.connected()
    let (events, gate) = stopped(socket, on: queue)
    let order = Recorder<String>()
    socket.streamMessages(on: queue) { message in if case .string(let text) = message { order.add(text) } }
    stream.send(serverFrame(0x81, Array("1".utf8)))
    await events.wait(for: 1)
    // The queue is busy: the completion is queued first, then the answer.
    socket.send(.string("question"), queue: queue) { _ in order.add("sent") }
    _ = await stream.events(count: 1)
    await stream.settle()
    stream.send(serverFrame(0x81, Array("answer".utf8)))
    await stream.settle()
    gate.signal()
    #expect(await order.wait(for: 3) == ["1", "sent", "answer"])
    socket.cancel()
  }

  @Test("Messages that were processed make room for later ones, however many there were") func room()
    async throws
  {
    let fake = FakeSocketSession()
    let socket = fake.session.webSocketRequest(to: "ws://a.test/")
    let events = socket.recorded(on: queue)
    let stream = try await fake.streams.streams.value(0)
    try await stream.accept()
    #expect(await eventually { stream.readCount >= 2 })
    // Text and bytes, which take more memory in total than unprocessed messages may.
    let pair = serverFrame(0x81, [0x78]) + serverFrame(0x82, [1])
    let batch = (0..<1000).reduce(into: Data()) { batch, _ in batch += pair }
    for round in 1...20 {
      stream.send(batch)
      await stream.settle()
      queue.sync {}
      try #require(events.count == 1 + round * 2000, "round \(round)")
    }
    #expect(events.values.suffix(2) == [.text("x"), .data(Data([1]))])
    socket.cancel()
  }

  // MARK: Pings

  @Test("A pong answers its ping and earlier ones, but no later one") func pongs() async throws {
    let fake = FakeSocketSession()
    let (socket, _, stream) = try await fake.connected()
    let answers = Recorder<Int>()
    for number in 1...4 {
      socket.sendPing(respondingOn: queue) { response in
        if case .pong = response { answers.add(number) } else { answers.add(-number) }
      }
    }
    let pings = await stream.events(count: 4).compactMap { event -> Data? in
      if case .ping(let payload) = event { payload } else { nil }
    }
    #expect(Set(pings).count == 4, "each ping has its own payload")
    // Pongs that answer no ping.
    stream.send(
      serverFrame(0x8A) + serverFrame(0x8A, [1]) + serverFrame(0x8A, [UInt8](repeating: 9, count: 8)))
    // Each step is awaited by the stream and the queue, so that an answer that is missing ends no wait.
    func answered(_ pongs: Int...) async -> [Int] {
      stream.send(pongs.reduce(into: Data()) { $0 += serverFrame(0x8A, Array(pings[$1 - 1])) })
      await stream.settle()
      queue.sync {}
      return answers.values
    }
    #expect(await answered(2) == [1, 2])
    #expect(await answered(1, 3) == [1, 2, 3])
    #expect(await answered(3) == [1, 2, 3])
    socket.cancel()
    #expect(await answers.wait(for: 4).last == -4)
  }

  @Test("All pings of one read are answered, in their order") func pingsOfOneRead() async throws {
    let fake = FakeSocketSession()
    let (socket, events, stream) = try await fake.connected()
    let payloads = (0..<500).map { [UInt8]("payload \($0)".utf8) }
    stream.send(payloads.reduce(into: Data()) { $0 += serverFrame(0x89, $1) } + serverFrame(0x81, [0x78]))
    await events.wait(for: 2)
    #expect(await stream.events(count: 500) == payloads.map { .pong(Data($0)) })
    socket.cancel()
  }

  // MARK: The handshake

  @Test("A response to the handshake that does not end is ended by its limit of time") func unfinishedHead()
    async throws
  {
    let server = try StreamTestServer { connection in
      _ = try connection.read()
      try connection.write("HTTP/1.1 101 Switching Protocols\r\nX: y\r\n")
      _ = try connection.readToEnd()
    }
    let session = Session.forSockets(timeout: 0.5)
    let socket = session.webSocketRequest(to: "ws://127.0.0.1:\(server.port)/")
    #expect(await socket.events() == [.completed(.timedOut)])
    #expect(socket.error?.localizedDescription.contains("0.5 seconds (timeoutIntervalForRequest)") == true)
  }

  @Test("Each read of the handshake has the time that is left") func timeLeft() async throws {
    let fake = FakeSocketSession()
    let socket = fake.session.webSocketRequest(to: "ws://a.test/")
    let events = socket.recorded()
    let stream = try await fake.streams.streams.value(0)
    let head = try await stream.acceptance()
    for (index, byte) in head.utf8.prefix(20).enumerated() {
      // A byte for each read.
      await stream.timeouts.wait(for: index + 1)
      stream.send(Data([byte]))
    }
    await stream.timeouts.wait(for: 21)
    stream.send(Data(head.utf8.dropFirst(20)))
    await events.wait(for: 1)
    let timeouts = stream.timeouts.values.prefix(20).compactMap { $0 }
    #expect(timeouts.count == 20 && timeouts.allSatisfy { $0 <= .seconds(60) })
    #expect(zip(timeouts, timeouts.dropFirst()).allSatisfy { $0 > $1 }, "\(timeouts)")
    // The connection itself has no such limit.
    _ = await eventually { stream.timeouts.values.last == .some(nil) }
    #expect(stream.timeouts.values.last == .some(nil))
    socket.cancel()
  }

  @Test("The time in which the request is suspended is left for the handshake") func suspendedTime()
    async throws
  {
    let fake = FakeSocketSession()
    let start = ContinuousClock.now
    let socket = fake.session.webSocketRequest(to: "ws://a.test/")
    let events = socket.recorded()
    let stream = try await fake.streams.streams.value(0)
    let head = try await stream.acceptance()
    await stream.timeouts.wait(for: 1)
    socket.suspend()
    #expect(await eventually { stream.isSuspended })
    let held = ContinuousClock.now
    _ = await eventually { held.duration(to: .now) > .milliseconds(300) }
    let pause = held.duration(to: .now)
    socket.resume()
    stream.send(Data(head.utf8.prefix(1)))
    let left = try #require(try await stream.timeouts.value(1))
    // Whatever a busy machine takes is counted, but not the pause.
    #expect(.seconds(60) - left <= start.duration(to: .now) - pause)
    socket.cancel()
    #expect(await events.wait(for: 1) == [.cancelled])
  }

  @Test("The time of a suspended request does not pass") func suspendedHandshake() async throws {
    let server = try StreamTestServer { connection in
      let head = try connection.read()
      try connection.write("HTTP/1.1 403 Forbidden\r\n")
      _ = head
      try connection.stall()
    }
    let session = Session.forSockets(timeout: 2)
    // A busy machine may need longer than the timeout until the request is suspended.
    for attempt in 1...10 {
      let received = server.receivedByteCount
      let start = ContinuousClock.now
      let socket = session.webSocketRequest(to: "ws://127.0.0.1:\(server.port)/")
      let events = socket.recorded()
      _ = await eventually { server.receivedByteCount > received }
      socket.suspend()
      let pause = ContinuousClock.now
      guard start.duration(to: pause) < .milliseconds(1500) || attempt == 10 else {
        socket.cancel()
        continue
      }
      _ = await eventually { pause.duration(to: .now) > .milliseconds(2500) }
      #expect(events.count == 0)
      socket.resume()
      #expect(await events.wait(for: 1) == [.completed(.timedOut)])
      return
    }
  }
}
