import Foundation
import HTTPWire
import Randomness
import Testing

@Suite("Messages of WebSocket") struct WebSocketMessageTests {
  private static let texts: [String] = [
    "", "a", "Hello-µ@ßöäüàá-UTF-8!!", "κόσμε", "😀", "\u{0}\u{7F}\u{80}\u{7FF}\u{800}\u{FFFF}",
    "\u{10000}\u{10FFFF}", "\u{D7FF}\u{E000}\u{FFFD}", String(repeating: "aé€😀", count: 50),
  ]

  /// Bytes that are not UTF-8, and the position of the first byte that shows it.
  private static let invalidTexts: [([UInt8], Int)] = [
    ([0x80], 0), ([0xBF, 0x41], 0), ([0xC0, 0x80], 0), ([0xC1, 0xBF], 0), ([0xC2, 0x41], 1),
    ([0xE0, 0x80, 0x80], 1), ([0xE0, 0x9F, 0xBF], 1), ([0xE2, 0x82, 0x41], 2), ([0xED, 0xA0, 0x80], 1),
    ([0xED, 0xBF, 0xBF], 1), ([0xF0, 0x80, 0x80, 0x80], 1), ([0xF0, 0x8F, 0xBF, 0xBF], 1),
    ([0xF4, 0x90, 0x80, 0x80], 1), ([0xF5, 0x80, 0x80, 0x80], 0), ([0xF8, 0x88, 0x80, 0x80], 0),
    ([0xFC, 0x84], 0), ([0xFE], 0), ([0xFF], 0),
    (Array("κόσμε".utf8) + [0xED, 0xA0, 0x80] + Array("edited".utf8), 11),
    (Array(repeating: 0x41, count: 23) + [0xFF], 23),
  ]

  @Test("Text arrives whole, in fragments and byte by byte", arguments: texts)
  func text(text: String) {
    let utf8 = Array(text.utf8)
    for split in 0...utf8.count {
      let bytes = RawFrame.of(1, Array(utf8[..<split])) + RawFrame.of(0x80, Array(utf8[split...]))
      for chunkSize in [1, 2, Int.max] {
        let client = WebSocketPeer(.client)
        client.receive(bytes + RawFrame.text(text), chunkSize: chunkSize)
        #expect(client.events == [.message(.text(text)), .message(.text(text))])
        let server = WebSocketPeer(.server)
        server.receive(RawFrame.masked(0x81, utf8) + RawFrame.masked(0x81, utf8), chunkSize: chunkSize)
        #expect(server.events == [.message(.text(text)), .message(.text(text))])
      }
    }
  }

  @Test("Text that is not UTF-8 fails at its first invalid byte", arguments: invalidTexts)
  func invalidText(bytes: [UInt8], fault: Int) {
    for chunkSize in [1, Int.max] {
      for frames in [RawFrame.of(0x81, bytes), RawFrame.of(1, bytes)] {
        let client = WebSocketPeer(.client)
        client.receive(frames, chunkSize: chunkSize)
        #expect(client.events == [.failed(.text)])
        #expect(client.output().suffix(2) == [0x03 ^ 0xD4, 0xEF ^ 0xC3])
      }
    }
    // The rest of the frame does not have to come.
    let client = WebSocketPeer(.client)
    let header = RawFrame.of(1, bytes + [UInt8](repeating: 0x41, count: 8)).dropLast(bytes.count + 8)
    client.receive(Array(header) + bytes[..<fault])
    #expect(client.events == [])
    client.receive([bytes[fault]])
    #expect(client.events == [.failed(.text)])
  }

  @Test("A character that is cut by the end of the message fails", arguments: ["µ", "€", "😀"])
  func cutCharacter(character: String) {
    let bytes = Array(character.utf8.dropLast())
    for frames in [
      RawFrame.of(0x81, bytes), RawFrame.of(1, bytes) + RawFrame.of(0x80),
      RawFrame.of(1) + RawFrame.of(0x80, bytes),
    ] {
      let client = WebSocketPeer(.client)
      client.receive(frames)
      #expect(client.events == [.failed(.text)])
    }
  }

  @Test("The validator agrees with the standard library for random bytes", arguments: 0..<8 as Range<UInt64>)
  func validator(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let pieces: [[UInt8]] = Self.texts.map { Array($0.utf8) } + Self.invalidTexts.map(\.0)
    for _ in 0..<400 {
      var bytes: [UInt8] = []
      for _ in 0..<random.next() % 4 { bytes += pieces[Int(random.next() % UInt64(pieces.count))] }
      if !bytes.isEmpty, random.next() % 2 == 0 { bytes[Int(random.next() % UInt64(bytes.count))] ^= 0x80 }
      var validator = UTF8Validator()
      var isValid = true
      var rest = bytes[...]
      while isValid, !rest.isEmpty {
        let chunk = Array(rest.prefix(Int(random.next() % 12) + 1))
        rest = rest.dropFirst(chunk.count)
        isValid = chunk.withUnsafeBytes { validator.validate($0) }
      }
      #expect((isValid && validator.isComplete) == (String(validating: bytes, as: UTF8.self) != nil))
    }
  }

  @Test("A message of the maximum size is received, a larger one fails before its payload")
  func maximumSize() {
    let payload = [UInt8](repeating: 0x61, count: 1000)
    let client = WebSocketPeer(.client) { $0.maximumMessageSize = 1000 }
    client.receive(RawFrame.of(0x82, payload) + RawFrame.of(2, payload) + RawFrame.of(0x80))
    #expect(client.events == [.message(.binary(Data(payload))), .message(.binary(Data(payload)))])
    client.receive([0x82, 126, 0x03, 0xE9])
    #expect(client.events.last == .failed(.messageTooLarge(limit: 1000)))
    #expect(client.output().suffix(2) == [0x03 ^ 0xD4, 0xF1 ^ 0xC3])
    let fragments = WebSocketPeer(.client) { $0.maximumMessageSize = 1000 }
    fragments.receive(RawFrame.of(1, payload) + [0x80, 1])
    #expect(fragments.events == [.failed(.messageTooLarge(limit: 1000))])
    let announced = WebSocketPeer(.client) { $0.maximumMessageSize = 1000 }
    announced.receive([0x82, 127, 0x7F, 255, 255, 255, 255, 255, 255, 255])
    #expect(announced.events == [.failed(.messageTooLarge(limit: 1000))])
  }

  @Test("Fragments without content keep nothing") func emptyFragments() {
    let client = WebSocketPeer(.client)
    client.receive(RawFrame.of(2))
    for _ in 0..<10_000 { client.receive(RawFrame.of(0)) }
    #expect(client.assembledByteCount == 0)
    client.receive(RawFrame.of(0x80))
    #expect(client.events == [.message(.binary(Data()))])
  }

  @Test("The owner stops reading between two messages") func backPressure() {
    let client = WebSocketPeer(.client)
    let first = RawFrame.text("one")
    let bytes = first + RawFrame.text("two")
    bytes.withUnsafeBytes { bytes in
      var position = 0
      #expect(client.connection.receive(bytes, from: &position) == .message(.text("one")))
      #expect(position == first.count)
      #expect(client.assembledByteCount == 0)
      #expect(client.connection.receive(bytes, from: &position) == .message(.text("two")))
      #expect(client.connection.receive(bytes, from: &position) == nil)
    }
  }

  @Test("Large messages are sent in fragments", arguments: [1, 3, 10, 11])
  func fragmentation(frameSize: Int) throws {
    let server = WebSocketPeer(.server) { $0.maximumFrameSize = frameSize }
    try server.connection.send(.text("0123456789"))
    try server.connection.send(.binary(Data()))
    let output = server.output()
    #expect(output[0] == (frameSize < 10 ? 0x01 : 0x81))
    #expect(output.count == 10 + 2 * ((10 + frameSize - 1) / frameSize) + 2)
    let client = WebSocketPeer(.client)
    client.receive(output)
    #expect(client.events == [.message(.text("0123456789")), .message(.binary(Data()))])
  }

  @Test("The text of a bridged string is sent") func bridgedText() throws {
    let server = WebSocketPeer(.server)
    let text = NSMutableString(string: "aé😀") as String
    try server.connection.send(.text(text))
    #expect(server.output() == RawFrame.text("aé😀"))
  }

  @Test("A slice of data is sent") func dataSlice() throws {
    let server = WebSocketPeer(.server)
    try server.connection.send(.binary(Data([1, 2, 3, 4])[1...2]))
    #expect(server.output() == [0x82, 2, 2, 3])
  }

  @Test("A large message is taken in pieces", arguments: [1, 3, 6, 7, 8, 100, 70_000])
  func pieces(limit: Int) throws {
    let payload = (0..<70_000).map { UInt8(truncatingIfNeeded: $0 &* 7 >> 3) }
    let client = WebSocketPeer(.client)
    try client.connection.send(.text("first"))
    try client.connection.send(.binary((Data([9]) + payload + [9])[1..<70_001]))
    let end = client.connection.outputEnd
    #expect(end == 11 + 14 + 70_000 && client.outputByteCount == Int(end))
    try client.connection.send(.text(String(repeating: "é", count: 35_000)))
    try client.connection.close()
    var output: [UInt8] = []
    var sizes: Set<Int> = []
    while let piece = client.connection.takeOutput(limit) {
      sizes.insert(piece.count)
      output += piece
      #expect(client.connection.takenByteCount == UInt64(output.count))
    }
    // Frames before and after a large message are not divided.
    #expect(sizes.max() ?? 0 <= max(limit, 11) + 14)
    let server = WebSocketPeer(.server)
    server.receive(output)
    #expect(
      server.events == [
        .message(.text("first")), .message(.binary(Data(payload))),
        .message(.text(String(repeating: "é", count: 35_000))),
        .closed(WebSocketClosure(code: .normalClosure)),
      ])
  }

  @Test("A message is refused while the output has reached the limit")
  func outputLimit() throws {
    var connection = WebSocketConnection(WebSocketOptions(role: .server)) { 0 }
    try connection.send(.binary(Data(count: 100_000)), outputLimit: 10)
    #expect(throws: WebSocketSendError.outputFull(count: 100_010)) {
      try connection.send(.text("a"), outputLimit: 100_010)
    }
    try connection.send(.text("a"), outputLimit: 100_011)
    _ = connection.takeOutput(4)
    #expect(throws: WebSocketSendError.outputFull(count: 100_003)) {
      try connection.send(.text("b"), outputLimit: 4)
    }
    while connection.takeOutput() != nil {}
    try connection.send(.text("c"), outputLimit: 1)
    try connection.close()
    #expect(throws: WebSocketSendError.notOpen) { try connection.send(.text("d"), outputLimit: 1) }
  }
}
