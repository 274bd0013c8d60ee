import HTTPWire
import Randomness
import Scenarios
import Testing

@Suite("Floods of frames") struct FloodMeterTests {
  static func frame(_ kind: UInt8, _ flags: UInt8 = 0, _ payload: [UInt8] = []) -> [UInt8] {
    let count = payload.count
    return [UInt8(count >> 16), UInt8(count >> 8 & 255), UInt8(count & 255), kind, flags, 0, 0, 0, 1]
      + payload
  }

  /// Returns the number of frames that a meter accepts before the connection ends, at most 3,000.
  static func accepted(_ frame: [UInt8], by meter: FloodMeter = FloodMeter(), at now: UInt64 = 1) -> Int {
    var meter = meter
    for count in 0..<3_000 {
      if frame.withUnsafeBytes({ meter.received($0, at: now) }) { return count }
    }
    return 3_000
  }

  @Test(
    "Frames without content are limited",
    arguments: [
      ("PING", frame(6, 0, [UInt8](repeating: 1, count: 8))), ("SETTINGS", frame(4)),
      ("SETTINGS ACK", frame(4, 1)),
      ("RST_STREAM", frame(3, 0, [0, 0, 0, 8])), ("WINDOW_UPDATE", frame(8, 0, [0, 0, 0, 1])),
      ("PRIORITY", frame(2, 0, [0, 0, 0, 3, 1])), ("empty DATA", frame(0)),
      ("empty DATA that ends", frame(0, 1)),
      ("DATA of padding", frame(0, 8, [3, 0, 0, 0])), ("DATA of its padding length", frame(0, 8, [0])),
      ("padding beyond the frame", frame(0, 8, [200, 1, 2])), ("padding without a length", frame(0, 8)),
      ("CONTINUATION", frame(9)), ("short CONTINUATION", frame(9, 0, [UInt8](repeating: 0x82, count: 8_191))),
      ("unknown type", frame(0xEE, 0, [1, 2, 3])), ("GOAWAY", frame(7, 0, [0, 0, 0, 1, 0, 0, 0, 0])),
      ("head", frame(1, 4, [0x88])), ("PUSH_PROMISE", frame(5)), ("ALTSVC", frame(10, 0, [0, 0])),
    ])
  func limited(name: String, frame: [UInt8]) { #expect(Self.accepted(frame) == 1_000, "\(name)") }

  @Test(
    "Content is not limited",
    arguments: [
      ("DATA", frame(0, 0, [1])), ("padded DATA", frame(0, 8, [2, 7, 0, 0])),
      ("full CONTINUATION", frame(9, 0, [UInt8](repeating: 0x82, count: 8_192))),
      ("large DATA", frame(0, 1, [UInt8](repeating: 9, count: 16_384))),
    ])
  func unlimited(name: String, frame: [UInt8]) { #expect(Self.accepted(frame) == 3_000, "\(name)") }

  @Test("The bucket is refilled by 100 frames a second, up to 1,000") func refill() {
    let ping = Self.frame(6, 0, [UInt8](repeating: 1, count: 8))
    var meter = FloodMeter()
    let start: UInt64 = 5_000_000_000
    func take(_ count: Int, at now: UInt64) -> Bool {
      (0..<count).contains { _ in ping.withUnsafeBytes { meter.received($0, at: now) } }
    }
    #expect(!take(1_000, at: start))
    for second in 1...5 as ClosedRange<UInt64> { #expect(!take(100, at: start + second * 1_000_000_000)) }
    #expect(!take(1_000, at: start + 100_000_000_000), "an hour refills no more than the bucket")
    #expect(take(1, at: start + 100_000_000_000))
    #expect(meter.isFlooded)
    #expect(take(1, at: start + 900_000_000_000), "the connection has ended")
  }

  @Test("Each request may cost six frames more, up to 1,000") func allowance() {
    let reset = Self.frame(3, 0, [0, 0, 0, 8])
    for (requests, expected) in [(1, 1_006), (10, 1_060), (166, 1_996), (167, 2_000), (5_000, 2_000)] {
      var meter = FloodMeter()
      for _ in 0..<requests { meter.requestSent() }
      #expect(Self.accepted(reset, by: meter) == expected, "\(requests) requests")
    }
  }

  @Test("DATA of the client allows only updates of windows") func updates() {
    let update = Self.frame(8, 0, [0, 0, 0, 1])
    for (count, expected) in [
      (0, 1_002), (1, 1_002), (511, 1_002), (512, 1_004), (16_384, 1_066), (-5, 1_002),
    ] {
      var meter = FloodMeter()
      meter.dataSent(count)
      #expect(Self.accepted(update, by: meter) == expected, "\(count) bytes")
      #expect(Self.accepted(Self.frame(4), by: meter) == 1_000, "\(count) bytes")
    }
    var meter = FloodMeter(burst: 1, rate: 1)
    for _ in 0..<3 { meter.dataSent(.max) }
    var saved = 0
    while saved < 300_000, !update.withUnsafeBytes({ meter.received($0, at: 1) }) { saved += 1 }
    #expect(saved == 262_145)
  }

  @Test("A server may answer each frame of one byte for the stream and for the connection") func tinyFrames()
  {
    var meter = FloodMeter(burst: 1, rate: 1)
    for _ in 0..<65_535 { meter.dataSent(1) }
    let updates = Self.frame(8, 0, [0, 0, 0, 1]) + Self.frame(8, 0, [0, 0, 0, 1])
    for _ in 0..<65_535 { _ = updates.withUnsafeBytes { meter.received($0, at: 1) } }
    #expect(!meter.isFlooded)
  }

  @Test("A busy connection is not a flood") func busyConnection() {
    var meter = FloodMeter()
    let response =
      Self.frame(8, 0, [0, 0, 1, 0]) + Self.frame(1, 4, [0x88]) + Self.frame(0, 0, [1, 2]) + Self.frame(0, 1)
      + Self.frame(3, 0, [0, 0, 0, 0])
    for _ in 0..<20_000 {
      meter.requestSent()
      #expect(!response.withUnsafeBytes { meter.received($0, at: 1) })
    }
  }

  @Test("Pieces of any size are read as the whole", .steps, arguments: 0..<6 as Range<UInt64>)
  func pieces(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var bytes: [UInt8] = []
    for _ in 0..<400 {
      let payload = [UInt8](
        repeating: UInt8.random(in: 0...9, using: &random), count: Int.random(in: 0...12, using: &random))
      bytes += Self.frame(
        UInt8.random(in: 0...12, using: &random), UInt8.random(in: 0...15, using: &random), payload)
    }
    /// Returns the number of bytes that are accepted.
    func accepted(by size: () -> Int) -> Int {
      var meter = FloodMeter(burst: Double(20 + seed * 50), rate: 1)
      meter.dataSent(1_000)
      meter.requestSent()
      var position = 0
      while position < bytes.count {
        let end = min(bytes.count, position + size())
        let isFlooded = bytes[position..<end].withUnsafeBytes { meter.received($0, at: 1) }
        #expect(isFlooded == meter.isFlooded)
        if isFlooded { return position }
        position = end
      }
      return position
    }
    step("pieces of one byte")
    let single = accepted { 1 }
    #expect(single > 0)
    for size in [2, 3, 7, 9, 10, 64] {
      step("pieces of \(size)")
      // The piece with the byte that ends the connection.
      let expected = single == bytes.count ? single : single / size * size
      #expect(accepted { size } == expected, "seed \(seed), pieces of \(size)")
    }
    step("one piece")
    #expect((accepted { bytes.count } == bytes.count) == (single == bytes.count), "seed \(seed)")
  }

  @Test("No frame is invented or lost, whatever its length") func lengths() {
    for length in [1, 255, 256, 65_535, 65_536, 70_000] {
      var meter = FloodMeter(burst: 2, rate: 1)
      let payload = [UInt8](repeating: 0, count: length)
      let unknown = Self.frame(0xEE, 8, payload)
      #expect(!unknown.withUnsafeBytes { meter.received($0, at: 1) }, "\(length)")
      #expect(!unknown.withUnsafeBytes { meter.received($0, at: 1) }, "\(length)")
      let head = Array(unknown.prefix(9))
      #expect(head.withUnsafeBytes { meter.received($0, at: 1) }, "the head of the third frame, \(length)")
    }
  }
}
