/// The segments of a download of known length. Pure.
///
/// A segment is a range of missing bytes that one request transfers. Each missing byte belongs to at most one
/// segment. If no byte is left for a new segment, it takes half of the rest of the largest one. So a slow connection
/// does not delay the end.
package struct SegmentPlan: Sendable {
  /// A range that is being transferred.
  package struct Segment: Sendable, Equatable {
    /// The offset of the next byte.
    package fileprivate(set) var position: Int
    /// The offset after the last byte.
    package fileprivate(set) var end: Int

    package var rest: Range<Int> { position..<end }
  }

  package let length: Int
  /// The smallest size of a segment, unless fewer bytes are missing.
  package let minimum: Int
  /// The size of new segments.
  private let share: Int
  /// The bytes that are in the file.
  package private(set) var present: ByteRanges
  package private(set) var segments: [Int: Segment] = [:]

  /// Makes a plan for the missing bytes of a file, without segments.
  ///
  /// - Parameter connections: The number of segments at a time.
  package init(length: Int, present: ByteRanges = ByteRanges(), connections: Int, minimum: Int) {
    self.length = max(0, length)
    self.minimum = max(1, minimum)
    self.present = ByteRanges(
      present.ranges.map { $0.clamped(to: 0..<max(0, length)) })
    let missing = self.length - self.present.count
    let (quotient, remainder) = missing.quotientAndRemainder(dividingBy: max(1, connections))
    share = max(self.minimum, remainder == 0 ? quotient : quotient + 1)
  }

  package var isComplete: Bool { present.count == length }

  /// Begins a segment. Returns `nil` if the segments that run cover all missing bytes and none is worth dividing.
  ///
  /// - Parameter limit: The maximum size, for a request that only asks for the length.
  package mutating func begin(_ id: Int, atMost limit: Int = .max) -> Segment? {
    var covered = present
    for segment in segments.values { covered.insert(segment.rest) }
    let segment: Segment
    if let gap = covered.gaps(in: 0..<length).first {
      let size = min(share, max(1, limit))
      // A remainder smaller than the minimum does not become a separate segment.
      let isWhole = gap.count <= size || (gap.count - size < minimum && limit == .max)
      segment = Segment(
        position: gap.lowerBound, end: isWhole ? gap.upperBound : gap.lowerBound + size)
    } else if let taken = divideLargest() {
      segment = taken
    } else {
      return nil
    }
    segments[id] = segment
    return segment
  }

  /// Takes the second half of the largest rest.
  private mutating func divideLargest() -> Segment? {
    let largest = segments.max { ($0.value.rest.count, $1.key) < ($1.value.rest.count, $0.key) }
    guard let (id, victim) = largest, victim.rest.count / 2 >= minimum else { return nil }
    let middle = victim.end - victim.rest.count / 2
    segments[id]?.end = middle
    return Segment(position: middle, end: victim.end)
  }

  /// Returns the range in the file of the next `count` bytes of a segment, without those after its end.
  package func room(for count: Int, in id: Int) -> Range<Int> {
    guard let segment = segments[id] else { return 0..<0 }
    return segment.position..<(segment.position + min(max(0, count), segment.rest.count))
  }

  /// Notes that bytes of a segment are in the file.
  package mutating func wrote(_ range: Range<Int>, in id: Int) {
    guard let segment = segments[id], range.lowerBound == segment.position, range.upperBound <= segment.end
    else { return }
    segments[id]?.position = range.upperBound
    present.insert(range)
  }

  /// Lets a segment end earlier, because its response has fewer bytes.
  package mutating func limit(_ id: Int, to end: Int) {
    guard let segment = segments[id], segment.position < end, end < segment.end else { return }
    segments[id]?.end = end
  }

  /// Ends a segment; its remainder goes to later segments.
  package mutating func end(_ id: Int) { segments[id] = nil }
}
