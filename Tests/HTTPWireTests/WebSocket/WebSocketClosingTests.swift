import Foundation
import HTTPWire
import Testing

@Suite("Closing of WebSocket") struct WebSocketClosingTests {
  private static let key: [UInt8] = [0xD4, 0xC3, 0xB2, 0xA1]

  @Test(
    "A Close frame is answered with its code",
    arguments: [1000, 1001, 1003, 1007, 1011, 1012, 1014, 3000, 4999])
  func closeByPeer(code: Int) {
    let client = WebSocketPeer(.client)
    client.receive(RawFrame.close(code, Array("bye".utf8)))
    #expect(
      client.events == [.closed(WebSocketClosure(code: WebSocketCloseCode(rawValue: code), reason: "bye"))])
    #expect(
      client.output()
        == RawFrame.masked(0x88, [UInt8(code >> 8), UInt8(code & 0xFF)], key: Self.key))
    #expect(client.phase == .closed)
    // The server ends the transport.
    #expect(!client.endsTransport)
    #expect(client.connection.transportEnded() == nil)
    #expect(client.phase == .ended)
  }

  @Test("A Close frame without a code is answered without one") func closeWithoutCode() {
    let server = WebSocketPeer(.server)
    server.receive(RawFrame.masked(0x88))
    #expect(server.events == [.closed(WebSocketClosure(code: .noStatusReceived))])
    #expect(server.output() == [0x88, 0])
    #expect(server.endsTransport)
  }

  @Test(
    "A code that must not be sent fails the connection",
    arguments: [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535])
  func forbiddenCode(code: Int) {
    let client = WebSocketPeer(.client)
    client.receive(RawFrame.close(code))
    #expect(client.events == [.failed(.closeCode(code))])
    #expect(client.output() == RawFrame.masked(0x88, [0x03, 0xEA], key: Self.key))
    let own = WebSocketPeer(.client)
    let closeCode = WebSocketCloseCode(rawValue: code)
    #expect(throws: WebSocketSendError.closeCode(closeCode)) { try own.connection.close(closeCode) }
    #expect(own.phase == .open && !own.hasOutput)
  }

  @Test("A malformed Close frame fails the connection") func malformedClose() {
    let oneByte = WebSocketPeer(.client)
    oneByte.receive(RawFrame.of(0x88, [3]))
    #expect(oneByte.events == [.failed(.closePayload)])
    let reason = WebSocketPeer(.client)
    reason.receive(RawFrame.close(1000, [0xCE, 0xBA, 0xED, 0xA0, 0x80]))
    #expect(reason.events == [.failed(.closeReason)])
    #expect(reason.output() == RawFrame.masked(0x88, [0x03, 0xEF], key: Self.key))
  }

  @Test("The longest reason is sent and received, a longer one is refused") func longReason() throws {
    let reason = String(repeating: "é", count: 61) + "a"
    let client = WebSocketPeer(.client)
    try client.connection.close(.goingAway, reason: reason)
    let server = WebSocketPeer(.server)
    server.receive(client.output())
    #expect(server.events == [.closed(WebSocketClosure(code: .goingAway, reason: reason))])
    let other = WebSocketPeer(.client)
    #expect(throws: WebSocketSendError.longReason(count: 124)) {
      try other.connection.close(.goingAway, reason: reason + "a")
    }
    #expect(throws: WebSocketSendError.reasonWithoutCode) { try other.connection.close(nil, reason: "a") }
    #expect(other.phase == .open)
  }

  @Test("After our Close frame no frames are sent, and messages are delivered until the closure")
  func closeByUs() throws {
    let client = WebSocketPeer(.client)
    client.receive(RawFrame.of(1, Array("begun".utf8)))
    try client.connection.close()
    #expect(client.output() == RawFrame.masked(0x88, [0x03, 0xE8], key: Self.key))
    #expect(client.phase == .closing && client.assembledByteCount == 5)
    #expect(throws: WebSocketSendError.notOpen) { try client.connection.send(.text("late")) }
    #expect(throws: WebSocketSendError.notOpen) { try client.connection.sendPing() }
    try client.connection.close(.goingAway)
    client.receive(RawFrame.of(0x89, [2]) + RawFrame.of(0x80, Array("!".utf8)) + RawFrame.of(0x82, [1]))
    let messages: [WebSocketEvent] = [.message(.text("begun!")), .message(.binary(Data([1])))]
    #expect(client.events == messages && !client.hasOutput)
    client.receive(RawFrame.close(1000) + RawFrame.text("late") + [0xFF, 0xFF])
    #expect(client.events == messages + [.closed(WebSocketClosure(code: .normalClosure))])
    #expect(!client.hasOutput && client.phase == .closed)
  }

  @Test("A message that arrives when messages are skipped is dropped from there on")
  func skipInsideOfFrame() throws {
    let client = WebSocketPeer(.client)
    let bytes = RawFrame.text("0123456789")
    client.receive(Array(bytes[..<5]))
    try client.connection.close()
    client.connection.skipMessages()
    #expect(client.assembledByteCount == 0)
    client.receive(bytes[5...] + RawFrame.of(1, [0xFF]) + RawFrame.of(0x80, [0xFF]))
    client.receive(RawFrame.of(0x82, [1]) + RawFrame.close(1000))
    #expect(client.events == [.closed(WebSocketClosure(code: .normalClosure))])
  }

  @Test("Both sides close at the same time") func simultaneousClose() throws {
    let client = WebSocketPeer(.client)
    let server = WebSocketPeer(.server)
    try client.connection.close(.goingAway)
    try server.connection.close(.normalClosure)
    let (fromClient, fromServer) = (client.output(), server.output())
    client.receive(fromServer)
    server.receive(fromClient)
    #expect(client.events == [.closed(WebSocketClosure(code: .normalClosure))])
    #expect(server.events == [.closed(WebSocketClosure(code: .goingAway))])
    #expect(!client.hasOutput && !server.hasOutput)
  }

  @Test("Bytes after a Close frame are ignored") func bytesBehindClose() {
    let client = WebSocketPeer(.client)
    client.receive(RawFrame.close(1000) + RawFrame.of(0x89, [1]) + RawFrame.text("late") + [0xFF])
    #expect(client.events.count == 1)
    #expect(client.output().count == 8)
  }

  @Test("The end of the transport without a Close frame is 1006", arguments: [false, true])
  func abnormalEnd(isClosing: Bool) throws {
    let client = WebSocketPeer(.client)
    client.receive(RawFrame.of(1, Array("begun".utf8)))
    if isClosing { try client.connection.close() }
    let event = client.connection.transportEnded()
    #expect(event == .closed(WebSocketClosure(code: .abnormalClosure)))
    #expect(WebSocketClosure(code: .abnormalClosure).isClean == false)
    #expect(client.phase == .ended && !client.hasOutput)
    #expect(client.connection.transportEnded() == nil)
    client.receive(RawFrame.text("late"))
    #expect(client.events == [])
    #expect(throws: WebSocketSendError.notOpen) { try client.connection.send(.text("late")) }
  }

  @Test("A failure while closing does not send a second Close frame") func failureWhileClosing() throws {
    let client = WebSocketPeer(.client)
    try client.connection.close()
    _ = client.output()
    client.receive([0x83])
    #expect(client.events == [.failed(.reservedOpcode(3))])
    #expect(!client.hasOutput && client.endsTransport)
  }

  // MARK: Ping and Pong

  @Test("A Ping is answered with its payload, before a Close frame") func ping() {
    let client = WebSocketPeer(.client)
    client.receive(RawFrame.of(0x89, [1, 2, 3]) + RawFrame.close(1000))
    #expect(client.events.first == .ping(Data([1, 2, 3])))
    #expect(
      client.output()
        == RawFrame.masked(0x8A, [1, 2, 3], key: Self.key) + RawFrame.masked(0x88, [3, 0xE8], key: Self.key))
  }

  @Test("Each Ping frame of a read is answered, in their order (Autobahn 2.10, 2.11)", arguments: [1, .max])
  func pings(chunkSize: Int) {
    let client = WebSocketPeer(.client)
    let payloads = (0..<10).map { Array("payload-\($0)".utf8) }
    client.receive(payloads.flatMap { RawFrame.of(0x89, $0) }, chunkSize: chunkSize)
    #expect(client.output() == payloads.flatMap { RawFrame.masked(0x8A, $0, key: Self.key) })
    #expect(!client.hasOutput && client.outputByteCount == 0)
  }

  @Test("All Ping frames that fit into a read of 64 KiB are answered") func smallPings() {
    let client = WebSocketPeer(.client)
    client.receive([UInt8](repeating: 0, count: 32_768).flatMap { _ in [0x89, 0x00] as [UInt8] })
    #expect(client.output().count == 32_768 * 6)
  }

  @Test("A flood of Ping frames takes a limited memory, and the last one is answered") func pingFlood() {
    let client = WebSocketPeer(.client)
    for number in 0..<10_000 {
      client.receive(RawFrame.of(0x89, [UInt8](repeating: UInt8(number & 0xFF), count: 125)))
      #expect(client.outputByteCount <= 262_144)
    }
    let last = RawFrame.masked(0x8A, [UInt8](repeating: UInt8(9999 & 0xFF), count: 125), key: Self.key)
    #expect(Array(client.output().suffix(131)) == last)
    #expect(client.outputByteCount == 0)
  }

  @Test("A Pong frame overtakes messages, but not the rest of one that has begun") func overtakingPong()
    throws
  {
    let client = WebSocketPeer(.client) { $0.keptPayloadSize = 100 }
    try client.connection.send(.binary(Data(repeating: 7, count: 300)))
    let end = client.connection.outputEnd
    try client.connection.send(.text("later"))
    let first = client.connection.takeOutput(150).map { Array($0) } ?? []
    client.receive(RawFrame.of(0x89, [1]) + RawFrame.of(0x89, [2]))
    #expect(client.connection.takenByteCount == 150)
    let rest = client.output()
    let server = WebSocketPeer(.server)
    server.receive(first + rest)
    #expect(
      server.events == [
        .message(.binary(Data(repeating: 7, count: 300))), .pong(Data([1])), .pong(Data([2])),
        .message(.text("later")),
      ])
    // The bytes of the answers do not count, because the completions of messages wait for those before them.
    #expect(
      client.connection.takenByteCount == client.connection.outputEnd && client.connection.outputEnd > end)
    try client.connection.send(.text("last"))
    client.receive(RawFrame.of(0x89, [3]))
    server.receive(client.output())
    #expect(server.events.suffix(2) == [.pong(Data([3])), .message(.text("last"))])
  }

  @Test("While a Close frame waits behind a message, a Ping frame is answered before it") func waitingClose()
    throws
  {
    let client = WebSocketPeer(.client) { $0.keptPayloadSize = 100 }
    try client.connection.sendPing(Data([9]))
    try client.connection.send(.binary(Data(repeating: 7, count: 300)))
    let first = client.connection.takeOutput(150).map { Array($0) } ?? []
    try client.connection.close()
    client.receive(RawFrame.of(0x8A, [9]) + RawFrame.of(0x89, [1]))
    #expect(client.events == [.pong(Data([9])), .ping(Data([1]))] && client.phase == .closing)
    let rest = client.output()
    let server = WebSocketPeer(.server)
    server.receive(first + rest)
    #expect(
      server.events == [
        .ping(Data([9])), .message(.binary(Data(repeating: 7, count: 300))), .pong(Data([1])),
        .closed(WebSocketClosure(code: .normalClosure)),
      ])
    // The Close frame was sent, and nothing may follow it.
    client.receive(RawFrame.of(0x89, [2]))
    #expect(!client.hasOutput)
  }

  @Test("Control payloads over 125 bytes are refused") func longPing() throws {
    let client = WebSocketPeer(.client)
    #expect(throws: WebSocketSendError.longControlPayload(count: 126)) {
      try client.connection.sendPing(Data(count: 126))
    }
    #expect(throws: WebSocketSendError.longControlPayload(count: 126)) {
      try client.connection.sendPong(Data(count: 126))
    }
    try client.connection.sendPong(Data(count: 125))
    #expect(client.outputByteCount == 131)
  }

  @Test("The codes have the numbers of the RFC") func codes() {
    let codes: [WebSocketCloseCode] = [
      .normalClosure, .goingAway, .protocolError, .unsupportedData, .noStatusReceived, .abnormalClosure,
      .invalidFramePayloadData, .policyViolation, .messageTooBig, .mandatoryExtensionMissing,
      .internalServerError, .serviceRestart, .tryAgainLater, .badGateway, .tlsHandshakeFailure,
    ]
    #expect(codes.map(\.rawValue) == [1000, 1001, 1002, 1003] + Array(1005...1015))
    #expect(WebSocketCloseCode.invalid.rawValue == 0)
    #expect("\(WebSocketCloseCode.goingAway)" == "1001")
  }
}
