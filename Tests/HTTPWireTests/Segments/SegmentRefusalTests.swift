import HTTPWire
import Testing

private let first = Representation(length: 100, validator: "\"1\"")

/// Answers to segments that are not ranges, or are ranges that do not identify the version.
@Suite("Refused segments") struct SegmentRefusalTests {
  private func transfer(
    sources: Int = 1, connections: Int = 4, hasChecksum: Bool = false, limit: Int64? = nil
  ) -> SegmentedTransfer {
    SegmentedTransfer(
      sources: sources, connections: connections, minimum: 10, hasChecksum: hasChecksum, lengthLimit: limit)
  }

  private func begun(sources: Int = 1, hasChecksum: Bool = false) -> SegmentedTransfer {
    var transfer = transfer(sources: sources, hasChecksum: hasChecksum)
    _ = transfer.start(nil, at: .zero)
    _ = transfer.receive(.part(0..<10, length: 100, validator: "\"1\""), for: 1, at: .zero)
    return transfer
  }

  private func send(_ id: Int, _ source: Int = 0) -> SegmentedTransfer.Action {
    .send(SegmentedTransfer.SegmentRequest(id: id, source: source))
  }

  private func refusal(_ status: Int) -> SegmentAnswer { .refused(status: status, isTemporary: false) }

  // MARK: Validators

  @Test("A range without a strong validator ends the segments, and one request gets the whole file")
  func unproven() {
    var transfer = begun()
    #expect(transfer.condition(of: 2) == "\"1\"")
    let actions = transfer.receive(.part(10..<35, length: 100, validator: nil), for: 2, at: .zero)
    #expect(actions == [.stop(1), .stop(2), .stop(3), .stop(4), .prepare(nil), .beginAgain, send(5)])
    #expect(transfer.range(of: 5) == nil && transfer.condition(of: 5) == nil)
    #expect(transfer.isStream && transfer.count == 0 && transfer.version == nil && transfer.plan == nil)
    #expect(transfer.receive(.whole(length: 100, validator: nil), for: 5, at: .zero) == [.prepare(nil)])
    _ = transfer.wrote(transfer.room(for: 100, in: 5), excess: 0, in: 5, at: .zero)
    #expect(transfer.ended(5, .complete, at: .zero) == [.finish])
    #expect(transfer.restartCount == 1)
  }

  @Test("Validators that differ in their bytes alone are of two versions")
  func equivalentValidators() {
    let (composed, decomposed) = ("\"\u{E9}\"", "\"e\u{301}\"")
    for answer in [
      SegmentAnswer.part(10..<35, length: 100, validator: decomposed),
      .whole(length: 100, validator: decomposed),
    ] {
      var transfer = transfer()
      _ = transfer.start(nil, at: .zero)
      _ = transfer.receive(.part(0..<10, length: 100, validator: composed), for: 1, at: .zero)
      _ = transfer.receive(answer, for: 2, at: .zero)
      #expect(transfer.restartCount == 1 && transfer.version == nil, "\(answer)")
    }
  }

  @Test("A range without a strong validator does not continue the bytes of an earlier process")
  func unprovenContinuation() {
    var transfer = transfer()
    _ = transfer.start(first, present: ByteRanges([0..<40]), at: .zero)
    let actions = transfer.receive(.part(40..<50, length: 100, validator: nil), for: 1, at: .zero)
    #expect(actions == [.stop(1), .prepare(nil), .beginAgain, send(2)])
    #expect(transfer.range(of: 2) == nil)
  }

  @Test("A mirror that sends a range without a strong validator is dropped", arguments: [true, false])
  func unprovenMirror(hasChecksum: Bool) {
    var transfer = begun(sources: 2, hasChecksum: hasChecksum)
    // The mirror has shown the version, so that its next request has a condition.
    _ = transfer.receive(.part(10..<35, length: 100, validator: "\"1\""), for: 2, at: .zero)
    _ = transfer.wrote(10..<35, excess: 0, in: 2, at: .zero)
    guard case .send(let next)? = transfer.ended(2, .complete, at: .zero).first else {
      Issue.record("no further request")
      return
    }
    #expect(next.source == 1 && transfer.condition(of: next.id) == "\"1\"")
    let range = transfer.range(of: next.id) ?? 0..<0
    _ = transfer.receive(.part(range, length: 100, validator: nil), for: next.id, at: .zero)
    #expect(transfer.sources.dropped == [1: .differs])
    #expect(!transfer.isStream && transfer.count == 25)
  }

  // MARK: Short ranges

  /// Performs a download from a server that sends at most `step` bytes of each range. Returns the last action.
  ///
  /// - Parameters:
  ///   - announcesAll: Whether the server announces the whole range nevertheless.
  ///   - outcome: The end of each response.
  private static func perform(
    _ length: Int, minimum: Int, step: Int, announcesAll: Bool = false,
    _ outcome: SegmentedTransfer.End = .complete
  ) -> (end: SegmentedTransfer.Action?, count: Int) {
    var transfer = SegmentedTransfer(sources: 1, connections: 1, minimum: minimum, hasChecksum: false)
    var (actions, count, now) = (transfer.start(nil, at: .zero), 0, Duration.zero)
    while count < 200, !transfer.isOver {
      var next: [SegmentedTransfer.Action] = []
      for action in actions {
        switch action {
        case .send(let request):
          count += 1
          let asked = transfer.range(of: request.id) ?? 0..<length
          let range = asked.prefix(step)
          let named = announcesAll ? asked : range
          next += transfer.receive(.part(named, length: length, validator: "\"1\""), for: request.id, at: now)
          let room = transfer.room(for: range.count, in: request.id)
          next += transfer.wrote(room, excess: 0, in: request.id, at: now)
          next += transfer.ended(request.id, outcome, at: now)
        case .wake(let time):
          now = time
          next += transfer.wake(at: now)
        case .stop, .prepare, .beginAgain: break
        case .finish, .fail: return (action, count)
        }
      }
      actions = next
    }
    return (actions.last, count)
  }

  @Test("A server that sends a byte of each range is dropped") func byteByByte() {
    let (end, count) = Self.perform(10_000, minimum: 100, step: 1)
    #expect(end == .fail(.noSource(0)) && count < 50, "\(count) requests")
  }

  @Test(
    "A server that ends each response after a byte is dropped, however it ends",
    arguments: [SegmentedTransfer.End.complete, .interrupted])
  func endedAfterByte(outcome: SegmentedTransfer.End) {
    let (end, count) = Self.perform(10_000, minimum: 100, step: 1, announcesAll: true, outcome)
    #expect(end == .fail(.noSource(0)) && count < 50, "\(count) requests")
  }

  @Test("A server whose connections break after half of the smallest segment, or 64 KiB, is used")
  func brokenConnections() {
    for (length, minimum, step) in [(5000, 100, 50), (100 << 16, 1 << 20, 1 << 16)] {
      let (end, count) = Self.perform(length, minimum: minimum, step: step, announcesAll: true, .interrupted)
      #expect(end == .finish && count == 100, "\(count) requests")
    }
  }

  @Test("A server that sends ranges of half the smallest segment is used") func shortRanges() {
    let (end, count) = Self.perform(5000, minimum: 100, step: 50)
    #expect(end == .finish && count == 100, "\(count) requests")
  }

  // MARK: Statuses

  @Test("A refused range is followed by one request for the whole file", arguments: [400, 403, 405, 501])
  func refusedRange(status: Int) {
    var transfer = transfer()
    _ = transfer.start(nil, at: .zero)
    #expect(transfer.receive(refusal(status), for: 1, at: .zero) == [.stop(1), send(2)])
    #expect(transfer.range(of: 2) == nil)
    #expect(transfer.receive(.whole(length: 5, validator: nil), for: 2, at: .zero) == [.prepare(nil)])
    #expect(transfer.restartCount == 0 && transfer.sources.dropped.isEmpty)
  }

  @Test("A status that does not concern ranges drops the source", arguments: [204, 401, 404, 407, 410, 451])
  func otherRefusals(status: Int) {
    var transfer = transfer()
    _ = transfer.start(nil, at: .zero)
    #expect(transfer.receive(refusal(status), for: 1, at: .zero) == [.stop(1), .fail(.noSource(0))])
    #expect(transfer.sources.dropped == [0: .status(status)])
  }

  @Test("A source that refuses the whole file too is dropped, and the next one is asked for ranges")
  func refusedFile() {
    var transfer = transfer(sources: 2)
    _ = transfer.start(nil, at: .zero)
    _ = transfer.receive(refusal(403), for: 1, at: .zero)
    #expect(transfer.receive(refusal(403), for: 2, at: .zero) == [.stop(2), send(3, 1)])
    #expect(transfer.range(of: 3) == 0..<10)
    #expect(transfer.sources.dropped == [0: .status(403)])
  }

  @Test("The bytes of an earlier process stay until the whole file is sent", arguments: [true, false])
  func refusedContinuation(isGranted: Bool) {
    var transfer = transfer()
    _ = transfer.start(first, present: ByteRanges([0..<40]), at: .zero)
    #expect(transfer.receive(refusal(403), for: 1, at: .zero) == [.stop(1), send(2)])
    #expect(transfer.count == 40 && transfer.length == 100 || transfer.length == nil)
    #expect(!transfer.isStream, "the record is valid")
    if isGranted {
      let actions = transfer.receive(.whole(length: 100, validator: "\"1\""), for: 2, at: .zero)
      #expect(actions == [.prepare(nil), .beginAgain])
      #expect(transfer.isStream && transfer.count == 0 && transfer.version == nil && transfer.plan == nil)
      #expect(transfer.room(for: 7, in: 2) == 0..<7)
    } else {
      #expect(transfer.receive(refusal(403), for: 2, at: .zero) == [.stop(2), .fail(.noSource(0))])
      #expect(transfer.version == first && transfer.count == 40 && !transfer.isStream)
    }
  }

  @Test("A refusal beside other requests limits their number", arguments: [403, 429, 503])
  func refusedConnection(status: Int) {
    var transfer = begun()
    let answer = SegmentAnswer.refused(status: status, isTemporary: status != 403)
    #expect(transfer.receive(answer, for: 4, at: .zero) == [.stop(4)])
    #expect(transfer.sources.dropped.isEmpty)
    #expect(transfer.wake(at: .seconds(60)) == [])
    _ = transfer.wrote(transfer.room(for: 10, in: 1), excess: 0, in: 1, at: .zero)
    #expect(transfer.ended(1, .complete, at: .seconds(61)) == [send(5)])
  }

  @Test("A source that refuses many further requests at once stays, and answers those that it accepts")
  func refusedConnections() {
    var transfer = SegmentedTransfer(sources: 1, connections: 8, minimum: 1 << 20, hasChecksum: false)
    _ = transfer.start(nil, at: .zero)
    _ = transfer.receive(.part(0..<(1 << 20), length: 64 << 20, validator: "\"1\""), for: 1, at: .zero)
    for id in 2...8 {
      _ = transfer.wrote(transfer.room(for: 16_384, in: 1), excess: 0, in: 1, at: .zero)
      _ = transfer.receive(.refused(status: 503, isTemporary: true), for: id, at: .zero)
    }
    #expect(transfer.sources.dropped.isEmpty)
  }

  @Test("A refusal of the only request of a later segment drops the source") func refusedLast() {
    var transfer = transfer(connections: 1)
    _ = transfer.start(nil, at: .zero)
    _ = transfer.receive(.part(0..<10, length: 100, validator: "\"1\""), for: 1, at: .zero)
    _ = transfer.wrote(0..<10, excess: 0, in: 1, at: .zero)
    #expect(transfer.ended(1, .complete, at: .zero) == [send(2)])
    #expect(transfer.receive(refusal(403), for: 2, at: .zero) == [.stop(2), .fail(.noSource(0))])
    #expect(transfer.count == 10 && transfer.version == first)
  }

  @Test("The delay of the server is waited for, up to a minute, and never less than the own one")
  func retryAfter() {
    let delays: [(server: Duration?, own: Duration)] = [
      (nil, .milliseconds(250)), (.zero, .milliseconds(250)), (.seconds(7), .seconds(7)),
      (.seconds(600), .seconds(60)),
    ]
    for (server, own) in delays {
      var transfer = transfer()
      _ = transfer.start(nil, at: .zero)
      let actions = transfer.receive(
        .refused(status: 429, isTemporary: true), for: 1, retryAfter: server, at: .seconds(1))
      #expect(actions == [.stop(1), .wake(.seconds(1) + own)])
      #expect(transfer.wake(at: .seconds(1) + own - .milliseconds(1)) == [.wake(.seconds(1) + own)])
      #expect(transfer.wake(at: .seconds(1) + own) == [send(2)])
    }
  }

  @Test("Delays double, and the fifth failure in a row drops the source")
  func delays() {
    var transfer = transfer()
    _ = transfer.start(nil, at: .zero)
    var now = Duration.zero
    for (index, delay) in [250, 500, 1000, 2000].enumerated() {
      let actions = transfer.receive(.refused(status: 429, isTemporary: true), for: index + 1, at: now)
      now += .milliseconds(delay)
      #expect(actions == [.stop(index + 1), .wake(now)])
      #expect(transfer.wake(at: now) == [send(index + 2)])
    }
    let last = transfer.receive(.refused(status: 429, isTemporary: true), for: 5, at: now)
    #expect(last == [.stop(5), .fail(.noSource(0))])
    #expect(transfer.sources.dropped == [0: .status(429)])
  }

  @Test("Half of the smallest segment forgives the earlier failures")
  func forgivenFailures() {
    var transfer = transfer(connections: 1)
    _ = transfer.start(nil, at: .zero)
    var (id, position) = (1, 0)
    for round in 1...6 {
      let now = Duration.seconds(round * 100)
      for failure in 1...4 {
        #expect(transfer.ended(id, .interrupted, at: now + .seconds(failure * 10)).count == 1)
        id += 1
        #expect(transfer.wake(at: now + .seconds(failure * 10 + 5)) == [send(id)])
      }
      let end = transfer.range(of: id)?.upperBound ?? 0
      let answer = SegmentAnswer.part(position..<end, length: 100, validator: "\"1\"")
      _ = transfer.receive(answer, for: id, at: now)
      _ = transfer.wrote(position..<(position + 5), excess: 0, in: id, at: now)
      position += 5
    }
    #expect(transfer.sources.dropped.isEmpty && transfer.count == 30)
  }

  // MARK: The limit

  @Test("A file that is longer than the limit is refused, whether or not it has ranges")
  func limit() {
    let answers = [
      SegmentAnswer.part(0..<10, length: 100, validator: "\"1\""), .whole(length: 100, validator: nil),
    ]
    for (answer, limit) in answers.flatMap({ [($0, Int64(99)), ($0, Int64(100))] }) {
      var transfer = transfer(limit: limit)
      _ = transfer.start(nil, at: .zero)
      let actions = transfer.receive(answer, for: 1, at: .zero)
      if limit == 99 {
        #expect(actions == [.stop(1), .fail(.tooLarge(100))])
        #expect(transfer.version == nil, "the version is not stored")
      } else {
        #expect(actions.first != .stop(1) && !transfer.isOver)
      }
    }
    var stream = transfer(limit: 99)
    _ = stream.start(nil, at: .zero)
    _ = stream.receive(.unusable, for: 1, at: .zero)
    #expect(
      stream.receive(.whole(length: 100, validator: nil), for: 2, at: .zero).last == .fail(.tooLarge(100)))
  }

  @Test("The file of an earlier process that is longer than the limit is refused without a request")
  func limitOfContinuation() {
    var transfer = transfer(limit: 99)
    #expect(transfer.start(first, present: ByteRanges([0..<40]), at: .zero) == [.fail(.tooLarge(100))])
    #expect(transfer.version == first && transfer.count == 40, "the bytes stay")
  }
}
