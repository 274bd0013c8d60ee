import FoundationEssentials
import HTTPEngine
import Testing

@Suite struct BodyBufferTests {
  static func bytes(_ count: Int, from start: Int = 0) -> [UInt8] {
    (start..<start + count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
  }

  static func append(_ bytes: [UInt8], to buffer: inout BodyBuffer) -> Bool {
    bytes.withUnsafeBytes { $0.baseAddress.map { buffer.append($0, count: bytes.count) } ?? true }
  }

  static func expect(
    _ buffer: inout BodyBuffer, gives data: Data?, _ location: SourceLocation = #_sourceLocation
  ) {
    let taken = buffer.take()
    #expect(taken == data, sourceLocation: location)
  }

  @Test(
    "Appended bytes are returned",
    arguments: [1, 100, 4096, 4097, 32_767, 32_768, 32_769, 100_000, 1_000_003])
  func appendedBytes(count: Int) {
    var buffer = BodyBuffer()
    var offset = 0
    while offset < count {
      let part = min(16_384, count - offset)
      #expect(Self.append(Self.bytes(part, from: offset), to: &buffer))
      offset += part
    }
    #expect(buffer.count == count)
    Self.expect(&buffer, gives: Data(Self.bytes(count)))
    #expect(buffer.count == 0)
    Self.expect(&buffer, gives: nil)
  }

  @Test("A buffer is reused") func reuse() {
    var buffer = BodyBuffer()
    var taken: [Data?] = []
    for count in [10, 70_000, 5, 32_768, 0, 200_000, 1] {
      #expect(Self.append(Self.bytes(count), to: &buffer))
      taken.append(buffer.take())
    }
    // Later bodies must not change bytes that were delivered.
    #expect(taken.map { $0?.count ?? 0 } == [10, 70_000, 5, 32_768, 0, 200_000, 1])
    #expect(taken[1] == Data(Self.bytes(70_000)))
    #expect(taken[5] == Data(Self.bytes(200_000)))
  }

  @Test("A cleared buffer is empty") func clear() {
    var buffer = BodyBuffer()
    for count in [10, 500_000] {
      #expect(Self.append(Self.bytes(count), to: &buffer))
      buffer.clear()
      #expect(buffer.count == 0)
      Self.expect(&buffer, gives: nil)
    }
  }

  @Test("A reservation has no content and an excessive one is ignored") func reservation() {
    var buffer = BodyBuffer()
    let isReserved = buffer.reserve(Int.max)
    #expect(isReserved)
    Self.expect(&buffer, gives: nil)
    #expect(Self.append([1, 2, 3], to: &buffer))
    let isReservedAgain = buffer.reserve(1)
    #expect(isReservedAgain)
    Self.expect(&buffer, gives: Data([1, 2, 3]))
  }
}
