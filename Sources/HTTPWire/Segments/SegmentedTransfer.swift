/// The course of a download in segments. Pure: it gets events, and returns the actions of its owner.
///
/// The first request asks for the smallest segment, from the first missing byte. If the response is a range of a
/// version with a strong validator, further requests get other segments. Otherwise one request gets the whole file, as
/// it does if the server refuses the range, or sends a later range without the validator of the first one.
package struct SegmentedTransfer: Sendable {
  /// A request of one segment.
  package struct SegmentRequest: Sendable, Equatable {
    package let id: Int
    package let source: Int

    package init(id: Int, source: Int) {
      self.id = id
      self.source = source
    }
  }

  package enum Failure: Sendable, Equatable {
    /// The file changed again after the download had begun again.
    case changed
    /// No source is left. The value is the last one that was dropped.
    case noSource(Int)
    /// The file is longer than the limit. The value is its length.
    case tooLarge(Int)
  }

  package enum Action: Sendable, Equatable {
    case send(SegmentRequest)
    /// Cancels a request and ignores its later events.
    case stop(Int)
    /// Discards the bytes in the file. With a version the file is to get its length.
    case prepare(Representation?)
    /// Calls ``SegmentedTransfer/wake(at:)`` at this time.
    case wake(Duration)
    /// The download begins again, because the file has changed or cannot be continued.
    case beginAgain
    /// The file is complete.
    case finish
    case fail(Failure)
  }

  /// The end of a request.
  package enum End: Sendable, Equatable {
    case complete
    /// A failure that may pass.
    case interrupted
    /// A failure that another attempt would have, too.
    case failed
  }

  private enum Mode: Sendable {
    /// Before the first response. A version is one of an earlier process, which has to be confirmed.
    case asking
    case segments
    /// One request gets the whole file, of this length if it is known.
    case stream(length: Int?)
  }

  private struct Running: Sendable {
    let source: Int
    /// The end of the range that was requested; `nil` for the whole file.
    var requestedEnd: Int?
    var hasHead = false
    /// The number of bytes of which its response has at least half: the requested ones, or the smallest segment.
    var expected = 0
    /// Whether all its bytes have arrived and only its end is awaited, so that its connection can be reused.
    var isDraining = false
  }

  package let connections: Int
  package let minimum: Int
  /// The largest length of the file; `nil` for any.
  package let lengthLimit: Int64?
  /// Whether a checksum will prove the content, so that mirrors with another validator can be used.
  package var hasChecksum: Bool
  package private(set) var sources: SegmentSources
  package private(set) var version: Representation?
  package private(set) var plan: SegmentPlan?
  /// The number of times that the file changed after segments of it were received.
  private var changeCount = 0
  /// The number of times that the download began again.
  package private(set) var restartCount = 0
  private var mode = Mode.asking
  /// Whether the whole file was requested because the request for a range was refused. The bytes in the file stay until
  /// the server sends it.
  private var isRangeRefused = false
  /// Whether the file has bytes of an earlier process although the whole file was requested.
  private var keepsEarlierBytes: Bool { isRangeRefused && version != nil }
  private var running: [Int: Running] = [:]
  private var lastID = 0
  /// The number of bytes of a stream.
  private var streamed = 0
  package private(set) var isOver = false

  package init(
    sources: Int, connections: Int, minimum: Int, hasChecksum: Bool, lengthLimit: Int64? = nil
  ) {
    self.lengthLimit = lengthLimit
    self.sources = SegmentSources(count: sources)
    self.connections = max(1, connections)
    self.minimum = max(1, minimum)
    self.hasChecksum = hasChecksum
  }

  /// The number of bytes in the file.
  package var count: Int {
    if case .stream = mode, !keepsEarlierBytes { streamed } else { plan?.present.count ?? 0 }
  }
  /// The length of the file, if it is known.
  package var length: Int? { if case .stream(let length) = mode { length } else { version?.length } }
  /// The number of requests that transfer bytes.
  package var activeCount: Int { running.values.count { $0.hasHead && !$0.isDraining } }
  /// Whether one request gets the whole file. There is no ``plan`` then.
  package var isStream: Bool { if case .stream = mode { !keepsEarlierBytes } else { false } }

  // MARK: Events of the owner

  /// Begins, or continues the download of an earlier process.
  ///
  /// - Parameters:
  ///   - version: The version of the bytes that are in the file.
  ///   - present: The bytes that exist already.
  package mutating func start(
    _ version: Representation?, present: ByteRanges = ByteRanges(), at now: Duration
  ) -> [Action] {
    if let version, !present.ranges.isEmpty {
      self.version = version
      plan = SegmentPlan(
        length: version.length ?? 0, present: present, connections: connections, minimum: minimum)
      if let failure = excess(of: version.length) { return fail(failure) }
      sources.setValidator(version.validator, of: 0)
      if plan?.isComplete == true { return finish() }
    }
    return fill(at: now)
  }

  /// Sends further requests after a delay.
  package mutating func wake(at now: Duration) -> [Action] { isOver ? [] : fill(at: now) }

  /// Returns the range that a request has to ask for now. `nil` stands for the whole file. The range is empty if all
  /// bytes of the segment have arrived, and for a request that is over: it may have been stopped before it was sent.
  package func range(of id: Int) -> Range<Int>? {
    guard let request = running[id] else { return 0..<0 }
    guard request.requestedEnd != nil else { return nil }
    guard let segment = plan?.segments[id] else { return 0..<minimum }
    return segment.rest
  }

  /// Returns the validator for `If-Range`; `nil` if the version of the source is not known.
  package func condition(of id: Int) -> String? {
    guard let request = running[id], request.requestedEnd != nil else { return nil }
    return sources.validator(of: request.source)
  }

  /// Takes the head of a response. The body is read if the request is still running afterwards.
  package mutating func receive(
    _ answer: SegmentAnswer, for id: Int, retryAfter: Duration? = nil, at now: Duration
  ) -> [Action] {
    guard !isOver, let request = running[id] else { return [] }
    // A retrier has sent the request again. Bytes of the attempt that failed may still have to be written, and would be
    // mistaken for bytes of this one.
    if request.hasHead { return [.stop(id)] + ended(id, .interrupted, at: now) }
    running[id]?.hasHead = true
    running[id]?.expected = min(minimum, plan?.segments[id]?.rest.count ?? minimum)
    if case .refused(let status, let isTemporary) = answer {
      return receiveRefusal(
        status, isTemporary: isTemporary, for: id, request, retryAfter: retryAfter, at: now)
    }
    switch mode {
    case .stream: return receiveWhole(answer, for: id, at: now)
    case .asking where version == nil: return receiveFirst(answer, for: id, at: now)
    case .asking, .segments: return receiveNext(answer, for: id, request.source, at: now)
    }
  }

  /// Returns where the next bytes of a response belong; empty if they are to be dropped.
  package func room(for count: Int, in id: Int) -> Range<Int> {
    guard !isOver, let request = running[id], request.hasHead, !request.isDraining else { return 0..<0 }
    if case .stream = mode { return streamed..<(streamed + count) }
    return plan?.room(for: count, in: id) ?? 0..<0
  }

  /// Notes that bytes are in the file.
  ///
  /// - Parameter excess: The number of bytes that the response has sent after them.
  package mutating func wrote(_ range: Range<Int>, excess: Int, in id: Int, at now: Duration) -> [Action] {
    guard !isOver, let request = running[id] else { return [] }
    // The response is not one of HTTP.
    guard request.hasHead else { return drop(request.source, .hasNoRanges, because: id, at: now) }
    if case .stream = mode {
      if !range.isEmpty { streamed = range.upperBound }
      return []
    }
    sources.received(range.count, of: request.expected, from: request.source)
    plan?.wrote(range, in: id)
    guard plan?.segments[id]?.rest.isEmpty != false else { return [] }
    if plan?.isComplete == true { return finish() }
    // A segment that was divided ends before its response, which would continue.
    if plan?.segments[id].map({ $0.end == request.requestedEnd }) == true, excess == 0 {
      running[id]?.isDraining = true
      return []
    }
    guard request.isDraining ? excess > 0 : true else { return [] }
    end(id)
    return [.stop(id)] + fill(at: now)
  }

  /// Takes the end of a request.
  package mutating func ended(_ id: Int, _ outcome: End, at now: Duration) -> [Action] {
    guard !isOver, let request = running[id] else { return [] }
    if outcome == .complete, !request.hasHead {
      return drop(request.source, .hasNoRanges, because: id, at: now)
    }
    if case .stream(let length) = mode, outcome == .complete, length ?? streamed == streamed {
      end(id)
      return finish()
    }
    let isWhole = plan?.segments[id]?.rest.isEmpty ?? false
    end(id)
    switch outcome {
    case _ where isWhole: break
    case .failed: sources.drop(request.source, .failed)
    // A response that ends before its range does has failed, too.
    case .complete, .interrupted: sources.failed(request.source, at: now)
    }
    guard case .stream = mode, streamed > 0 else { return fill(at: now) }
    streamed = 0
    return beginAgain() + fill(at: now)
  }

  // MARK: Heads

  /// The statuses with which servers refuse a request because of its range, or because of the number of requests.
  private static let rangeRefusals: Set<Int> = [400, 403, 405, 501]

  /// Takes a response with another status than 200, 206 and 416.
  private mutating func receiveRefusal(
    _ status: Int, isTemporary: Bool, for id: Int, _ request: Running, retryAfter: Duration?, at now: Duration
  ) -> [Action] {
    let mayConcernRange = request.requestedEnd != nil && Self.rangeRefusals.contains(status)
    if case .asking = mode, mayConcernRange {
      isRangeRefused = true
      return askForWhole(insteadOf: id, at: now)
    }
    end(id)
    // The server may limit the connections of a client.
    let accepted = load[request.source]
    if isTemporary || (mayConcernRange && accepted != nil) {
      if let accepted {
        sources.limit(request.source, to: accepted)
        sources.refusedAnother(request.source, at: now, retryAfter: retryAfter)
      } else {
        sources.failed(request.source, at: now, reason: .status(status), retryAfter: retryAfter)
      }
    } else {
      sources.drop(request.source, .status(status))
      // Another source may send ranges.
      if isRangeRefused { (mode, isRangeRefused) = (.asking, false) }
    }
    return [.stop(id)] + fill(at: now)
  }

  /// Returns the failure of a file that is longer than the limit.
  private func excess(of length: Int?) -> Failure? {
    guard let length, let lengthLimit, length > lengthLimit else { return nil }
    return .tooLarge(length)
  }

  /// Takes the first response, which decides between segments and one stream.
  private mutating func receiveFirst(_ answer: SegmentAnswer, for id: Int, at now: Duration) -> [Action] {
    guard let source = running[id]?.source else { return [] }
    switch answer {
    case .part(let range, let length, let validator?) where range.lowerBound == 0:
      if let failure = excess(of: length) { return fail(failure) }
      let version = Representation(length: length, validator: validator)
      self.version = version
      sources.setValidator(validator, of: source)
      mode = .segments
      var plan = SegmentPlan(length: length, connections: connections, minimum: minimum)
      let size = running[id]?.requestedEnd ?? minimum
      running[id]?.requestedEnd = plan.begin(id, atMost: size)?.end
      self.plan = plan
      limit(id, to: range.upperBound)
      return [.prepare(version)] + fill(at: now)
    case .whole(let length, _):
      if let failure = excess(of: length) { return fail(failure) }
      mode = .stream(length: length)
      running[id]?.requestedEnd = nil
      return [.prepare(nil)]
    case .part, .unsatisfiable, .unusable: return askForWhole(insteadOf: id, at: now)
    case .refused: return []
    }
  }

  /// Requests the whole file by one request, because ranges cannot be combined.
  private mutating func askForWhole(insteadOf id: Int, at now: Duration) -> [Action] {
    end(id)
    mode = .stream(length: nil)
    return [.stop(id)] + fill(at: now)
  }

  /// Takes the response of a request for the whole file.
  private mutating func receiveWhole(_ answer: SegmentAnswer, for id: Int, at now: Duration) -> [Action] {
    guard let source = running[id]?.source else { return [] }
    guard case .whole(let length, _) = answer else {
      end(id)
      sources.drop(source, .hasNoRanges)
      return [.stop(id)] + fill(at: now)
    }
    if let failure = excess(of: length) { return fail(failure) }
    mode = .stream(length: length)
    streamed = 0
    guard keepsEarlierBytes else { return [.prepare(nil)] }
    // Only now the bytes of an earlier process are of no use.
    (version, plan, isRangeRefused) = (nil, nil, false)
    return beginAgain()
  }

  /// Whether a part of a source belongs to the file. A mirror may have a validator of its own, because the checksum
  /// proves its bytes.
  private func isOfFile(_ validator: String, known: String?, _ version: Representation) -> Bool {
    guard known == nil || Representation.isSame(known, validator) else { return false }
    return Representation.isSame(validator, version.validator)
      || hasChecksum && !Representation.isSame(known ?? validator, version.validator)
  }

  /// Takes a response when the version of the file is known.
  private mutating func receiveNext(
    _ answer: SegmentAnswer, for id: Int, _ source: Int, at now: Duration
  ) -> [Action] {
    guard let version else { return [] }
    let known = sources.validator(of: source)
    switch answer {
    case .part(let range, let length, let validator):
      guard length == version.length else { return differs(id, source, at: now) }
      guard let validator else { return isUnproven(id, source, at: now) }
      guard isOfFile(validator, known: known, version) else { return differs(id, source, at: now) }
      guard range.lowerBound == plan?.segments[id]?.position else {
        return drop(source, .hasNoRanges, because: id, at: now)
      }
      sources.setValidator(validator, of: source)
      guard isLongEnough(range, id, source) else {
        end(id)
        sources.failed(source, at: now)
        return [.stop(id)] + fill(at: now)
      }
      limit(id, to: range.upperBound)
      if case .asking = mode {
        mode = .segments
        return fill(at: now)
      }
      return []
    case .whole(let length, let validator):
      let isSame =
        Representation.isSame(validator, known ?? version.validator)
        && (length ?? version.length) == version.length
      guard isSame else { return differs(id, source, at: now) }
      guard source == 0 else { return drop(source, .hasNoRanges, because: id, at: now) }
      // The server stopped to send ranges, and this response has the whole file.
      let others = stopAll(but: id)
      plan = nil
      mode = .stream(length: length)
      streamed = 0
      running[id]?.requestedEnd = nil
      return others + beginAgain()
    case .unsatisfiable: return differs(id, source, at: now)
    case .unusable: return drop(source, .hasNoRanges, because: id, at: now)
    case .refused: return []
    }
  }

  /// Whether a range has enough of the requested bytes, or is one of few that have not. A server may always send less
  /// than was requested, but not less than half of the smallest segment.
  private mutating func isLongEnough(_ range: Range<Int>, _ id: Int, _ source: Int) -> Bool {
    guard plan?.segments[id] != nil, let expected = running[id]?.expected else { return true }
    return sources.accepts(range.count, of: expected, from: source)
  }

  /// Limits a request to the range that the server announced, which may be shorter than the requested one (RFC 9110
  /// §15.3.7). Bytes after it are not the ones that follow in the file.
  private mutating func limit(_ id: Int, to end: Int) {
    plan?.limit(id, to: end)
    if let requestedEnd = running[id]?.requestedEnd, end < requestedEnd { running[id]?.requestedEnd = end }
  }

  /// Takes a range without a strong validator. It may be of another version, also if the request had `If-Range`, so it
  /// is not combined with other ranges (RFC 9110 §15.3.7.3).
  private mutating func isUnproven(_ id: Int, _ source: Int, at now: Duration) -> [Action] {
    guard source == 0 else { return drop(source, .differs, because: id, at: now) }
    let actions = stopAll()
    version = nil
    plan = nil
    mode = .stream(length: nil)
    return actions + beginAgain() + fill(at: now)
  }

  /// Drops a source that has another version. If the first source has one, the download begins again.
  private mutating func differs(_ id: Int, _ source: Int, at now: Duration) -> [Action] {
    guard source == 0, sources.validator(of: source) != nil else {
      return drop(source, .differs, because: id, at: now)
    }
    var actions = stopAll()
    if case .segments = mode {
      changeCount += 1
      if changeCount > 1 { return actions + fail(.changed) }
    }
    sources.forgetValidators()
    version = nil
    plan = nil
    mode = .asking
    actions += beginAgain()
    return actions + fill(at: now)
  }

  private mutating func beginAgain() -> [Action] {
    restartCount += 1
    return [.prepare(nil), .beginAgain]
  }

  private mutating func drop(
    _ source: Int, _ reason: SegmentSources.DropReason, because id: Int, at now: Duration
  ) -> [Action] {
    sources.drop(source, reason)
    var actions: [Action] = []
    for (other, request) in running.sorted(by: { $0.key < $1.key }) where request.source == source {
      end(other)
      actions.append(.stop(other))
    }
    return actions + fill(at: now)
  }

  // MARK: Requests

  /// The number of requests for each source.
  private var load: [Int: Int] {
    running.values.reduce(into: [:]) { $0[$1.source, default: 0] += 1 }
  }

  private mutating func end(_ id: Int) {
    running[id] = nil
    plan?.end(id)
  }

  private mutating func stopAll(but kept: Int? = nil) -> [Action] {
    let ids = running.keys.filter { $0 != kept }.sorted()
    for id in ids { end(id) }
    return ids.map { .stop($0) }
  }

  private mutating func finish() -> [Action] {
    let actions = stopAll()
    isOver = true
    return actions + [.finish]
  }

  private mutating func fail(_ failure: Failure) -> [Action] {
    let actions = stopAll()
    isOver = true
    return actions + [.fail(failure)]
  }

  /// Sends requests until all connections are in use.
  private mutating func fill(at now: Duration) -> [Action] {
    var actions: [Action] = []
    let limit = if case .segments = mode { connections } else { 1 }
    while running.count < limit {
      let load = load
      guard let source = sources.next(load: load, at: now) else {
        if let time = sources.nextTime(load: load, after: now) {
          actions.append(.wake(time))
        } else if running.isEmpty {
          return actions + fail(.noSource(sources.lastDropped ?? 0))
        }
        break
      }
      guard let action = begin(source) else { break }
      actions.append(action)
    }
    return actions
  }

  /// Begins a request; `nil` if there is nothing to ask for.
  private mutating func begin(_ source: Int) -> Action? {
    lastID += 1
    var request = Running(source: source)
    switch mode {
    case .stream: break
    case .asking where plan == nil: request.requestedEnd = minimum
    case .asking:
      guard let segment = plan?.begin(lastID, atMost: minimum) else { return nil }
      request.requestedEnd = segment.end
    case .segments:
      guard let segment = plan?.begin(lastID) else { return nil }
      request.requestedEnd = segment.end
    }
    running[lastID] = request
    return .send(SegmentRequest(id: lastID, source: source))
  }
}
