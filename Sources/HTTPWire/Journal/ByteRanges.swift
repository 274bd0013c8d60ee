/// A set of byte offsets, as disjoint ranges in ascending order. Adjacent ranges are joined.
package struct ByteRanges: Sendable, Equatable {
  package private(set) var ranges: [Range<Int>] = []

  package init() {}

  /// Makes the set of the bytes of ranges in any order.
  package init(_ ranges: [Range<Int>]) {
    // In ascending order, each range is inserted at the end. An insertion before other ranges moves all of them.
    for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) { insert(range) }
  }

  /// Makes the range of the first bytes of a file.
  package init(first count: Int64) { insert(0..<max(0, Int(clamping: count))) }

  /// Parses ``text``. Returns `nil` for any other text. Ranges in another order could take the time of a square.
  package init?(text: some StringProtocol) {
    guard !text.isEmpty else { return }
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      let ends = part.split(separator: "-", omittingEmptySubsequences: false)
      guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]), first <= last,
        last < Int.max, first >= ranges.last?.upperBound ?? 0
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
    let start = firstIndex(endingAtOrAfter: range.lowerBound)
    var end = start
    while end < ranges.count, ranges[end].lowerBound <= range.upperBound {
      joined = min(joined.lowerBound, ranges[end].lowerBound)..<max(joined.upperBound, ranges[end].upperBound)
      end += 1
    }
    ranges.replaceSubrange(start..<end, with: [joined])
  }

  /// Inserts all bytes of another set, in a time that grows with the numbers of both sets' ranges.
  package mutating func insert(_ other: ByteRanges) {
    var (left, right) = (ranges[...], other.ranges[...])
    var joined = ByteRanges()
    while let range = Self.popFirst(&left, &right) { joined.insert(range) }
    ranges = joined.ranges
  }

  /// Removes the first range of one list, the one that begins earlier; `nil` if both are empty.
  private static func popFirst(
    _ left: inout ArraySlice<Range<Int>>, _ right: inout ArraySlice<Range<Int>>
  ) -> Range<Int>? {
    guard let first = left.first, let other = right.first, other.lowerBound < first.lowerBound else {
      return left.popFirst() ?? right.popFirst()
    }
    return right.popFirst()
  }

  /// Returns the index of the first range that ends at an offset or after it.
  private func firstIndex(endingAtOrAfter offset: Int) -> Int {
    var (low, high) = (0, ranges.count)
    while low < high {
      let middle = low + (high - low) / 2
      if ranges[middle].upperBound < offset { low = middle + 1 } else { high = middle }
    }
    return low
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

  /// Returns the bytes that are also among the first `count` bytes of a file.
  package func prefix(_ count: Int) -> ByteRanges {
    ByteRanges(ranges.filter { $0.lowerBound < count }.map { $0.lowerBound..<min($0.upperBound, count) })
  }

  private static func number(_ text: some StringProtocol) -> Int? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return Int(text)
  }
}

extension ByteRanges: RawRepresentable, Codable {
  package init?(rawValue: String) { self.init(text: rawValue) }
  package var rawValue: String { text }
}
