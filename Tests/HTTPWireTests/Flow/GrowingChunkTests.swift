import FoundationEssentials
import HTTPWire
import Testing

@Suite("A growing chunk") struct GrowingChunkTests {
  private let memory = ChunkMemory()

  private func append(_ byte: UInt8, _ count: Int, to chunk: GrowingChunk) -> Bool {
    [UInt8](repeating: byte, count: count).withUnsafeBytes { chunk.append($0) }
  }

  @Test("Full pieces are joined, up to a short one") func joined() {
    let chunk = GrowingChunk(in: memory)
    for byte in 1...3 { #expect(append(UInt8(byte), 16_384, to: chunk)) }
    #expect(append(4, 5, to: chunk))
    #expect(!append(5, 5, to: chunk), "a short piece is the end of what was read")
    let expected =
      (1...3).flatMap { [UInt8](repeating: UInt8($0), count: 16_384) } + [UInt8](repeating: 4, count: 5)
    #expect(chunk.data == Data(expected))
  }

  @Test("A chunk has at most the size of its block") func full() {
    let chunk = GrowingChunk(in: memory)
    #expect(append(1, 65_536, to: chunk) && append(2, 65_535, to: chunk))
    #expect(!append(3, 16_384, to: chunk) && append(3, 1, to: chunk))
    #expect(chunk.data.count == ChunkMemory.blockSize)
  }

  @Test("Memory is used again after its bytes were released, and not before") func reuse() {
    var first: Data?
    do {
      let chunk = GrowingChunk(in: memory)
      _ = append(1, 20_000, to: chunk)
      first = chunk.data
    }
    let address = first.map { $0.withUnsafeBytes { Int(bitPattern: $0.baseAddress) } }
    let second = GrowingChunk(in: memory)
    _ = append(2, 20_000, to: second)
    #expect(first == Data(repeating: 1, count: 20_000))
    first = nil
    let third = GrowingChunk(in: memory)
    _ = append(3, 20_000, to: third)
    #expect(third.data.withUnsafeBytes { Int(bitPattern: $0.baseAddress) } == address)
    #expect(second.data == Data(repeating: 2, count: 20_000))
  }

  @Test("The bytes of one reader do not change with those of another one") func twoReaders() {
    let chunk = GrowingChunk(in: memory)
    #expect(append(1, 20_000, to: chunk))
    let first = chunk.data
    var second = chunk.data
    second[0] = 2
    #expect(first[0] == 1 && second[0] == 2 && chunk.data[0] == 1)
  }

  @Test(
    "Only a piece that others are likely to follow begins a chunk",
    arguments: [
      (0, false), (16_383, false), (16_384, true), (131_071, true), (131_072, false),
    ])
  func beginning(count: Int, isLikely: Bool) {
    [UInt8](repeating: 0, count: count).withUnsafeBytes {
      #expect(GrowingChunk.mayBegin(with: $0) == isLikely)
    }
  }
}
