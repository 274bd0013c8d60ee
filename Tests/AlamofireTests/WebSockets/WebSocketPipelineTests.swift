import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

/// WebSocket requests over a stream that the test serves, so that each order of events can be chosen.
@Suite("WebSocket requests over a fake stream", .timeLimit(.minutes(5))) struct WebSocketPipelineTests {
  private static let hello = serverFrame(0x81, Array("hello".utf8))
  private static let ended: [SocketEvent] = [.disconnected(1000, nil), .completed(nil)]

  @Test("The stream connects by the rules of tunnels", arguments: [false, true])
  func connection(isSecure: Bool) async throws {
    let fake = FakeSocketSession()
    let socket = fake.session.webSocketRequest(to: "\(isSecure ? "wss" : "ws")://ann:pw@a.test/chat?x#y")
    let events = socket.recorded()
    let stream = try await fake.streams.streams.value(0)
    let head = String(decoding: try await stream.writes.value(0), as: UTF8.self)
    #expect(head.hasPrefix("GET /chat?x HTTP/1.1\r\nHost: a.test\r\n") && head.hasSuffix("\r\n\r\n"))
    #expect(!head.contains("Accept-Encoding") && !head.contains("pw@"))
    #expect(stream.isSecure == isSecure)
    let (scheme, port) = isSecure ? ("https", 443) : ("http", 80)
    #expect(stream.request.origin == Origin(scheme: scheme, host: "a.test", port: port))
    #expect(stream.request.fields.isEmpty)
    try await stream.accept(then: closeFrame())
    #expect(await events.wait(for: 3) == [.connected(nil)] + Self.ended)
    #expect(await stream.ends.wait(for: 1).count == 1)
  }

  @Test(
    "The response and the frames after it arrive in chunks of any size", arguments: [1, 2, 3, 7, 64, 4096])
  func chunks(size: Int) async throws {
    let fake = FakeSocketSession()
    let socket = fake.session.webSocketRequest(to: "ws://a.test/")
    let events = socket.recorded()
    let stream = try await fake.streams.streams.value(0)
    let text = String(repeating: "grüße 👋 ", count: 40)
    var bytes = Data("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".utf8)
    bytes += Data(try await stream.acceptance(fields: "X: y\r\n").utf8)
    bytes += Self.hello + serverFrame(0x89, [1, 2]) + serverFrame(0x01, Array(text.utf8.prefix(5)))
    bytes += serverFrame(0x8A) + serverFrame(0x80, Array(text.utf8.dropFirst(5)))
    bytes += serverFrame(0x82, [UInt8](repeating: 9, count: 700)) + closeFrame(4001, "moved")
    for start in stride(from: 0, to: bytes.count, by: size) {
      stream.send(bytes[start..<min(start + size, bytes.count)])
    }
    #expect(
      await events.wait(for: 6) == [
        .connected(nil), .text("hello"), .text(text), .data(Data(repeating: 9, count: 700)),
        .disconnected(4001, "moved"), .completed(nil),
      ])
    #expect(stream.events == [.pong(Data([1, 2])), .closed(WebSocketClosure(code: .init(rawValue: 4001)))])
  }

  @Test("One write is under way at a time, and later messages gather")
  func writes() async throws {
    let fake = FakeSocketSession()
    let (socket, _, stream) = try await fake.connected()
    stream.holdWrites()
    let completed = Recorder<Int>()
    for index in 0..<100 {
      socket.send(.string("\(index)"), queue: DispatchQueue(label: "test")) { result in
        if case .success = result { completed.add(index) }
      }
      if index == 0 { await stream.writes.wait(for: 2) }
    }
    await stream.settle()
    #expect(stream.writes.count == 2 && completed.count == 0)
    stream.finishWrites()
    await stream.writes.wait(for: 3)
    #expect(await completed.wait(for: 100).sorted() == Array(0..<100))
    #expect(stream.events == (0..<100).map { .message(.text("\($0)")) })
    #expect(stream.writes.count == 3)
    socket.cancel()
  }

  @Test("Messages that are sent before the stream writes are one write")
  func oneTurn() async throws {
    let fake = FakeSocketSession()
    let (socket, _, stream) = try await fake.connected()
    stream.pause()
    for index in 0..<10 { socket.send(.string("\(index)")) }
    stream.unpause()
    await stream.writes.wait(for: 2)
    await stream.settle()
    #expect(stream.events == (0..<10).map { .message(.text("\($0)")) })
    #expect(stream.writes.count == 2)
    socket.cancel()
  }

  @Test("A large message is written in pieces, and completes after the last one")
  func largeMessage() async throws {
    let fake = FakeSocketSession()
    let (socket, _, stream) = try await fake.connected()
    stream.holdWrites()
    let completed = Recorder<Int>()
    let queue = DispatchQueue(label: "test")
    let data = Data((0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 >> 5) })
    socket.send(.data(data), queue: queue) { _ in completed.add(1) }
    socket.send(.string("small"))
    socket.send(.string("last"), queue: queue) { _ in completed.add(2) }
    // The first write is the handshake. Four pieces follow it, the last with the small messages.
    for count in 2...5 {
      await stream.writes.wait(for: count)
      await stream.settle()
      #expect(stream.writes.count == count && completed.count == 0)
      stream.finishWrites(holdsNext: count < 5)
    }
    #expect(await completed.wait(for: 2) == [1, 2])
    #expect(stream.writes.values.allSatisfy { $0.count <= 262_144 + 100 })
    #expect(stream.events == [.message(.binary(data)), .message(.text("small")), .message(.text("last"))])
    socket.cancel()
  }

  @Test("Sends that were not written complete with the error, once each")
  func failedWrites() async throws {
    let fake = FakeSocketSession()
    let (socket, events, stream) = try await fake.connected()
    stream.holdWrites()
    let failed = Recorder<URLError.Code?>()
    for _ in 0..<50 {
      socket.send(.string("x"), queue: .global()) { result in
        guard case .failure(let error) = result else { return failed.add(nil) }
        failed.add((error as? AFError)?.transferCode)
      }
    }
    await stream.writes.wait(for: 2)
    stream.fail()
    #expect(await failed.wait(for: 50).allSatisfy { $0 == .networkConnectionLost })
    #expect(await events.wait(for: 2).last == .completed(.networkConnectionLost))
    await stream.settle()
    #expect(failed.count == 50)
  }

  @Test("No message is read while a mebibyte of messages is unprocessed")
  func backPressure() async throws {
    let fake = FakeSocketSession()
    let socket = fake.session.webSocketRequest(to: "ws://a.test/")
    var messages = socket.webSocketTask().streamingMessages().makeAsyncIterator()
    let stream = try await fake.streams.streams.value(0)
    try await stream.accept()
    let frame = serverFrame(0x82, [UInt8](repeating: 1, count: 65_000))
    for _ in 0..<100 { stream.send(frame) }
    var count = 0
    _ = await eventually {
      defer { count = stream.readCount }
      return stream.readCount > 10 && stream.readCount == count
    }
    await stream.settle()
    // Some reads are for the response, and the last message may exceed the limit.
    #expect(stream.readCount < 25)
    // The second call gives the first message back.
    let before = stream.readCount
    for _ in 0..<2 { #expect(await messages.next() != nil) }
    await stream.settle()
    try #require(stream.readCount > before, "reading continues as soon as there is room")
    for _ in 2..<100 { #expect(await messages.next() != nil) }
    #expect(stream.readCount >= 99)
    stream.send(closeFrame())
    #expect(await messages.next() == nil)
  }

  @Test("Pings of a server that reads nothing take no memory")
  func pingFlood() async throws {
    let fake = FakeSocketSession()
    let (socket, events, stream) = try await fake.connected()
    stream.holdWrites()
    socket.send(.string("first"))
    await stream.writes.wait(for: 2)
    for index in 0..<20_000 {
      let number = withUnsafeBytes(of: UInt32(index).bigEndian) { Array($0) }
      stream.send(serverFrame(0x89, number + [UInt8](repeating: 0, count: 121)))
    }
    stream.send(Self.hello)
    let last = Data(withUnsafeBytes(of: UInt32(19_999).bigEndian) { Array($0) }) + Data(count: 121)
    // It arrives after all pings.
    #expect(await events.wait(for: 2).last == .text("hello"))
    #expect(stream.writes.count == 2)
    stream.finishWrites()
    _ = await eventually { stream.events.contains(.pong(last)) }
    let answers = stream.events
    #expect(answers.first == .message(.text("first")) && answers.last == .pong(last))
    // At most 256 KiB of answers, of 131 bytes each.
    #expect(answers.count <= 262_144 / 131 + 1)
    socket.cancel()
  }

  // MARK: The end at each moment

  enum Moment: CaseIterable { case connecting, waiting, accepted, sending, closing, closed }

  /// Leads a connection to a moment.
  private func reach(
    _ moment: Moment, _ fake: FakeSocketSession
  ) async throws -> (WebSocketRequest, Recorder<SocketEvent>, FakeByteStream) {
    var configuration = WebSocketRequest.Configuration.default
    configuration.closeTimeout = .seconds(3600)
    guard moment != .connecting, moment != .waiting else {
      let socket = fake.session.webSocketRequest(to: "ws://a.test/", configuration: configuration)
      let events = socket.recorded()
      let stream = try await fake.streams.streams.value(0)
      if moment == .waiting { await stream.writes.wait(for: 1) }
      return (socket, events, stream)
    }
    let (socket, events, stream) = try await fake.connected(configuration)
    switch moment {
    case .sending:
      stream.holdWrites()
      for _ in 0..<3 { socket.send(.string("x")) }
      await stream.writes.wait(for: 2)
    case .closing, .closed:
      socket.close(sending: .goingAway)
      _ = await stream.events(count: 1)
      guard moment == .closed else { break }
      stream.send(closeFrame(1001))
      await events.wait(for: 2)
    case .connecting, .waiting, .accepted: break
    }
    return (socket, events, stream)
  }

  @Test("Cancelling ends the stream at once", arguments: Moment.allCases)
  func cancellation(moment: Moment) async throws {
    let fake = FakeSocketSession()
    let (socket, events, stream) = try await reach(moment, fake)
    socket.cancel()
    _ = await eventually { socket.error != nil || events.values.last == .completed(nil) }
    await stream.ends.wait(for: 1)
    let last: SocketEvent = moment == .closed ? .completed(nil) : .cancelled
    _ = await eventually { events.values.last == last }
    #expect(events.values.last == last)
    #expect(events.values.filter { $0 == .cancelled || $0 == .completed(nil) }.count == 1)
    #expect(stream.ends.values.count == 1)
  }

  /// The progress of a request when its task is cancelled.
  enum Wait: CaseIterable { case attempt, start, connection, resumption, answer }

  @Test("A task that is cancelled while it waits never opens its connection", arguments: Wait.allCases)
  func cancelledWait(wait: Wait) async throws {
    let starting = Mutex<WebSocketTask?>(nil)
    let fake = FakeByteStreams { starting.withLock { $0 }?.cancel() }
    let socket = Session.forFakeSockets(fake, TransportOptions(), nil)
      .webSocketRequest(to: "ws://a.test/", shouldAutomaticallyResume: wait != .attempt)
    let task = socket.webSocketTask()
    // The request is cancelled before it can refuse to start.
    if wait == .start { starting.withLock { $0 = task } }
    let events = socket.recorded()
    guard wait != .attempt else {
      task.cancel()
      #expect(await events.wait(for: 1) == [.cancelled])
      #expect(fake.streams.count == 0)
      return
    }
    let stream = try await fake.streams.value(0)
    if wait == .answer { await stream.writes.wait(for: 1) }
    if wait == .resumption { task.suspend() }
    if wait != .start { task.cancel() }
    // A request that goes on sends its handshake.
    #expect(await eventually { stream.ends.count > 0 || (wait == .start && stream.writes.count > 0) })
    try #require(stream.ends.values == [.cancelled])
    if wait == .start { #expect(stream.writes.count == 0) }
    if stream.writes.count > 0 { try await stream.accept() }
    await stream.settle()
    #expect(await events.wait(for: 1) == [.cancelled])
    #expect(socket.isCancelled && fake.streams.count == 1)
  }

  @Test("A lost connection ends the request", arguments: Moment.allCases)
  func loss(moment: Moment) async throws {
    let fake = FakeSocketSession()
    let (_, events, stream) = try await reach(moment, fake)
    stream.fail()
    let last: SocketEvent = moment == .closed ? .completed(nil) : .completed(.networkConnectionLost)
    _ = await eventually { events.values.last == last }
    #expect(events.values.last == last)
  }

  @Test("The end of the stream ends the request", arguments: Moment.allCases)
  func end(moment: Moment) async throws {
    let fake = FakeSocketSession()
    let (_, events, stream) = try await reach(moment, fake)
    stream.send(Data(), isLast: true)
    if moment == .sending { stream.finishWrites() }
    let last: SocketEvent = moment == .closed ? .completed(nil) : .completed(.networkConnectionLost)
    _ = await eventually { events.values.last == last }
    #expect(events.values.last == last)
    #expect(await stream.ends.wait(for: 1).count == 1)
  }

  @Test("Suspending suspends the stream", arguments: [Moment.waiting, .accepted])
  func suspension(moment: Moment) async throws {
    let fake = FakeSocketSession()
    let (socket, events, stream) = try await reach(moment, fake)
    socket.suspend()
    _ = await eventually { stream.isSuspended }
    if moment == .waiting { try await stream.accept(then: Self.hello) } else { stream.send(Self.hello) }
    await stream.settle()
    #expect(events.values == (moment == .waiting ? [] : [.connected(nil)]))
    socket.resume()
    #expect(await events.wait(for: 2) == [.connected(nil), .text("hello")])
    socket.cancel()
  }
}
