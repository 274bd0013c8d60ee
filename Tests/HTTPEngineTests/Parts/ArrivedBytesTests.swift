import FoundationEssentials
import Testing

@testable import HTTPEngine

@Suite("Bytes that have arrived") struct ArrivedBytesTests {
  private static func append(_ new: some Sequence<UInt8>, to bytes: inout ArrivedBytes) {
    Array(new).withUnsafeBytes { bytes.append($0) }
  }

  @Test("Bytes are taken in their order, whatever the sizes") func order() {
    var bytes = ArrivedBytes()
    var taken: [UInt8] = []
    var next = 0
    for index in 0..<500 {
      let new = next..<(next + index % 7)
      Self.append(new.map { UInt8(truncatingIfNeeded: $0) }, to: &bytes)
      next = new.upperBound
      let before = bytes.count
      let piece = bytes.take(index % 5)
      #expect(piece.count == min(before, index % 5) && piece.startIndex == 0)
      #expect(bytes.count == before - piece.count)
      taken += piece
    }
    taken += bytes.take(.max)
    #expect(taken == (0..<next).map { UInt8(truncatingIfNeeded: $0) } && bytes.count == 0)
    #expect(bytes.take(1).isEmpty && bytes.take(-1).isEmpty)
  }

  @Test("Many small reads of many bytes move each byte about once") func smallReads() {
    var bytes = ArrivedBytes()
    let count = 1 << 20
    Self.append(repeatElement(7, count: count), to: &bytes)
    for _ in 0..<(count / 16) { #expect(bytes.take(16).count == 16) }
    #expect(bytes.count == 0 && bytes.movedCount <= count)
  }
}
