import Alamofire
import Synchronization
import Testing

/// A consumer that counts how often it is woken.
final class CountedConsumer: MailboxConsumer {
  private let wakes = Atomic(0)

  var wakeCount: Int { wakes.load(ordering: .relaxed) }

  func wake(_ fanout: Fanout<Int>) { count() }

  func count() { wakes.add(1, ordering: .relaxed) }
}

extension Fanout where Element == Int {
  /// Writes an element of the given weight, and wakes the consumers. Returns whether the writer has to pause.
  func write(_ element: Int, weight: Int = 10) -> Bool {
    let written = write(weight: weight) { _ in .whole(element) }
    for consumer in written.sleepers { consumer.wake(self) }
    return written.pauses
  }

  /// Adds a consumer for which writer and end wait.
  func addConsumer(_ patience: Patience = .all) -> CountedConsumer {
    let consumer = CountedConsumer()
    add(consumer, for: consumer, patience)
    return consumer
  }

  func take(_ consumer: CountedConsumer) -> [Int] { take(consumer, atMost: 64).elements }
}

@Suite("A fanout") struct FanoutTests {
  private let resumed = CountedConsumer()
  private let fanout = Fanout<Int>(highMark: 100, lowMark: 20)

  init() { fanout.open { [resumed] in resumed.count() } }

  // MARK: Readers

  @Test("Without consumers no element is created") func noConsumers() {
    let written = fanout.write(weight: 1000) { _ in
      Issue.record("nothing needs it")
      return .whole(1)
    }
    #expect(!written.pauses && written.sleepers.isEmpty && fanout.room() == .max)
  }

  @Test("Each consumer gets in order what was written after it was added") func order() {
    let first = fanout.addConsumer()
    #expect(!fanout.write(1))
    let second = fanout.addConsumer()
    #expect(!fanout.write(2) && !fanout.write(3))
    #expect(fanout.take(first) == [1, 2, 3])
    #expect(fanout.take(second) == [2, 3])
    #expect(fanout.unreadWeight == 0)
  }

  @Test("A consumer is woken once until it finds nothing", arguments: [false, true])
  func wake(isFinished: Bool) {
    let consumer = fanout.addConsumer()
    #expect(!fanout.write(1) && !fanout.write(1))
    #expect(consumer.wakeCount == 1)
    _ = fanout.take(consumer)
    #expect(!fanout.write(1))
    #expect(consumer.wakeCount == 1, "it is at work and comes again")
    _ = fanout.take(consumer)
    if isFinished {
      #expect(!fanout.finish(consumer))
    } else {
      #expect(fanout.take(consumer).isEmpty)
    }
    #expect(!fanout.write(1))
    #expect(consumer.wakeCount == 2)
  }

  @Test("A consumer that has finished learns of elements written since its last read") func moreToTake() {
    let consumer = fanout.addConsumer()
    #expect(!fanout.write(1))
    _ = fanout.take(consumer)
    #expect(!fanout.write(2))
    #expect(fanout.finish(consumer))
    #expect(consumer.wakeCount == 1 && fanout.take(consumer) == [2])
  }

  // MARK: Back-pressure

  @Test("The slowest consumer causes back-pressure") func backPressure() {
    let (fast, slow) = (fanout.addConsumer(), fanout.addConsumer())
    for number in 1...10 { #expect(fanout.write(number) == (number == 10)) }
    #expect(fanout.isFull && fanout.room() == 0)
    _ = fanout.take(fast)
    #expect(!fanout.finish(fast) && fanout.unreadWeight == 100)
    var counts: [Int] = []
    for _ in 0..<11 {
      _ = fanout.take(slow, atMost: 1)
      counts.append(resumed.wakeCount)
    }
    // The ninth call means that eight elements are processed.
    #expect(counts == [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1])
    #expect(!fanout.isFull && !fanout.write(1))
    #expect(fanout.room() == 90)
  }

  @Test("An element above the mark is taken, and pauses the writer until it is processed") func largeElement()
  {
    let consumer = fanout.addConsumer()
    #expect(fanout.write(1, weight: 1000))
    #expect(fanout.write(2, weight: 1), "a writer that does not pause loses nothing")
    #expect(fanout.take(consumer) == [1, 2] && resumed.wakeCount == 0)
    #expect(!fanout.finish(consumer) && resumed.wakeCount == 1)
  }

  @Test("A writer that asks for room waits as well") func room() {
    let consumer = fanout.addConsumer()
    #expect(!fanout.write(1, weight: 60) && fanout.room() == 40)
    #expect(fanout.write(2, weight: 40) && fanout.room() == 0)
    _ = fanout.take(consumer)
    _ = fanout.finish(consumer)
    #expect(resumed.wakeCount == 1 && fanout.room() == 100)
  }

  @Test("A consumer can have a higher mark") func highMark() {
    let consumer = CountedConsumer()
    fanout.add(consumer, for: consumer, .writer, highMark: 200)
    #expect(!fanout.write(1, weight: 199) && fanout.write(2, weight: 1))
  }

  @Test("A writer that has ended is not resumed") func closedWriter() {
    let consumer = fanout.addConsumer()
    #expect(fanout.write(1, weight: 100))
    fanout.close()
    #expect(!fanout.isFull)
    fanout.remove(consumer)
    #expect(resumed.wakeCount == 0)
  }

  @Test("Removing a stuck consumer resumes the writer and the end") func removal() {
    let stuck = fanout.addConsumer()
    #expect(fanout.write(1, weight: 100))
    let end = CountedConsumer()
    #expect(fanout.settled { end.count() })
    _ = fanout.take(stuck)
    fanout.remove(stuck)
    #expect(resumed.wakeCount == 1 && end.wakeCount == 1 && fanout.unreadWeight == 0)
    #expect(!fanout.write(1, weight: 1000) && fanout.take(stuck).isEmpty)
    fanout.remove(stuck)
    #expect(resumed.wakeCount == 1)
  }

  // MARK: Growing elements

  @Test("What follows another element does not grow the one before it") func growthEndsAtNext() {
    let consumer = fanout.addConsumer()
    _ = fanout.write(weight: 10) { _ in .growing(1) }
    _ = fanout.write(weight: 10) { last in
      #expect(last == 1)
      return .whole(2)
    }
    _ = fanout.write(weight: 10) { last in
      #expect(last == nil, "2 is in between")
      return .growing(3)
    }
    #expect(fanout.take(consumer) == [1, 2, 3])
  }

  @Test("An element grows until a consumer takes it") func growth() {
    let sizes = Mutex<[Int]>([])
    let note = { @Sendable (last: Int?, element: Int) -> Fanout<Int>.Addition in
      guard last != nil else { return .growing(element) }
      sizes.withLock { $0.append(element) }
      return .grown
    }
    let (first, second) = (fanout.addConsumer(), fanout.addConsumer())
    for number in 1...3 { _ = fanout.write(weight: 10) { note($0, number) } }
    #expect(sizes.withLock { $0 } == [2, 3] && fanout.unreadWeight == 30)
    #expect(fanout.take(first) == [1])
    _ = fanout.write(weight: 10) { note($0, 4) }
    #expect(fanout.take(second) == [1, 4] && fanout.take(first) == [4])
    _ = fanout.write(weight: 10) { note($0, 5) }
    // A consumer that is added later must not get what was written before.
    let late = fanout.addConsumer()
    _ = fanout.write(weight: 10) { note($0, 6) }
    #expect(fanout.take(late) == [6] && fanout.take(first) == [5, 6])
    _ = fanout.write(weight: 10) { note($0, 7) }
    let reader = CountedConsumer()
    fanout.join(CountedConsumer(), -1, new: reader) { $0 === reader }
    _ = fanout.write(weight: 10) { note($0, 8) }
    #expect(fanout.take(reader) == [8] && fanout.take(first) == [7, 8])
    #expect(sizes.withLock { $0 } == [2, 3])
  }

  // MARK: Members

  @Test("Members share a mailbox, and marks say when they join and leave") func members() {
    let (reader, unused) = (CountedConsumer(), CountedConsumer())
    let (a, b) = (CountedConsumer(), CountedConsumer())
    fanout.join(a, -1, new: reader) { $0 === reader }
    #expect(!fanout.write(1))
    fanout.join(b, -2, new: unused) { $0 === reader }
    #expect(reader.wakeCount == 1, "a mark wakes nothing")
    #expect(!fanout.write(2))
    fanout.leave(a, -3)
    fanout.leave(a, -3)
    #expect(!fanout.write(3))
    fanout.leave(b, -4)
    #expect(!fanout.write(4, weight: 1000), "no member is left")
    #expect(fanout.take(reader) == [1, -2, 2, -3, 3, -4], "the first member needs no mark")
    #expect(!fanout.finish(reader))
    fanout.join(a, -1, new: unused) { $0 === reader }
    #expect(!fanout.write(5))
    #expect(
      unused.wakeCount == 1 && fanout.take(unused) == [5], "an empty mailbox without members is removed")
  }

  @Test("The end of a member wakes its consumer, and later elements do not concern it") func leaving() {
    let old = fanout.addConsumer(.afterBeginning)
    fanout.begin(old)
    #expect(!fanout.write(1, weight: 50))
    fanout.leave(old)
    let new = fanout.addConsumer()
    #expect(!fanout.write(2, weight: 90), "the old consumer does not hold the writer back")
    let last = fanout.take(old, atMost: 64)
    #expect(last.elements == [1] && last.isLast)
    #expect(fanout.take(new) == [2])
    let empty = fanout.addConsumer()
    fanout.leave(empty)
    #expect(empty.wakeCount == 1)
    let end = fanout.take(empty, atMost: 1)
    #expect(end.elements.isEmpty && end.isLast)
  }

  @Test("A muted member gets no more elements, holds nothing back and learns of its end") func muting() {
    let consumer = fanout.addConsumer()
    #expect(fanout.write(1, weight: 100))
    fanout.mute(consumer)
    #expect(resumed.wakeCount == 1 && !fanout.write(2, weight: 1000))
    #expect(fanout.settled {}, "it is at work")
    #expect(fanout.take(consumer) == [1] && !fanout.finish(consumer) && !fanout.settled {})
    fanout.leave(consumer)
    #expect(consumer.wakeCount == 2 && fanout.take(consumer, atMost: 1).isLast)
  }

  @Test("A muted member does not end the elements of the others in its mailbox") func mutedMember() {
    let (reader, unused) = (CountedConsumer(), CountedConsumer())
    let (a, b) = (CountedConsumer(), CountedConsumer())
    fanout.join(a, -1, new: reader) { $0 === reader }
    fanout.join(b, -2, new: unused) { $0 === reader }
    fanout.mute(a)
    fanout.mute(a)
    #expect(!fanout.write(1))
    fanout.leave(a, -3)
    #expect(!fanout.write(2))
    fanout.mute(b)
    #expect(!fanout.write(3))
    #expect(fanout.take(reader) == [-2, 1, -3, 2])
  }

  // MARK: The end

  @Test("A loop does not count until it begins, and not after a cancellation") func loops() {
    let loop = fanout.addConsumer(.afterBeginning)
    #expect(!fanout.write(1, weight: 500) && !fanout.settled {})
    fanout.begin(loop)
    #expect(fanout.write(2))
    let end = CountedConsumer()
    #expect(fanout.settled { end.count() })
    fanout.endWithoutLoops()
    #expect(end.wakeCount == 1 && fanout.isFull, "the writer still waits")
    let late = fanout.addConsumer(.afterBeginning)
    fanout.begin(late)
    #expect(fanout.write(3) && !fanout.settled {})
  }

  @Test("The end waits for what is processed") func processing() {
    let consumer = fanout.addConsumer()
    #expect(!fanout.settled {}, "it has got nothing")
    #expect(!fanout.write(1))
    let end = CountedConsumer()
    #expect(fanout.settled { end.count() })
    _ = fanout.take(consumer)
    #expect(end.wakeCount == 0)
    #expect(!fanout.finish(consumer) && end.wakeCount == 1)
    #expect(!fanout.write(1) && fanout.take(consumer) == [1] && !fanout.finish(consumer))
    #expect(end.wakeCount == 1, "it is called once")
  }
}
