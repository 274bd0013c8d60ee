import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@Suite("Unsent messages of WebSocket requests", .timeLimit(.minutes(5))) struct WebSocketUnsentTests {
  private static let message = URLSessionWebSocketTask.Message.data(Data(count: 600_000))

  private static let configuration: WebSocketRequest.Configuration = {
    var configuration = WebSocketRequest.Configuration.default
    configuration.maximumUnsentSize = 1_000_000
    return configuration
  }()

  /// Sends messages and records the code of each error, or `nil`.
  private func send(_ count: Int, over socket: WebSocketRequest) -> Recorder<URLError.Code?> {
    let results = Recorder<URLError.Code?>()
    for _ in 0..<count {
      socket.send(Self.message, queue: .global()) { result in
        guard case .failure(let error) = result else { return results.add(nil) }
        results.add(error.asAFError?.transferCode)
      }
    }
    return results
  }

  @Test("A message above the limit is refused, and one after the others were sent is not")
  func connected() async throws {
    let fake = FakeSocketSession()
    let (socket, _, stream) = try await fake.connected(Self.configuration)
    stream.holdWrites()
    let first = send(1, over: socket)
    // The write of the first 262,144 bytes.
    _ = try await stream.writes.value(1)
    // The fourth message finds 1,800,000 bytes, of which 262,144 are being written.
    let results = send(3, over: socket)
    #expect(await results.wait(for: 1) == [.dataLengthExceedsMaximum])
    stream.finishWrites()
    #expect(await first.wait(for: 1) == [nil])
    #expect(await results.wait(for: 3).dropFirst() == [nil, nil])
    #expect(await send(1, over: socket).wait(for: 1) == [nil])
    #expect(stream.events.count == 4)
    socket.cancel()
  }

  @Test("Many small messages are limited by their memory")
  func small() async throws {
    let fake = FakeSocketSession()
    let (socket, _, stream) = try await fake.connected(Self.configuration)
    stream.holdWrites()
    let results = Recorder<URLError.Code?>()
    for _ in 0..<20_000 {
      socket.send(.data(Data()), queue: .global()) { result in
        if case .failure(let error) = result { results.add(error.asAFError?.transferCode) }
      }
    }
    #expect(await results.wait(for: 1).first == .dataLengthExceedsMaximum)
    socket.cancel()
  }

  @Test("Messages that wait for a connection are limited as well", arguments: [false, true])
  func waiting(isResumed: Bool) async throws {
    let fake = FakeSocketSession()
    let socket = fake.session.webSocketRequest(to: "ws://a.test/", configuration: Self.configuration)
    if isResumed { socket.resume() }
    let results = send(3, over: socket)
    #expect(await results.wait(for: 1) == [.dataLengthExceedsMaximum])
    socket.resume()
    let stream = try await fake.streams.streams.value(0)
    try await stream.accept()
    #expect(await results.wait(for: 3).dropFirst() == [nil, nil])
    socket.cancel()
  }

  @Test("A refused message without a handler ends the request", arguments: [false, true])
  func withoutHandler(isConnected: Bool) async throws {
    let fake = FakeSocketSession()
    let socket = fake.session.webSocketRequest(to: "ws://a.test/", configuration: Self.configuration)
    if isConnected {
      let events = socket.recorded()
      let stream = try await fake.streams.streams.value(0)
      try await stream.accept()
      await events.wait(for: 1)
      stream.holdWrites()
    }
    for _ in 0..<4 { socket.send(Self.message) }
    #expect(await socket.events().last == .completed(.dataLengthExceedsMaximum))
    #expect(socket.error?.localizedDescription.contains("not sent yet") == true)
  }

  @Test("The task of a request that waits to be resumed ends with the error of a refused message")
  func waitingTask() async {
    let created = Recorder<Bool>()
    let codes = Recorder<URLError.Code?>()
    let monitor = ClosureEventMonitor(queue: DispatchQueue(label: "test.monitor"))
    monitor.requestDidCreateTask = { _, _ in created.add(true) }
    monitor.taskDidComplete = { _, _, error in codes.add((error as? URLError)?.code) }
    let session = Session.retained(
      fake: FakeTransport(), startRequestsImmediately: false, requestSetup: .eager,
      observers: SessionObservers(eventMonitors: [monitor]))
    let sockets = (0..<2).map { _ in
      session.webSocketRequest(to: "ws://a.test/", configuration: Self.configuration)
    }
    await created.wait(for: 2)
    for _ in 0..<3 { sockets[0].send(Self.message) }
    #expect(sockets[0].isCancelled, "by the refused message")
    #expect(await codes.wait(for: 1) == [.dataLengthExceedsMaximum])
    sockets[1].cancel()
    #expect(await codes.wait(for: 2).last == .cancelled)
  }

  @Test("The async form waits instead of an error")
  func waits() async throws {
    let fake = FakeSocketSession()
    let (socket, _, stream) = try await fake.connected(Self.configuration)
    stream.holdWrites()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<5 { group.addTask { try await socket.webSocketTask().send(Self.message) } }
      await stream.writes.wait(for: 2)
      stream.finishWrites()
      try await group.waitForAll()
    }
    #expect(stream.events.count == 5)
    socket.cancel()
  }

  @Test("A request that is released before it starts fails its messages, and nothing retains it")
  func released() async throws {
    let fake = FakeSocketSession()
    weak var released: WebSocketRequest?
    let results: Recorder<URLError.Code?>
    do {
      let socket = fake.session.webSocketRequest(to: "ws://a.test/", shouldAutomaticallyResume: false)
      released = socket
      results = send(1, over: socket)
      let waiting = Task { try await socket.webSocketTask().send(Self.message) }
      waiting.cancel()
      await #expect(throws: AFError.self) { try await waiting.value }
    }
    #expect(await results.wait(for: 1).count == 1)
    #expect(await eventually { released == nil })
    #expect(fake.streams.streams.count == 0)
  }

  @Test(
    "After a failed write messages fail at once, and what the server sent before is delivered",
    arguments: [false, true])
  func failedWrite(hasClosure: Bool) async throws {
    let fake = FakeSocketSession()
    let (socket, events, stream) = try await fake.connected()
    stream.failWrites()
    for _ in 0..<2 { #expect(await send(1, over: socket).wait(for: 1) == [.networkConnectionLost]) }
    let pings = Recorder<Bool>()
    socket.sendPing(respondingOn: .global()) { response in
      if case .error = response { pings.add(true) } else { pings.add(false) }
    }
    #expect(await pings.wait(for: 1) == [true])
    #expect(events.values == [.connected(nil)] && stream.ends.count == 0)
    stream.send(serverFrame(0x81, [0x61]) + (hasClosure ? closeFrame(1008) : Data()), isLast: true)
    stream.fail()
    let end: [SocketEvent] =
      hasClosure ? [.disconnected(1008, nil), .completed(nil)] : [.completed(.networkConnectionLost)]
    #expect(await events.wait(for: 2 + end.count) == [.connected(nil), .text("a")] + end)
  }

  @Test("After a failed write a closure waits for the server's Close frame alone")
  func closureAfterFailedWrite() async throws {
    var configuration = WebSocketRequest.Configuration.default
    configuration.closeTimeout = .milliseconds(1)
    let fake = FakeSocketSession()
    let (socket, events, stream) = try await fake.connected(configuration)
    stream.failWrites()
    #expect(await send(1, over: socket).wait(for: 1) == [.networkConnectionLost])
    socket.close(sending: .goingAway)
    #expect(await events.wait(for: 2) == [.connected(nil), .completed(.timedOut)])
  }

  @Test("A closure of a finished request does not close the connection of its next run")
  func closureBetweenRuns() async throws {
    let fake = FakeSocketSession()
    let socket = fake.session.webSocketRequest(to: "ws://a.test/")
    let first = socket.recorded()
    let refused = try await fake.streams.streams.value(0)
    await refused.writes.wait(for: 1)
    refused.fail()
    #expect(await first.wait(for: 1) == [.completed(.networkConnectionLost)])
    socket.close(sending: .goingAway)
    #expect(socket.isFinished)
    fake.session.retryRequest(socket, withDelay: nil)
    let stream = try await fake.streams.streams.value(1)
    try await stream.accept()
    socket.send(.string("next"))
    #expect(await stream.events(count: 1) == [.message(.text("next"))])
    socket.cancel()
  }

  @Test("Messages wait for the connection with which a retrier replaces a lost one")
  func lostConnection() async throws {
    let fake = FakeSocketSession(interceptor: SpyInterceptor(retries: 1))
    let (socket, _, lost) = try await fake.connected()
    defer { socket.cancel() }
    socket.send(.string("one"))
    #expect(await lost.events(count: 1) == [.message(.text("one"))])
    lost.fail()
    let stream = try await fake.streams.streams.value(1)
    let results = send(1, over: socket)
    try await stream.accept()
    try #require(await results.wait(for: 1) == [nil], "the message was refused instead of queued")
    #expect(await stream.events(count: 1).count == 1)
  }

  @Test("A message after a closure that waits for a connection is not sent") func messageAfterClosure()
    async throws
  {
    let fake = FakeSocketSession()
    let socket = fake.session.webSocketRequest(to: "ws://a.test/")
    socket.resume()
    let stream = try await fake.streams.streams.value(0)
    socket.send(.string("earlier"))
    socket.close(sending: .goingAway)
    let results = send(1, over: socket)
    try await stream.accept()
    #expect(await results.wait(for: 1) == [.networkConnectionLost], "as over an open connection")
    #expect(
      await stream.events(count: 2) == [
        .message(.text("earlier")), .closed(WebSocketClosure(code: .goingAway)),
      ])
    socket.cancel()
  }

  @Test("The first of two closures that wait for a connection counts")
  func closures() async throws {
    let fake = FakeSocketSession()
    let socket = fake.session.webSocketRequest(to: "ws://a.test/")
    socket.resume()
    let stream = try await fake.streams.streams.value(0)
    socket.close(sending: .goingAway, reason: Data("first".utf8))
    socket.close(sending: .normalClosure)
    try await stream.accept()
    #expect(await eventually { stream.writes.count > 1 }, "no Close frame is sent")
    let closure = stream.writes.values.dropFirst().reduce(into: Data()) { $0 += $1 }
    // The mask of a client's frame hides its bytes, and the length tells which closure it is.
    #expect(closure.first == 0x88 && closure.dropFirst().first == 0x80 | 7)
    socket.cancel()
  }
}
