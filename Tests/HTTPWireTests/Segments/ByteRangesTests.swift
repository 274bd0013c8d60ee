import HTTPWire
import Randomness
import Testing

@Suite("Byte ranges") struct ByteRangesTests {
  @Test("Ranges that touch or overlap are joined")
  func joining() {
    var ranges = ByteRanges([10..<20, 30..<40])
    ranges.insert(20..<25)
    #expect(ranges.ranges == [10..<25, 30..<40])
    ranges.insert(24..<31)
    #expect(ranges.ranges == [10..<40])
    ranges.insert(0..<5)
    ranges.insert(7..<7)
    #expect(ranges.text == "0-4,10-39")
    #expect(ranges.count == 35)
    #expect(ranges.gaps(in: 0..<50) == [5..<10, 40..<50])
    #expect(ranges.gaps(in: 12..<30) == [])
    #expect(ranges.contains(12..<40) && !ranges.contains(4..<11))
    #expect(ranges.overlaps(4..<11) && !ranges.overlaps(5..<10))
  }

  @Test("The text of ranges is parsed to the same ranges", arguments: ["", "0-0", "0-4,10-19,30-30"])
  func text(_ text: String) {
    #expect(ByteRanges(text: text)?.text == text)
  }

  @Test(
    "Other texts are not ranges",
    arguments: [
      "-", "1", "5-4", "a-b", "0-4,", ",0-4", "0-+4", "0-9223372036854775807", "0-99999999999999999999",
      "0-1-2", "5-6,0-1", "0-4,4-5", "--", "0-4,,6-7",
    ])
  func invalid(_ text: String) {
    #expect(ByteRanges(text: text) == nil)
  }

  @Test("Random insertions agree with a set of offsets", .seeded)
  func random() {
    var generator = Seed.generator()
    for _ in 0..<200 {
      var ranges = ByteRanges()
      var offsets: Set<Int> = []
      for _ in 0..<30 {
        let start = Int.random(in: 0..<100, using: &generator)
        let range = start..<Int.random(in: start...min(100, start + 12), using: &generator)
        ranges.insert(range)
        offsets.formUnion(range)
        #expect(Set(ranges.ranges.flatMap { $0 }) == offsets)
        #expect(zip(ranges.ranges, ranges.ranges.dropFirst()).allSatisfy { $0.upperBound < $1.lowerBound })
        #expect(Set(ranges.gaps(in: 0..<100).flatMap { $0 }) == Set(0..<100).subtracting(offsets))
      }
    }
  }
}
