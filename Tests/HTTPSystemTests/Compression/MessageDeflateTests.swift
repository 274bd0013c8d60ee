import Foundation
import HTTPSystem
import HTTPWire
import Testing

@Suite("Compression of WebSocket messages") struct MessageDeflateTests {
  /// Feeds a client with bytes and returns the events.
  private static func receive(
    _ bytes: [UInt8], deflate: WebSocketDeflate = WebSocketDeflate(), limit: Int = 1 << 20,
    chunkSize: Int = .max
  ) -> [WebSocketEvent] {
    var options = WebSocketOptions(role: .client, deflate: deflate)
    options.maximumMessageSize = limit
    var client = WebSocketConnection(options, compression: ZlibMessageCompression()) { 0 }
    var events: [WebSocketEvent] = []
    var rest = bytes[...]
    while !rest.isEmpty {
      let chunk = Array(rest.prefix(chunkSize))
      rest = rest.dropFirst(chunk.count)
      chunk.withUnsafeBytes { chunk in
        var position = 0
        while let event = client.receive(chunk, from: &position) { events.append(event) }
      }
    }
    return events
  }

  private static func server(
    _ deflate: WebSocketDeflate, configure: (inout WebSocketOptions) -> Void = { _ in }
  ) -> WebSocketConnection {
    var options = WebSocketOptions(role: .server, deflate: deflate)
    options.compressionThreshold = 1
    configure(&options)
    return WebSocketConnection(options, compression: ZlibMessageCompression()) { 0 }
  }

  private static func output(of connection: inout WebSocketConnection) -> [UInt8] {
    connection.takeOutput().map { Array($0) } ?? []
  }

  /// Bytes that look random and are the same in every run.
  private static func noise(_ count: Int) -> [UInt8] {
    var state: UInt32 = 7
    return (0..<count).map { _ in
      state = state &* 1_664_525 &+ 1_013_904_223
      return UInt8(state >> 24)
    }
  }

  /// RFC 7692 §7.2.3.
  private static let examples: [([UInt8], [String])] = [
    ([0xC1, 0x07, 0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00], ["Hello"]),
    ([0x41, 0x03, 0xF2, 0x48, 0xCD, 0x80, 0x04, 0xC9, 0xC9, 0x07, 0x00], ["Hello"]),
    (
      [0xC1, 0x07, 0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0xC1, 0x05, 0xF2, 0x00, 0x11, 0x00, 0x00],
      ["Hello", "Hello"]
    ),
    // Without compression inside.
    ([0xC1, 0x0B, 0x00, 0x05, 0x00, 0xFA, 0xFF, 0x48, 0x65, 0x6C, 0x6C, 0x6F, 0x00], ["Hello"]),
    // A block with BFINAL, which the next message refers to.
    (
      [0xC1, 0x08, 0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x00, 0xC1, 0x05, 0xF2, 0x00, 0x11, 0x00, 0x00],
      ["Hello", "Hello"]
    ),
    // Two blocks in one message.
    (
      [0xC1, 0x0D, 0xF2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xCA, 0xC9, 0xC9, 0x07, 0x00], ["Hello"]
    ),
    // An empty message.
    ([0xC1, 0x01, 0x00], [""]),
    // Messages that are not compressed come between them.
    ([0x81, 0x01, 0x61, 0xC1, 0x01, 0x00, 0x01, 0x00, 0x80, 0x01, 0x62], ["a", "", "b"]),
  ]

  @Test("The examples of the RFC are received in chunks of any size", arguments: examples)
  func receiveExamples(bytes: [UInt8], texts: [String]) {
    for chunkSize in [1, 2, 3, Int.max] {
      let events = Self.receive(bytes, chunkSize: chunkSize)
      #expect(events == texts.map { .message(.text($0)) })
    }
  }

  @Test("Compressed frames need an agreement, and a data frame that begins a message") func misplacedBit() {
    var plain = WebSocketConnection(WebSocketOptions(role: .client), compression: ZlibMessageCompression()) {
      0
    }
    var event: WebSocketEvent?
    [0xC1, 0x00].withUnsafeBytes { bytes in
      var position = 0
      event = plain.receive(bytes, from: &position)
    }
    #expect(event == .failed(.reservedBits(0xC1)))
    for bytes: [UInt8] in [[0xC8], [0xC9], [0xCA], [0x41, 0x00, 0xC0], [0x01, 0x00, 0x40]] {
      #expect(Self.receive(bytes) == [.failed(.misplacedCompression)])
    }
    #expect(Self.receive([0xE1]) == [.failed(.reservedBits(0xE1))])
    #expect(Self.receive([0x91]) == [.failed(.reservedBits(0x91))])
  }

  @Test(
    "Malformed compressed data fails with 1007",
    arguments: [
      [0xC1, 0x02, 0xFF, 0xFF], [0xC1, 0x00], [0xC1, 0x05, 0xF2, 0x00, 0x11, 0x00, 0x00],
      [0xC1, 0x03, 0xF2, 0x48, 0xCD], [0xC1, 0x05, 0x00, 0x05, 0x00, 0x00, 0x00],
      [0xC1, 0x07, 0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00],
    ] as [[UInt8]])
  func malformed(bytes: [UInt8]) {
    guard case .failed(let violation)? = Self.receive(bytes).last, case .compressedData = violation else {
      Issue.record("accepted: \(Self.receive(bytes))")
      return
    }
    #expect(violation.closeCode == .invalidFramePayloadData)
    #expect(Self.receive(bytes, chunkSize: 1).last == .failed(violation))
  }

  @Test("Text is validated after decompression") func invalidText() throws {
    var server = Self.server(WebSocketDeflate())
    try server.send(.binary(Data([0x61, 0xED, 0xA0, 0x80])))
    var bytes = Self.output(of: &server)
    #expect(bytes[0] == 0xC2)
    bytes[0] = 0xC1
    #expect(Self.receive(bytes) == [.failed(.text)])
  }

  @Test("Invalid text is found before invalid data after it, in chunks of any size") func textBeforeData()
    throws
  {
    var server = Self.server(WebSocketDeflate())
    try server.send(.binary(Data([0x61, 0xED, 0xA0, 0x80])))
    var payload = Self.output(of: &server).dropFirst(2)
    // The length of the empty stored block would have to follow.
    payload.append(0x07)
    let bytes = [0xC1, UInt8(payload.count)] + payload
    for chunkSize in [1, 2, Int.max] {
      #expect(Self.receive(bytes, chunkSize: chunkSize) == [.failed(.text)])
    }
  }

  @Test("Invalid text is found before the limit is exceeded, in chunks of any size")
  func textBeforeLimit() throws {
    var server = Self.server(WebSocketDeflate())
    try server.send(.binary(Data([0x61, 0xED, 0xA0, 0x80]) + Data(repeating: 0x61, count: 1000)))
    var bytes = Self.output(of: &server)
    bytes[0] = 0xC1
    for chunkSize in [1, 2, Int.max] {
      #expect(Self.receive(bytes, limit: 100, chunkSize: chunkSize) == [.failed(.text)])
      #expect(Self.receive(bytes, limit: 2, chunkSize: chunkSize) == [.failed(.messageTooLarge(limit: 2))])
    }
  }

  @Test("A negative limit is a limit of zero") func negativeLimit() {
    let empty: [UInt8] = [0xC1, 0x01, 0x00]
    let hello: [UInt8] = [0xC1, 0x07, 0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00]
    #expect(
      Self.receive(empty + hello, limit: -1) == [.message(.text("")), .failed(.messageTooLarge(limit: 0))])
  }

  @Test("A decompression bomb ends at the limit") func bomb() throws {
    var server = Self.server(WebSocketDeflate())
    try server.send(.binary(Data(count: 64 << 20)))
    let bytes = Self.output(of: &server)
    #expect(bytes.count < 100_000)
    var options = WebSocketOptions(role: .client, deflate: WebSocketDeflate())
    options.maximumMessageSize = 100_000
    var client = WebSocketConnection(options, compression: ZlibMessageCompression()) { 0 }
    var events: [WebSocketEvent] = []
    var largest = 0
    var used = 0
    for byte in bytes where events.isEmpty {
      used += 1
      withUnsafeBytes(of: byte) { chunk in
        var position = 0
        while let event = client.receive(chunk, from: &position) { events.append(event) }
      }
      largest = max(largest, client.assembledByteCount)
    }
    #expect(events == [.failed(.messageTooLarge(limit: 100_000))])
    #expect(largest <= 100_000 && used < 1000)
    // One that is not over the limit is received.
    #expect(Self.receive(bytes, limit: 64 << 20) == [.message(.binary(Data(count: 64 << 20)))])
    #expect(Self.receive(bytes, limit: 64 << 20 - 1) == [.failed(.messageTooLarge(limit: 64 << 20 - 1))])
  }

  @Test("The context is carried over to the next message, or reset", arguments: [false, true])
  func contextTakeover(resets: Bool) throws {
    let deflate = WebSocketDeflate(server: .init(resetsContext: resets))
    var server = Self.server(deflate)
    let text = String(decoding: Self.noise(500).map { 0x20 + $0 % 64 }, as: UTF8.self)
    var sizes: [Int] = []
    var bytes: [UInt8] = []
    for _ in 0..<3 {
      try server.send(.text(text))
      let output = Self.output(of: &server)
      sizes.append(output.count)
      bytes += output
    }
    #expect(resets ? sizes[0] == sizes[2] : sizes[2] < sizes[0] / 10)
    #expect(
      Self.receive(bytes, deflate: deflate) == [
        .message(.text(text)), .message(.text(text)), .message(.text(text)),
      ])
  }

  @Test("Without context takeover a message cannot refer to an earlier one") func referenceBehindReset() {
    let hello: [UInt8] = [0xC1, 0x07, 0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00]
    let reference: [UInt8] = [0xC1, 0x05, 0xF2, 0x00, 0x11, 0x00, 0x00]
    let deflate = WebSocketDeflate(client: .init(), server: .init(resetsContext: true))
    let events = Self.receive(hello + hello + reference, deflate: deflate)
    #expect(events.prefix(2) == [.message(.text("Hello")), .message(.text("Hello"))])
    guard case .failed(.compressedData)? = events.last else {
      Issue.record("accepted: \(events)")
      return
    }
    let takeover = WebSocketDeflate(client: .init(resetsContext: true))
    #expect(Self.receive(hello + reference, deflate: takeover).last == .message(.text("Hello")))
  }

  @Test("Output refers back no further than the window", arguments: 8...15)
  func windows(bits: Int) throws {
    let deflate = WebSocketDeflate(server: .init(windowBits: bits))
    var server = Self.server(deflate)
    // Repetitions at every distance up to 40,000.
    var message = Data()
    for index in 0..<300 {
      message.append(contentsOf: "\(index * index) is a square; ".utf8)
      message.append(message.prefix(index * 2))
    }
    try server.send(.binary(message))
    try server.send(.binary(message))
    let bytes = Self.output(of: &server)
    // zlib's decoder with exactly this window refuses larger distances.
    #expect(
      Self.receive(bytes, deflate: deflate) == [.message(.binary(message)), .message(.binary(message))])
    // With 8 bits, messages are sent uncompressed.
    #expect((bytes[0] & 0x40 != 0) == (bits > 8))
    if bits > 8 { #expect(bytes.count < message.count) }
  }

  @Test("A decoder with a small window refuses larger distances") func largeDistance() throws {
    var server = Self.server(WebSocketDeflate())
    let block = Data(Self.noise(1000))
    try server.send(.binary(block))
    try server.send(.binary(block))
    let bytes = Self.output(of: &server)
    let events = Self.receive(bytes, deflate: WebSocketDeflate(server: .init(windowBits: 9)))
    guard case .failed(.compressedData)? = events.last else {
      Issue.record("accepted a distance over the window")
      return
    }
  }

  @Test("Short messages are sent uncompressed; so are messages that do not shrink without a context")
  func uncompressed() throws {
    var server = Self.server(WebSocketDeflate()) { $0.compressionThreshold = 10 }
    try server.send(.text("123456789"))
    #expect(Self.output(of: &server).first == 0x81)
    try server.send(.text("1234567890"))
    #expect(Self.output(of: &server).first == 0xC1)
    try server.send(.text(""))
    #expect(Self.output(of: &server) == [0x81, 0])
    var resetting = Self.server(WebSocketDeflate(server: .init(resetsContext: true)))
    try resetting.send(.binary(Data(Self.noise(100))))
    #expect(Self.output(of: &resetting).first == 0x82)
    try resetting.send(.binary(Data(count: 100)))
    #expect(Self.output(of: &resetting).first == 0xC2)
  }

  @Test("Compressed messages are fragmented, with the bit on the first frame") func fragments() throws {
    var server = Self.server(WebSocketDeflate()) { $0.maximumFrameSize = 4 }
    try server.send(.text("Hello, Hello, Hello"))
    let bytes = Self.output(of: &server)
    #expect(bytes[0] == 0x41 && bytes[1] == 4 && bytes[6] & 0x7F == 0)
    #expect(Self.receive(bytes, chunkSize: 1) == [.message(.text("Hello, Hello, Hello"))])
  }

  @Test(
    "A large message is compressed piece by piece when it is written, and keeps its place",
    arguments: [false, true])
  func pieces(resetsContext: Bool) throws {
    let deflate = WebSocketDeflate(server: .init(resetsContext: resetsContext))
    var server = Self.server(deflate)
    let messages: [WebSocketMessage] = [
      .text("Hello"), .binary(Data(Self.noise(300_000))), .text("Hello"),
      .text(String(repeating: "Hello, ", count: 50_000)), .binary(Data(Self.noise(1_000))),
    ]
    var ends: [UInt64] = []
    for message in messages {
      try server.send(message)
      ends.append(server.outputEnd)
    }
    let waiting = server.outputByteCount
    #expect(waiting > 650_000, "the large ones are not compressed yet")
    var bytes: [UInt8] = []
    var takes = 0
    while let taken = server.takeOutput(1_000) {
      bytes += taken
      takes += 1
      let position = server.takenByteCount
      #expect(taken.count < 70_000 && (bytes.count < 300_000) == (position < ends[1]))
    }
    let (position, left) = (server.takenByteCount, server.outputByteCount)
    #expect(takes == 12 && position == ends[4] && left == 0, "\(takes), \(position) of \(ends)")
    #expect(Self.receive(bytes, deflate: deflate) == messages.map { .message($0) })
  }

  /// A compression that costs nothing.
  private struct CheapCompression: MessageCompression {
    final class Compressor: MessageCompressor {
      func compress(_ message: UnsafeRawBufferPointer, into output: inout [UInt8]) -> Bool {
        output += [1, 0, 0, 0xFF, 0xFF]
        return true
      }

      func reset() {}
    }

    func makeCompressor(windowBits: Int) -> (any MessageCompressor)? { Compressor() }
    func makeDecompressor(windowBits: Int) -> (any MessageDecompressor)? { nil }
  }

  @Test("Messages that wait behind a large one cost the same, however many they are", .timeLimit(.minutes(1)))
  func manyMessages() throws {
    var server = WebSocketConnection(
      WebSocketOptions(role: .server, deflate: WebSocketDeflate()), compression: CheapCompression()
    ) { 0 }
    try server.send(.binary(Data(count: 100_000)))
    let message = WebSocketMessage.binary(Data(count: 40))
    for _ in 0..<200_000 { try server.send(message, outputLimit: 1 << 40) }
    let (waiting, end) = (server.outputByteCount, server.outputEnd)
    #expect(waiting == 8_100_000 && end == 8_100_000)
    var count = 0
    while let taken = server.takeOutput(262_144) { count += taken.count }
    let (left, position) = (server.outputByteCount, server.takenByteCount)
    #expect(left == 0 && position == end && count == 200_000 * 3 + 10)
  }

  @Test("Pong frames come between the pieces of a large message") func pongs() throws {
    var server = Self.server(WebSocketDeflate())
    try server.send(.binary(Data(Self.noise(200_000))))
    var bytes = server.takeOutput(1_000).map { Array($0) } ?? []
    let ping: [UInt8] = [0x89, 0x81, 0, 0, 0, 0, 7]
    let event = ping.withUnsafeBytes { ping in
      var position = 0
      return server.receive(ping, from: &position)
    }
    #expect(event == .ping(Data([7])))
    let next = server.takeOutput(1_000).map { Array($0) } ?? []
    #expect(next.starts(with: [0x8A, 1, 7, 0x00]))
    bytes += next + Self.output(of: &server)
    let message = WebSocketEvent.message(.binary(Data(Self.noise(200_000))))
    #expect(Self.receive(bytes) == [.pong(Data([7])), message])
  }

  /// A compressor that fails in the middle of a message.
  private struct FailingCompression: MessageCompression {
    final class Compressor: MessageCompressor {
      private var count = 0

      func compress(_ message: UnsafeRawBufferPointer, into output: inout [UInt8]) -> Bool {
        count += 1
        output += [1, 0, 0, 0xFF, 0xFF]
        return count < 2
      }

      func reset() {}
    }

    func makeCompressor(windowBits: Int) -> (any MessageCompressor)? { Compressor() }
    func makeDecompressor(windowBits: Int) -> (any MessageDecompressor)? { nil }
  }

  @Test("A message that cannot be compressed to its end ends the transport") func brokenCompressor() throws {
    var server = WebSocketConnection(
      WebSocketOptions(role: .server, deflate: WebSocketDeflate()), compression: FailingCompression()
    ) { 0 }
    try server.send(.binary(Data(count: 200_000)))
    try server.send(.text("after it"))
    var states: [Bool] = []
    for piece: [UInt8]? in [[0x42, 5, 1, 0, 0, 0xFF, 0xFF], nil] {
      let taken = server.takeOutput(1)
      #expect(taken == piece.map { Data($0) })
      states += [server.endsTransport, server.hasOutput]
    }
    #expect(states == [false, true, true, false])
    #expect(throws: WebSocketSendError.notOpen) { try server.send(.text("refused")) }
  }

  @Test("Each final block costs little") func finalBlocks() {
    // Empty final blocks, and the end of the message.
    var blocks: [UInt8] = []
    for _ in 0..<30_000 { blocks += [0x03, 0x00] }
    blocks.append(0x00)
    let bytes: [UInt8] = [0xC2, 126, UInt8(blocks.count >> 8), UInt8(blocks.count & 0xFF)] + blocks
    #expect(Self.receive(bytes) == [.message(.binary(Data()))])
  }
}
