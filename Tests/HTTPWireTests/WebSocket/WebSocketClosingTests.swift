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

  @Test("After our Close frame nothing is sent, and messages are delivered until the closure")
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

  @Test("Bytes behind a Close frame are ignored") func bytesBehindClose() {
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

  @Test("A failure while closing sends no second Close frame") func failureWhileClosing() throws {
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

  @Test("A flood of Ping frames owes one Pong") func pingFlood() {
    let client = WebSocketPeer(.client)
    for number in 0..<10_000 {
      client.receive(RawFrame.of(0x89, [UInt8](repeating: UInt8(number & 0xFF), count: 125)))
      #expect(client.outputByteCount == 131)
    }
    #expect(client.output().count == 131)
    #expect(client.outputByteCount == 0)
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
