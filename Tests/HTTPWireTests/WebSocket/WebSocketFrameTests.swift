import Foundation
import HTTPWire
import Testing

@Suite("Frames of WebSocket") struct WebSocketFrameTests {
  /// Checks the examples of RFC 6455 §5.7.
  @Test("The examples of the RFC are received") func examples() {
    let client = WebSocketPeer(.client)
    client.receive([0x81, 0x05, 0x48, 0x65, 0x6C, 0x6C, 0x6F])
    client.receive([0x01, 0x03, 0x48, 0x65, 0x6C, 0x80, 0x02, 0x6C, 0x6F])
    client.receive([0x89, 0x05, 0x48, 0x65, 0x6C, 0x6C, 0x6F])
    client.receive([0x82, 0x7E, 0x01, 0x00] + [UInt8](repeating: 7, count: 256))
    client.receive([0x82, 0x7F, 0, 0, 0, 0, 0, 1, 0, 0] + [UInt8](repeating: 7, count: 65_536))
    #expect(
      client.events == [
        .message(.text("Hello")), .message(.text("Hello")), .ping(Data("Hello".utf8)),
        .message(.binary(Data(repeating: 7, count: 256))),
        .message(.binary(Data(repeating: 7, count: 65_536))),
      ])
    let server = WebSocketPeer(.server)
    server.receive([0x81, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58])
    server.receive([0x8A, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58])
    #expect(server.events == [.message(.text("Hello")), .pong(Data("Hello".utf8))])
  }

  @Test("A client masks its frames, a server does not") func maskingOfOutput() throws {
    let client = WebSocketPeer(.client)
    try client.connection.send(.text("Hello"))
    #expect(client.output() == RawFrame.masked(0x81, Array("Hello".utf8), key: [0xD4, 0xC3, 0xB2, 0xA1]))
    let server = WebSocketPeer(.server)
    try server.connection.send(.text("Hello"))
    #expect(server.output() == [0x81, 0x05, 0x48, 0x65, 0x6C, 0x6C, 0x6F])
  }

  @Test("Each frame has a different key") func keys() throws {
    var key: UInt32 = 0
    var client = WebSocketConnection(WebSocketOptions(role: .client)) {
      key += 1
      return key
    }
    try client.send(.text(""))
    try client.sendPing()
    #expect(client.takeOutput() == Data([0x81, 0x80, 1, 0, 0, 0, 0x89, 0x80, 2, 0, 0, 0]))
  }

  @Test(
    "The length is encoded in the fewest bytes", arguments: [0, 1, 125, 126, 127, 65_535, 65_536, 70_000])
  func lengths(count: Int) throws {
    let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    let server = WebSocketPeer(.server) { $0.maximumMessageSize = 100_000 }
    try server.connection.send(.binary(Data(payload)))
    let output = server.output()
    #expect(output == RawFrame.of(0x82, payload))
    let client = WebSocketPeer(.client) { $0.maximumMessageSize = 100_000 }
    client.receive(output)
    #expect(client.events == [.message(.binary(Data(payload)))])
  }

  @Test("Masking in words equals masking byte by byte", arguments: 0..<40)
  func masking(count: Int) {
    let key: [UInt8] = [0x11, 0x22, 0x44, 0x88]
    let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37) }
    for split in 0...count {
      var copy = bytes
      var mask = WebSocketMask(key: 0x8844_2211)
      copy.withUnsafeMutableBytes { copy in
        mask.apply(to: UnsafeMutableRawBufferPointer(rebasing: copy[..<split]))
        mask.apply(to: UnsafeMutableRawBufferPointer(rebasing: copy[split...]))
      }
      #expect(copy == bytes.indices.map { bytes[$0] ^ key[$0 % 4] })
    }
  }

  /// Headers that must not be accepted, without their payload: the violation shows before it.
  @Test(
    "A malformed header fails the connection",
    arguments: [
      ([0x91], .reservedBits(0x91)), ([0xA1], .reservedBits(0xA1)), ([0xC1], .reservedBits(0xC1)),
      ([0xF1], .reservedBits(0xF1)), ([0x83], .reservedOpcode(3)), ([0x84], .reservedOpcode(4)),
      ([0x85], .reservedOpcode(5)), ([0x86], .reservedOpcode(6)), ([0x87], .reservedOpcode(7)),
      ([0x8B], .reservedOpcode(11)), ([0x8C], .reservedOpcode(12)), ([0x8D], .reservedOpcode(13)),
      ([0x8E], .reservedOpcode(14)), ([0x8F], .reservedOpcode(15)), ([0x03], .reservedOpcode(3)),
      ([0x08], .fragmentedControlFrame), ([0x09], .fragmentedControlFrame), ([0x0A], .fragmentedControlFrame),
      ([0x88, 126], .longControlFrame), ([0x89, 127], .longControlFrame), ([0x8A, 126], .longControlFrame),
      ([0x81, 0x80], .maskedFrameOfServer), ([0x89, 0x85], .maskedFrameOfServer),
      ([0x82, 126, 0, 125], .lengthEncoding), ([0x82, 126, 0, 0], .lengthEncoding),
      ([0x82, 127, 0, 0, 0, 0, 0, 0, 255, 255], .lengthEncoding),
      ([0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0], .frameLength),
      ([0x82, 127, 255, 255, 255, 255, 255, 255, 255, 255], .frameLength),
      ([0x80, 0], .strayContinuation), ([0x00, 0], .strayContinuation),
      ([0x01, 0, 0x81, 0], .interleavedMessage), ([0x02, 0, 0x02, 0], .interleavedMessage),
    ] as [([UInt8], WebSocketViolation)]) func malformedHeader(bytes: [UInt8], violation: WebSocketViolation)
  {
    for chunkSize in [1, Int.max] {
      let client = WebSocketPeer(.client)
      client.receive(bytes, chunkSize: chunkSize)
      #expect(client.events == [.failed(violation)])
      #expect(violation.closeCode == .protocolError)
      #expect(violation.message.contains("RFC 6455"))
      #expect(client.output() == RawFrame.masked(0x88, [0x03, 0xEA], key: [0xD4, 0xC3, 0xB2, 0xA1]))
      #expect(client.phase == .closed && client.endsTransport)
      // Bytes after it are not read.
      client.receive(RawFrame.text("late"))
      #expect(client.events.count == 1)
    }
  }

  @Test("A server refuses frames that are not masked") func unmaskedFrame() {
    let server = WebSocketPeer(.server)
    server.receive([0x81, 0x05])
    #expect(server.events == [.failed(.unmaskedFrameOfClient)])
    #expect(server.output() == [0x88, 0x02, 0x03, 0xEA])
  }

  @Test("Control frames of 125 bytes come between fragments") func controlFramesBetweenFragments() {
    let payload = [UInt8](repeating: 0x2A, count: 125)
    let bytes =
      RawFrame.of(1, Array("a".utf8)) + RawFrame.of(0x89, payload) + RawFrame.of(0, [])
      + RawFrame.of(0x8A, payload) + RawFrame.of(0x80, Array("b".utf8))
    for chunkSize in 1...40 {
      let client = WebSocketPeer(.client)
      client.receive(bytes, chunkSize: chunkSize)
      #expect(
        client.events == [.ping(Data(payload)), .pong(Data(payload)), .message(.text("ab"))])
      #expect(client.output() == RawFrame.masked(0x8A, payload, key: [0xD4, 0xC3, 0xB2, 0xA1]))
    }
  }
}
