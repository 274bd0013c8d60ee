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

/// The servers that have the file: the first one and its mirrors. Pure: the time is a parameter.
package struct SegmentSources: Sendable {
  /// The reason for which a source is not used any more.
  package enum DropReason: Sendable, Equatable {
    /// Another version of the file, or a version that cannot be compared.
    case differs
    /// A response without ranges, or with other ranges than requested.
    case hasNoRanges
    /// A refusal of the request, with its status.
    case status(Int)
    /// Failures that were too many, or that do not pass.
    case failed
  }

  private struct Source {
    /// The validator of the version that it sends; `nil` before its first response.
    var validator: String?
    /// The number of failures since enough bytes have arrived.
    var failures = 0
    /// The number of bytes since the last failure.
    var received = 0
    /// The number of ranges in a row that were far shorter than requested.
    var shortRanges = 0
    /// The earliest time at which a request may be sent to it.
    var notBefore = Duration.zero
    /// The number of requests that it takes at a time, after it refused another one; `nil` if that is not known.
    var limit: Int?
    var dropReason: DropReason?
  }

  /// The number of failures, without enough bytes in between, after which a source is dropped.
  package static let failureLimit = 5

  /// The number of bytes that forgive earlier failures, if half of those that were expected are not fewer.
  package static let forgivingCount = 65_536

  /// The number of ranges in a row, far shorter than requested, that are read. Later ones are failures.
  package static let shortRangeLimit = 5

  private var sources: [Source]
  /// The source that was dropped last.
  package private(set) var lastDropped: Int?

  package init(count: Int) {
    sources = Array(repeating: Source(), count: max(1, count))
  }

  /// The reasons of all sources that were dropped.
  package var dropped: [Int: DropReason] {
    var result: [Int: DropReason] = [:]
    for (index, source) in sources.enumerated() { result[index] = source.dropReason }
    return result
  }

  package var isEmpty: Bool { sources.allSatisfy { $0.dropReason != nil } }

  package func isDropped(_ index: Int) -> Bool { sources[index].dropReason != nil }

  package func validator(of index: Int) -> String? { sources[index].validator }

  package mutating func setValidator(_ validator: String?, of index: Int) {
    sources[index].validator = validator
  }

  /// Forgets the validators, because the file has changed.
  package mutating func forgetValidators() {
    for index in sources.indices { sources[index].validator = nil }
  }

  /// Returns the usable source with the fewest segments; `nil` if there is none at `now`.
  package func next(load: [Int: Int], at now: Duration) -> Int? {
    sources.indices.filter { isOpen($0, load) && sources[$0].notBefore <= now }
      .min { (load[$0, default: 0], $0) < (load[$1, default: 0], $1) }
  }

  /// Returns the first time after `now` at which another source can be used; `nil` if there is none.
  package func nextTime(load: [Int: Int], after now: Duration) -> Duration? {
    sources.indices.filter { isOpen($0, load) && sources[$0].notBefore > now }.map { sources[$0].notBefore }
      .min()
  }

  private func isOpen(_ index: Int, _ load: [Int: Int]) -> Bool {
    sources[index].dropReason == nil && load[index, default: 0] < sources[index].limit ?? .max
  }

  /// Limits the concurrent requests to a source to the number that it has accepted.
  package mutating func limit(_ index: Int, to count: Int) { sources[index].limit = max(1, count) }

  /// Notes received bytes, which forgive earlier failures if they are not few. A source that fails after each byte
  /// would be asked as often as the file has bytes.
  ///
  /// - Parameter expected: The number of bytes of which a source sends at least half.
  package mutating func received(_ count: Int, of expected: Int, from index: Int) {
    sources[index].received += count
    let enough = min(expected - expected / 2, Self.forgivingCount)
    if count > 0, sources[index].received >= enough { sources[index].failures = 0 }
  }

  /// Notes the size of a range. Returns false if it is one of too many short ones: a source that sends a byte of each
  /// range would be asked as often as the file has bytes.
  ///
  /// - Parameter expected: The number of bytes of which a source sends at least half.
  package mutating func accepts(_ count: Int, of expected: Int, from index: Int) -> Bool {
    if count >= expected - expected / 2 {
      sources[index].shortRanges = 0
    } else if sources[index].shortRanges < Self.shortRangeLimit {
      sources[index].shortRanges += 1
    } else {
      return false
    }
    return true
  }

  /// Notes a failure that may pass. After several the source is dropped, otherwise it waits.
  ///
  /// - Parameter retryAfter: The delay that the server asked for.
  package mutating func failed(
    _ index: Int, at now: Duration, reason: DropReason = .failed, retryAfter: Duration? = nil
  ) {
    sources[index].failures += 1
    sources[index].received = 0
    let failures = sources[index].failures
    guard failures < Self.failureLimit else { return drop(index, reason) }
    // 0.25, 0.5, 1, 2 seconds.
    wait(index, at: now, for: .milliseconds(125 << failures), retryAfter)
  }

  /// Lets a source wait that has refused another request while it answers some. That is not a failure.
  package mutating func refusedAnother(_ index: Int, at now: Duration, retryAfter: Duration? = nil) {
    wait(index, at: now, for: .milliseconds(250), retryAfter)
  }

  private mutating func wait(_ index: Int, at now: Duration, for delay: Duration, _ retryAfter: Duration?) {
    sources[index].notBefore = now + max(delay, min(retryAfter ?? .zero, .seconds(60)))
  }

  package mutating func drop(_ index: Int, _ reason: DropReason) {
    guard sources[index].dropReason == nil else { return }
    sources[index].dropReason = reason
    lastDropped = index
  }
}

/// The rate of a transfer over a sliding window. Pure: the time is a parameter.
package struct TransferRate: Sendable {
  private let window: Duration
  /// Cumulative counts, one for each eighth of the window at most.
  private var samples: [(time: Duration, count: Int)] = []
  private var count = 0

  package init(window: Duration = .seconds(8)) {
    self.window = window
  }

  /// Begins to measure. Earlier bytes do not count, such as those before a suspension.
  package mutating func begin(at now: Duration) {
    samples = [(now, count)]
  }

  package mutating func add(_ bytes: Int, at now: Duration) {
    count += bytes
    if let last = samples.last, now - last.time < window / 8 { return }
    samples.append((now, count))
    // The newest sample before the window is its beginning.
    while samples.count > 2, now - samples[1].time >= window { samples.removeFirst() }
  }

  /// Returns the bytes per second; `nil` as long as no time has passed.
  package func bytesPerSecond(at now: Duration) -> Double? {
    guard let first = samples.first(where: { now - $0.time <= window }) ?? samples.last else { return nil }
    let time = now - first.time
    guard time > .zero else { return nil }
    return Double(count - first.count)
      / (Double(time.components.seconds) + Double(time.components.attoseconds) / 1e18)
  }
}
