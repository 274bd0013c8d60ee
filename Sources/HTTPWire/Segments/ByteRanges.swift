/// A set of byte offsets, as disjoint ranges in ascending order. Adjacent ranges are joined.
package struct ByteRanges: Sendable, Equatable {
  package private(set) var ranges: [Range<Int>] = []

  package init() {}

  package init(_ ranges: [Range<Int>]) {
    for range in ranges { insert(range) }
  }

  /// Parses ``text``. Returns `nil` for any other text.
  package init?(text: some StringProtocol) {
    guard !text.isEmpty else { return }
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      let ends = part.split(separator: "-", omittingEmptySubsequences: false)
      guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]), first <= last,
        last < Int.max
      else { return nil }
      insert(first..<(last + 1))
    }
  }

  /// The ranges with inclusive ends, as in a `Range` field: `0-4,10-19`.
  package var text: String {
    ranges.map { "\($0.lowerBound)-\($0.upperBound - 1)" }.joined(separator: ",")
  }

  /// The number of bytes.
  package var count: Int { ranges.reduce(0) { $0 + $1.count } }

  package func contains(_ range: Range<Int>) -> Bool {
    range.isEmpty
      || ranges.contains { $0.lowerBound <= range.lowerBound && range.upperBound <= $0.upperBound }
  }

  package func overlaps(_ range: Range<Int>) -> Bool { ranges.contains { $0.overlaps(range) } }

  package mutating func insert(_ range: Range<Int>) {
    guard !range.isEmpty else { return }
    var joined = range
    let start = ranges.firstIndex { $0.upperBound >= range.lowerBound } ?? ranges.count
    var end = start
    while end < ranges.count, ranges[end].lowerBound <= range.upperBound {
      joined = min(joined.lowerBound, ranges[end].lowerBound)..<max(joined.upperBound, ranges[end].upperBound)
      end += 1
    }
    ranges.replaceSubrange(start..<end, with: [joined])
  }

  /// Returns the ranges of `whole` that are missing here.
  package func gaps(in whole: Range<Int>) -> [Range<Int>] {
    var gaps: [Range<Int>] = []
    var next = whole.lowerBound
    for range in ranges where range.upperBound > next && range.lowerBound < whole.upperBound {
      if range.lowerBound > next { gaps.append(next..<range.lowerBound) }
      next = range.upperBound
    }
    if next < whole.upperBound { gaps.append(next..<whole.upperBound) }
    return gaps
  }

  private static func number(_ text: some StringProtocol) -> Int? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return Int(text)
  }
}
