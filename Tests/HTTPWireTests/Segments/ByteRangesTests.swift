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

  @Test(
    "The text of ranges is parsed to the same ranges",
    arguments: [
      "", "0-0", "0-4,10-19,30-30", "0-9223372036854775806", "0-4,9223372036854775806-9223372036854775806",
    ])
  func text(_ text: String) {
    #expect(ByteRanges(text: text)?.text == text)
  }

  @Test(
    "Other texts are not ranges",
    arguments: [
      "-", "1", "5-4", "a-b", "0-4,", ",0-4", "0-+4", "0-9223372036854775807", "0-99999999999999999999",
      "0-4,9223372036854775807-9223372036854775807", "0-1-2", "5-6,0-1", "0-4,4-5", "--", "0-4,,6-7",
    ])
  func invalid(_ text: String) {
    #expect(ByteRanges(text: text) == nil)
  }

  @Test("Sets with many ranges are joined, in any order", .timeLimit(.minutes(2)))
  func manyRanges() {
    let count = 1_000_000
    let even = (0..<count).map { $0 * 4..<$0 * 4 + 1 }
    let odd = (0..<count).map { $0 * 4 + 2..<$0 * 4 + 3 }
    var joined = ByteRanges(even)
    joined.insert(ByteRanges(odd))
    #expect(joined.ranges.count == 2 * count && joined.count == 2 * count)
    #expect(joined.ranges.prefix(3) == [0..<1, 2..<3, 4..<5])
    joined.insert(ByteRanges((0..<count).reversed().map { $0 * 4 + 1..<$0 * 4 + 2 }))
    #expect(joined.ranges.count == count && joined.count == 3 * count)
  }

  @Test("The union of random sets agrees with insertions of their ranges", .seeded)
  func randomUnion() {
    var generator = Seed.generator()
    for _ in 0..<500 {
      let sets = (0..<2).map { _ in
        ByteRanges(
          (0..<Int.random(in: 0...8, using: &generator)).map { _ in
            let start = Int.random(in: 0..<60, using: &generator)
            return start..<start + Int.random(in: 0...6, using: &generator)
          })
      }
      var (joined, expected) = (sets[0], sets[0])
      joined.insert(sets[1])
      for range in sets[1].ranges { expected.insert(range) }
      #expect(joined == expected, "\(sets[0].text) and \(sets[1].text)")
    }
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
