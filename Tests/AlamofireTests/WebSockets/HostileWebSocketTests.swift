import Alamofire
import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Scenarios
import Synchronization
import Testing

/// Servers that violate the protocol, and callers that use a request from many threads.
@Suite("Hostile WebSocket servers", .timeLimit(.minutes(5))) struct HostileWebSocketTests {
  private func opened(
    _ configuration: WebSocketRequest.Configuration = .default, fields: String = ""
  ) async throws -> (FakeSocketSession, WebSocketRequest, Recorder<SocketEvent>, FakeByteStream) {
    let fake = FakeSocketSession()
    let socket = fake.session.webSocketRequest(to: "ws://a.test/", configuration: configuration)
    let events = socket.recorded()
    let stream = try await fake.streams.streams.value(0)
    try await stream.accept(fields: fields)
    return (fake, socket, events, stream)
  }

  // MARK: The handshake

  private func outcome(of response: String, repeating rest: String = "") async throws -> [SocketEvent] {
    let fake = FakeSocketSession()
    let socket = fake.session.webSocketRequest(to: "ws://a.test/")
    let events = socket.recorded()
    let stream = try await fake.streams.streams.value(0)
    let head = try await stream.acceptance()
    let accept = head.split(separator: "\r\n").first { $0.hasPrefix("Sec-WebSocket-Accept") } ?? ""
    stream.send(Data(response.replacingOccurrences(of: "$accept", with: accept).utf8))
    if !rest.isEmpty {
      let block = Data(String(repeating: rest, count: 2000).utf8)
      while stream.ends.count == 0 {
        stream.send(block)
        await stream.settle()
      }
    }
    _ = await eventually { !events.values.isEmpty }
    await stream.ends.wait(for: 1)
    return events.values
  }

  @Test(
    "An invalid handshake ends the request and the connection",
    arguments: [
      "Upgrade: websocket\r\nConnection: Upgrade\r\n",
      "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: \r\n",
      "Upgrade: websocket\r\nConnection: Upgrade\r\n$accept\r\n$accept\r\n",
      "Upgrade: websocket\r\nConnection: Upgrade\r\n$accept, x\r\n",
      "Connection: Upgrade\r\n$accept\r\n", "Upgrade: websocket\r\n$accept\r\n",
      "Upgrade: websocket\r\nConnection: Upgrade\r\n$accept\r\nSec-WebSocket-Protocol: a\r\n",
      "Upgrade: websocket\r\nConnection: Upgrade\r\n$accept\r\nSec-WebSocket-Extensions: permessage-deflate\r\n",
      "Upgrade: websocket\r\nConnection: Upgrade\r\n$accept\r\nSec-WebSocket-Extensions: ,;\r\n",
      "Upgrade: websocket\r\nConnection: Upgrade\r\n$accept\r\n folded\r\n",
    ])
  func invalidHandshake(fields: String) async throws {
    let events = try await outcome(of: "HTTP/1.1 101 Switching Protocols\r\n\(fields)\r\n")
    #expect(events == [.completed(.badServerResponse)])
  }

  @Test("Another version of HTTP is refused", arguments: ["HTTP/1.0", "HTTP/2", "HTTP/1.1x", "ICY"])
  func version(text: String) async throws {
    let fields = "Upgrade: websocket\r\nConnection: Upgrade\r\n$accept\r\n"
    #expect(try await outcome(of: "\(text) 101 X\r\n\(fields)\r\n") == [.completed(.badServerResponse)])
  }

  @Test(
    "A head or heads without an end are refused at the limit",
    arguments: [
      ["HTTP/1.1 101 Switching Protocols\r\n", "X-Field: value\r\n"], ["HTTP/1.1 101 ", "reason "],
      ["", "HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"], ["HTTP/1.1 101 X\r\nName: ", "value"],
    ])
  func endlessHead(parts: [String]) async throws {
    #expect(try await outcome(of: parts[0], repeating: parts[1]) == [.completed(.dataLengthExceedsMaximum)])
  }

  @Test(
    "The body of a refusal is read up to a limit",
    arguments: [
      ["\r\n", "rest of the body "], ["Content-Length: 9223372036854775807\r\n\r\n", "rest of the body "],
      ["Transfer-Encoding: chunked\r\n\r\n", "4\r\nbody\r\n"],
    ])
  func endlessBody(parts: [String]) async throws {
    let events = try await outcome(of: "HTTP/1.1 403 Forbidden\r\n" + parts[0], repeating: parts[1])
    #expect(events == [.completed(.badServerResponse)])
  }

  @Test(
    "A refusal whose body is cut off is not shown as complete",
    arguments: [
      ("Content-Length: 4\r\n\r\nrest", [SocketEvent.completed(.badServerResponse)]),
      ("Content-Length: 9\r\n\r\nrest", [SocketEvent.completed(.networkConnectionLost)]),
      ("Transfer-Encoding: chunked\r\n\r\n4\r\nrest\r\n", [.completed(.networkConnectionLost)]),
      ("\r\nrest", [.completed(.badServerResponse)]),
    ])
  func cutOffRefusal(rest: String, expected: [SocketEvent]) async throws {
    let server = try StreamTestServer { connection in
      _ = try connection.read()
      try connection.write("HTTP/1.1 403 Forbidden\r\n" + rest)
    }
    let events = Session.forSockets().webSocketRequest(to: "ws://127.0.0.1:\(server.port)/").recorded()
    #expect(await events.wait(for: 1) == expected)
  }

  // MARK: Frames

  /// Frames that violate the protocol, by the code of the answer.
  private static let violations: [Int: [[UInt8]]] = [
    1002: [
      // Reserved bits and opcodes.
      [0xC1, 0], [0xA1, 0], [0x91, 0], [0xF1, 0], [0x83, 0], [0x87, 0], [0x8B, 0], [0x8F, 0],
      // A masked frame, and fragments out of order.
      [0x81, 0x81, 1, 2, 3, 4, 0x60], [0x80, 0], [0x00, 0], [0x01, 0, 0x01, 0], [0x01, 0, 0x82, 0],
      // Control frames that are fragmented or long.
      [0x09, 0], [0x0A, 0], [0x08, 0], [0x89, 126, 0, 126], [0x88, 127], [0x8A, 126, 0, 200],
      // Lengths that have a shorter encoding, or are negative.
      [0x81, 126, 0, 125], [0x82, 127, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF], [0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0],
      [0x88, 1, 0],
    ],
    1007: [[0x88, 3, 0x03, 0xE8, 0xFF], [0x81, 1, 0xC3]],
    1009: [
      [0x82, 127, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], [0x82, 127, 0, 0, 0, 0, 0, 0x10, 0, 1],
    ],
  ]

  @Test("A violation is answered by a Close frame, whatever follows it", arguments: [1002, 1007, 1009])
  func violation(code: Int) async throws {
    for bytes in Self.violations[code] ?? [] { try await expectViolation(Data(bytes), code) }
  }

  @Test(
    "A Close frame with an invalid code is a violation",
    arguments: [0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65_535])
  func closeCode(code: Int) async throws { try await expectViolation(closeFrame(code), 1002) }

  private func expectViolation(_ bytes: Data, _ code: Int) async throws {
    for isSplit in [false, true] {
      let (_, socket, events, stream) = try await opened()
      if isSplit { for byte in bytes { stream.send(Data([byte])) } } else { stream.send(bytes) }
      // Bytes after the violation are not delivered.
      stream.send(serverFrame(0x81, Array("late".utf8)) + closeFrame() + Data(repeating: 0xFF, count: 1000))
      let expected = code == 1009 ? URLError.Code.dataLengthExceedsMaximum : .badServerResponse
      #expect(await events.wait(for: 2) == [.connected(nil), .completed(expected)], "\(Array(bytes))")
      #expect(
        stream.events == [.closed(WebSocketClosure(code: .init(rawValue: code)))], "\(Array(bytes))")
      #expect(socket.isFinished)
    }
  }

  @Test("Text that is not UTF-8 is found at every split", arguments: 1..<12)
  func splitText(position: Int) async throws {
    let invalid: [[UInt8]] = [
      [0x61, 0xC0, 0x80, 0x62], [0xE2, 0x82, 0x28], [0xF0, 0x9F, 0x91, 0x61], [0xED, 0xA0, 0x80], [0xFF],
      [0xF4, 0x90, 0x80, 0x80],
    ]
    for text in invalid {
      let bytes = Array("grüße ".utf8) + text
      let split = min(position, bytes.count - 1)
      let (_, _, events, stream) = try await opened()
      stream.send(serverFrame(0x01, Array(bytes[..<split])) + serverFrame(0x80, Array(bytes[split...])))
      #expect(await events.wait(for: 2) == [.connected(nil), .completed(.badServerResponse)])
      #expect(stream.events == [.closed(WebSocketClosure(code: .invalidFramePayloadData))])
    }
  }

  @Test("Frames after a Close frame are skipped")
  func dataAfterClose() async throws {
    let (_, _, events, stream) = try await opened()
    stream.send(closeFrame(4000, "end") + serverFrame(0x81, Array("late".utf8)) + Data([0xFF, 0xFF]))
    stream.send(serverFrame(0x89, [1]) + closeFrame(1001))
    #expect(await events.wait(for: 2) == [.connected(nil), .disconnected(4000, "end")])
    stream.send(Data(), isLast: true)
    #expect(await events.wait(for: 3).last == .completed(nil))
    #expect(stream.events == [.closed(WebSocketClosure(code: .init(rawValue: 4000)))])
  }

  @Test("A server that ends nothing after its Close frame is left", arguments: [false, true])
  func openAfterClose(isViolation: Bool) async throws {
    let (_, _, events, stream) = try await opened()
    // The server reads nothing either.
    stream.holdWrites()
    stream.send(isViolation ? Data([0xC1, 0]) : closeFrame())
    let last: SocketEvent = isViolation ? .completed(.badServerResponse) : .completed(nil)
    _ = await eventually { events.values.last == last }
    #expect(events.values.last == last)
    #expect(await stream.ends.wait(for: 1) == [.cancelled])
  }

  // MARK: Sizes

  @Test("Reads are small if messages are compressed", arguments: [(true, 4_096), (false, 65_536)])
  func readSize(compresses: Bool, size: Int) async throws {
    let (_, _, _, stream) = try await opened(
      .init(compressesMessages: compresses),
      fields: compresses ? "Sec-WebSocket-Extensions: permessage-deflate\r\n" : "")
    _ = await eventually { stream.sizes.values.last?.upperBound == size }
    #expect(stream.sizes.values.last?.upperBound == size)
  }

  @Test("A compressed message that expands beyond the limit is refused", arguments: [false, true])
  func bomb(isText: Bool) async throws {
    let (_, _, events, stream) = try await opened(
      .init(compressesMessages: true), fields: "Sec-WebSocket-Extensions: permessage-deflate\r\n")
    var server = WebSocketConnection(
      WebSocketOptions(role: .server, deflate: WebSocketDeflate()), compression: ZlibMessageCompression()
    ) { 0 }
    // 64 MiB become about 64 KiB.
    let size = 64 << 20
    try server.send(
      isText ? WebSocketMessage.text(String(repeating: "a", count: size)) : .binary(Data(count: size)))
    let bytes = server.takeOutput() ?? Data()
    #expect(bytes.count < 100_000)
    for start in stride(from: 0, to: bytes.count, by: 1000) {
      stream.send(bytes[start..<min(start + 1000, bytes.count)])
    }
    #expect(await events.wait(for: 2) == [.connected(nil), .completed(.dataLengthExceedsMaximum)])
    // The memory of the message is limited before all of it was read.
    #expect(stream.events == [.closed(WebSocketClosure(code: .messageTooBig))])
  }

  @Test("Fragments together are limited")
  func fragments() async throws {
    let (_, _, events, stream) = try await opened(.maximumMessageSize(1000))
    stream.send(serverFrame(0x02, [UInt8](repeating: 1, count: 500)))
    for _ in 0..<2000 { stream.send(serverFrame(0x00) + serverFrame(0x89)) }
    stream.send(serverFrame(0x00, [UInt8](repeating: 1, count: 500)) + serverFrame(0x80, [1]))
    #expect(await events.wait(for: 2) == [.connected(nil), .completed(.dataLengthExceedsMaximum)])
  }

  @Test("An awaited send waits for a server that reads slowly")
  func slowReader() async throws {
    let (_, socket, _, stream) = try await opened()
    stream.holdWrites()
    let sent = Recorder<Int>()
    let ends = Recorder<Bool>()
    Task {
      do {
        for index in 0..<20 {
          try await socket.webSocketTask().send(.data(Data(count: 100_000)))
          sent.add(index)
        }
        ends.add(false)
      } catch {
        ends.add(error.asAFError != nil)
      }
    }
    for count in 2...6 {
      await stream.writes.wait(for: count)
      await stream.settle()
      #expect(stream.writes.count == count && sent.count <= count - 2)
      stream.finishWrites(holdsNext: true)
    }
    socket.cancel()
    #expect(await ends.wait(for: 1) == [true], "the send that waits fails")
  }

  // MARK: Many threads

  @Test(
    "Calls from many threads end the request once, and complete each send once", .steps, arguments: 0..<40)
  func manyThreads(seed: Int) async throws {
    let fake = FakeSocketSession()
    let socket = fake.session.webSocketRequest(to: "ws://a.test/")
    let events = socket.recorded()
    let stream = try await fake.streams.streams.value(0)
    let sends = Recorder<Bool>()
    let pings = Recorder<Bool>()
    step("handshake")
    // A request that is cancelled before its handshake was written would leave nothing to answer.
    await stream.writes.wait(for: 1)
    // The connection opens.
    let opening = Task { try await stream.accept(then: serverFrame(0x81, [0x61]) + serverFrame(0x89, [1])) }
    let threads = 8
    step("calls from the threads")
    await withCheckedContinuation { done in
      DispatchQueue.global().async {
        DispatchQueue.concurrentPerform(iterations: threads) { thread in
          for index in 0..<20 {
            socket.send(.string("\(thread) \(index)"), queue: .global()) { result in
              if case .success = result { sends.add(true) } else { sends.add(false) }
            }
            socket.sendPing(respondingOn: .global()) { _ in pings.add(true) }
            if index == 10, thread == seed % threads { socket.close(sending: .goingAway) }
            if index == 15, thread == (seed / threads) % threads { socket.cancel() }
            if index % 7 == 3 { if thread.isMultiple(of: 2) { socket.suspend() } else { socket.resume() } }
          }
        }
        done.resume()
      }
    }
    step("completions")
    socket.cancel()
    try await opening.value
    #expect(await sends.wait(for: threads * 20).count == threads * 20)
    #expect(await pings.wait(for: threads * 20).count == threads * 20)
    _ = await eventually { events.values.contains(.cancelled) || events.values.contains(.completed(nil)) }
    #expect(events.values.filter { $0 == .cancelled || $0 == .completed(nil) }.count == 1)
    await stream.settle()
    #expect(sends.count == threads * 20 && pings.count == threads * 20)
    #expect(await stream.ends.wait(for: 1).count == 1)
  }

  @Test("A request that has ended is released")
  func release() async throws {
    let fake = FakeSocketSession()
    weak var released: WebSocketRequest?
    weak var stream: FakeByteStream?
    do {
      let socket = fake.session.webSocketRequest(to: "ws://a.test/")
      released = socket
      let events = socket.recorded()
      let opened = try await fake.streams.streams.value(0)
      stream = opened
      try await opened.accept(then: serverFrame(0x81, [0x61]) + closeFrame())
      await events.wait(for: 3)
      opened.send(Data(), isLast: true)
      await events.wait(for: 4)
    }
    #expect(await eventually { released == nil })
    withExtendedLifetime(stream) {}
  }
}
