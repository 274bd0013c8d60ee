import HTTPWire
import Testing

private let first = Representation(length: 100, validator: "\"1\"")

@Suite("Segmented transfer") struct SegmentedTransferTests {
  private func transfer(
    sources: Int = 1, connections: Int = 4, hasChecksum: Bool = false
  ) -> SegmentedTransfer {
    SegmentedTransfer(sources: sources, connections: connections, minimum: 10, hasChecksum: hasChecksum)
  }

  private func begun(sources: Int = 1, connections: Int = 4, hasChecksum: Bool = false) -> SegmentedTransfer {
    var transfer = transfer(sources: sources, connections: connections, hasChecksum: hasChecksum)
    _ = transfer.start(nil, at: .zero)
    _ = transfer.receive(.part(0..<10, length: 100, validator: "\"1\""), for: 1, at: .zero)
    return transfer
  }

  private func send(_ id: Int, _ source: Int = 0) -> SegmentedTransfer.Action {
    .send(SegmentedTransfer.SegmentRequest(id: id, source: source))
  }

  @Test("The first response decides about segments")
  func segments() {
    var transfer = transfer()
    #expect(transfer.start(nil, at: .zero) == [send(1)])
    #expect(transfer.range(of: 1) == 0..<10)
    #expect(transfer.condition(of: 1) == nil)
    let actions = transfer.receive(.part(0..<10, length: 100, validator: "\"1\""), for: 1, at: .zero)
    #expect(actions == [.prepare(first), send(2), send(3), send(4)])
    #expect([2, 3, 4].map { transfer.range(of: $0) } == [10..<35, 35..<60, 60..<85])
    #expect(transfer.condition(of: 2) == "\"1\"")
  }

  @Test("Lengths and sizes up to the largest integer do not overflow")
  func extremes() {
    for minimum in [1, Int.max] {
      var transfer = SegmentedTransfer(sources: 1, connections: .max, minimum: minimum, hasChecksum: false)
      #expect(transfer.start(nil, at: .zero) == [send(1)])
      #expect(transfer.range(of: 1) == 0..<minimum)
      var plan = SegmentPlan(length: .max, connections: 4, minimum: minimum)
      let first = plan.begin(1)
      #expect(first?.rest == 0..<max(minimum, Int.max / 4 + 1))
      _ = plan.begin(2)
      #expect(plan.room(for: .max, in: 1) == first?.rest)
    }
    var plan = SegmentPlan(length: 10, connections: 1, minimum: .max)
    #expect(plan.begin(1)?.rest == 0..<10)
    #expect(plan.begin(2) == nil)
  }

  @Test("Bytes after the announced range of a response are not used")
  func announcedRange() {
    var transfer = transfer(connections: 1)
    _ = transfer.start(nil, at: .zero)
    _ = transfer.receive(.part(0..<4, length: 100, validator: "\"1\""), for: 1, at: .zero)
    #expect(transfer.room(for: 10, in: 1) == 0..<4)
    #expect(transfer.wrote(0..<4, excess: 6, in: 1, at: .zero) == [.stop(1), send(2)])
    #expect(transfer.range(of: 2) == 4..<100)
    _ = transfer.receive(.part(4..<50, length: 100, validator: "\"1\""), for: 2, at: .zero)
    #expect(transfer.wrote(transfer.room(for: 90, in: 2), excess: 0, in: 2, at: .zero) == [])
    // The end of the response is awaited, so that its connection can be used again.
    #expect(transfer.ended(2, .complete, at: .zero) == [send(3)])
    #expect(transfer.range(of: 3) == 50..<100)
  }

  @Test("A second response to a request belongs to a retry, and the rest is requested again")
  func retry() {
    var transfer = begun(connections: 2)
    _ = transfer.receive(.part(10..<60, length: 100, validator: "\"1\""), for: 2, at: .zero)
    #expect(transfer.wrote(transfer.room(for: 20, in: 2), excess: 0, in: 2, at: .zero) == [])
    #expect(transfer.range(of: 2) == 30..<60)
    let actions = transfer.receive(.part(30..<60, length: 100, validator: "\"1\""), for: 2, at: .zero)
    #expect(actions == [.stop(2), .wake(.milliseconds(250))])
    // Bytes that arrive late, of either attempt.
    #expect(transfer.room(for: 5, in: 2).isEmpty)
    #expect(transfer.wake(at: .milliseconds(250)) == [send(3)])
    #expect(transfer.range(of: 3) == 30..<80)
    #expect(transfer.sources.dropped.isEmpty)
  }

  @Test("A second response for the whole file begins again")
  func retryOfStream() {
    var transfer = transfer()
    _ = transfer.start(nil, at: .zero)
    #expect(transfer.receive(.whole(length: nil, validator: nil), for: 1, at: .zero) == [.prepare(nil)])
    _ = transfer.wrote(transfer.room(for: 20, in: 1), excess: 0, in: 1, at: .zero)
    let actions = transfer.receive(.whole(length: nil, validator: nil), for: 1, at: .zero)
    #expect(actions == [.stop(1), .prepare(nil), .beginAgain, .wake(.milliseconds(250))])
    #expect(transfer.wake(at: .milliseconds(250)) == [send(2)])
    #expect(transfer.room(for: 5, in: 1).isEmpty)
  }

  @Test("A request that is over asks for nothing, and not for the whole file") func stoppedBeforeSending() {
    var transfer = begun(connections: 2)
    let actions = transfer.receive(.part(10..<60, length: 100, validator: nil), for: 2, at: .zero)
    #expect(actions.contains(.stop(1)) && actions.contains(send(3)))
    #expect([1, 2].map { transfer.range(of: $0) } == [0..<0, 0..<0])
    #expect(transfer.range(of: 3) == nil)
  }

  @Test("A request that fails after its last byte does not count as a failure of its source")
  func failureBehindTheEnd() {
    var transfer = begun(connections: 2)
    _ = transfer.receive(.part(10..<60, length: 100, validator: "\"1\""), for: 2, at: .zero)
    _ = transfer.wrote(transfer.room(for: 50, in: 2), excess: 0, in: 2, at: .zero)
    // A retry has nothing to ask for.
    #expect(transfer.range(of: 2)?.isEmpty == true)
    #expect(transfer.ended(2, .failed, at: .zero) == [send(3)])
    #expect(transfer.sources.dropped.isEmpty)
  }

  @Test("A connection that has finished takes a range that is left, then half of the largest rest")
  func workStealing() {
    var transfer = begun()
    #expect(transfer.wrote(transfer.room(for: 10, in: 1), excess: 0, in: 1, at: .zero) == [])
    #expect(transfer.ended(1, .complete, at: .zero) == [send(5)])
    #expect(transfer.range(of: 5) == 85..<100)
    _ = transfer.receive(.part(85..<100, length: 100, validator: "\"1\""), for: 5, at: .zero)
    _ = transfer.wrote(transfer.room(for: 15, in: 5), excess: 0, in: 5, at: .zero)
    #expect(transfer.ended(5, .complete, at: .zero) == [send(6)])
    #expect(transfer.range(of: 6) == 23..<35)
    #expect(transfer.range(of: 2) == 10..<23)
    // The response of the divided segment continues, so it is stopped at its new end.
    _ = transfer.receive(.part(10..<35, length: 100, validator: "\"1\""), for: 2, at: .zero)
    #expect(transfer.room(for: 20, in: 2) == 10..<23)
    #expect(transfer.wrote(10..<23, excess: 7, in: 2, at: .zero).first == .stop(2))
  }

  @Test("Without ranges, or without a strong validator, one request gets the whole file")
  func stream() {
    for answer in [
      SegmentAnswer.part(0..<10, length: 100, validator: nil), .unusable, .unsatisfiable,
      // Another range than the first one.
      .part(1..<11, length: 100, validator: "\"1\""), .part(1..<10, length: 100, validator: "\"1\""),
    ] {
      var transfer = transfer()
      _ = transfer.start(nil, at: .zero)
      #expect(transfer.receive(answer, for: 1, at: .zero) == [.stop(1), send(2)])
      #expect(transfer.range(of: 2) == nil)
      #expect(transfer.receive(.whole(length: nil, validator: nil), for: 2, at: .zero) == [.prepare(nil)])
      #expect(transfer.wrote(transfer.room(for: 40, in: 2), excess: 0, in: 2, at: .zero) == [])
      #expect(transfer.ended(2, .complete, at: .zero) == [.finish])
    }
    var transfer = transfer()
    _ = transfer.start(nil, at: .zero)
    #expect(transfer.receive(.whole(length: 5, validator: "\"1\""), for: 1, at: .zero) == [.prepare(nil)])
    _ = transfer.wrote(transfer.room(for: 3, in: 1), excess: 0, in: 1, at: .zero)
    let actions = transfer.ended(1, .interrupted, at: .zero)
    #expect(actions == [.prepare(nil), .beginAgain, .wake(.milliseconds(250))])
    #expect(transfer.count == 0)
  }

  @Test(
    "A changed file begins again once, then fails",
    arguments: [
      SegmentAnswer.part(10..<35, length: 100, validator: "\"2\""),
      .part(10..<35, length: 90, validator: nil),
      .whole(length: 100, validator: "\"2\""), .unsatisfiable,
    ])
  func changed(_ answer: SegmentAnswer) {
    var transfer = begun()
    let actions = transfer.receive(answer, for: 2, at: .zero)
    #expect(
      actions == [.stop(1), .stop(2), .stop(3), .stop(4), .prepare(nil), .beginAgain, send(5)])
    #expect(transfer.condition(of: 5) == nil)
    #expect(transfer.count == 0)
    _ = transfer.receive(.part(0..<10, length: 100, validator: "\"3\""), for: 5, at: .zero)
    #expect(
      transfer.receive(.part(10..<35, length: 100, validator: "\"4\""), for: 6, at: .zero).last
        == .fail(.changed))
  }

  @Test("The bytes of an earlier process are used if the server confirms their version")
  func resumed() {
    let present = ByteRanges([0..<40, 50..<100])
    var transfer = transfer()
    #expect(transfer.start(first, present: present, at: .zero) == [send(1)])
    #expect(transfer.range(of: 1) == 40..<50)
    #expect(transfer.condition(of: 1) == "\"1\"")
    #expect(transfer.receive(.part(40..<50, length: 100, validator: "\"1\""), for: 1, at: .zero) == [])
    #expect(transfer.wrote(40..<50, excess: 0, in: 1, at: .zero) == [.stop(1), .finish])

    var other = self.transfer()
    _ = other.start(first, present: present, at: .zero)
    let actions = other.receive(.whole(length: 100, validator: "\"2\""), for: 1, at: .zero)
    #expect(actions == [.stop(1), .prepare(nil), .beginAgain, send(2)])
    #expect(other.restartCount == 1)

    var complete = self.transfer()
    #expect(complete.start(first, present: ByteRanges([0..<100]), at: .zero) == [.finish])
  }

  @Test("A mirror with another version is dropped, unless a checksum proves the content")
  func mirrors() {
    for hasChecksum in [false, true] {
      var transfer = begun(sources: 2, hasChecksum: hasChecksum)
      #expect(transfer.condition(of: 2) == nil)
      let actions = transfer.receive(.part(10..<35, length: 100, validator: "\"m\""), for: 2, at: .zero)
      if hasChecksum {
        #expect(actions == [])
        #expect(transfer.sources.dropped == [:])
      } else {
        #expect(transfer.sources.dropped == [1: .differs])
        #expect(actions.first == .stop(2))
      }
    }
    var transfer = begun(sources: 2, hasChecksum: true)
    _ = transfer.receive(.part(10..<35, length: 99, validator: "\"1\""), for: 2, at: .zero)
    #expect(transfer.sources.dropped == [1: .differs])
  }

  @Test("A source that fails too often is dropped, and the last one is the error")
  func failures() {
    var transfer = transfer(sources: 2)
    var actions = transfer.start(nil, at: .zero)
    var now = Duration.zero
    var sent: [Int] = []
    for _ in 0..<40 {
      guard let action = actions.last else { break }
      switch action {
      case .send(let request):
        sent.append(request.source)
        actions = transfer.ended(request.id, .interrupted, at: now)
      case .wake(let time):
        now = time
        actions = transfer.wake(at: now)
      default:
        #expect(action == .fail(.noSource(transfer.sources.lastDropped ?? 9)))
        actions = []
      }
    }
    #expect(transfer.isOver)
    #expect(sent.count { $0 == 0 } == 5 && sent.count { $0 == 1 } == 5)
    #expect(transfer.sources.dropped == [0: .failed, 1: .failed])
  }

  @Test("A server that refuses another connection gets no more than it accepted")
  func connectionLimit() {
    var transfer = begun()
    let refusal = transfer.receive(.refused(status: 503, isTemporary: true), for: 4, at: .zero)
    #expect(refusal == [.stop(4)])
    #expect(transfer.wake(at: .seconds(60)) == [])
    _ = transfer.wrote(transfer.room(for: 10, in: 1), excess: 0, in: 1, at: .zero)
    #expect(transfer.ended(1, .complete, at: .seconds(61)) == [send(5)])
  }

  @Test("Bytes without a head of HTTP, and their end, drop their source", arguments: [true, false])
  func withoutHead(hasBytes: Bool) {
    var transfer = transfer(sources: 2)
    func next(_ id: Int) -> [SegmentedTransfer.Action] {
      #expect(transfer.room(for: 5, in: id).isEmpty)
      return hasBytes
        ? transfer.wrote(0..<0, excess: 5, in: id, at: .zero) : transfer.ended(id, .complete, at: .zero)
    }
    #expect(transfer.start(nil, at: .zero) == [send(1)])
    #expect(next(1) == [.stop(1), send(2, 1)])
    #expect(transfer.sources.dropped == [0: .hasNoRanges])
    #expect(next(2) == [.stop(2), .fail(.noSource(1))])
  }

  @Test("The end of a response without a head of HTTP is not the end of the file") func endWithoutHead() {
    var transfer = transfer(sources: 2)
    _ = transfer.start(nil, at: .zero)
    #expect(transfer.receive(.whole(length: nil, validator: nil), for: 1, at: .zero) == [.prepare(nil)])
    #expect(transfer.ended(1, .interrupted, at: .zero) == [send(2, 1)])
    #expect(transfer.ended(2, .complete, at: .zero) == [.stop(2), .wake(.milliseconds(250))])
    #expect(!transfer.isOver && transfer.sources.dropped == [1: .hasNoRanges])
  }

  @Test("A wrong range drops its source")
  func wrongRange() {
    var transfer = begun()
    let actions = transfer.receive(.part(11..<35, length: 100, validator: "\"1\""), for: 2, at: .zero)
    #expect(actions.last == .fail(.noSource(0)))
    #expect(transfer.sources.dropped == [0: .hasNoRanges])
  }
}
