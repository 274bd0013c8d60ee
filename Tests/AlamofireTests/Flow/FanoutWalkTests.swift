import Dispatch
import Alamofire
import Randomness
import Scenarios
import Synchronization
import Testing

@Suite("Random operations of a fanout", .seeded) struct FanoutWalkTests {
  /// A fanout, and what it has to do.
  private struct Walk {
    /// A consumer, and what it has to get.
    struct Reader {
      let consumer: CountedConsumer
      let isLoop: Bool
      var unread: [(number: Int, weight: Int)] = []
      var takenWeight = 0
      var isOpen = true
      var isMuted = false
      var knowsEnd = false
      var hasBegun = false
      /// The number of times that it was woken and has found nothing since.
      var handledWakes = 0

      var weight: Int { unread.reduce(takenWeight) { $0 + $1.weight } }
      var holdsWriterBack: Bool { isOpen && !isMuted && (!isLoop || hasBegun) }
    }

    static let (high, low) = (50, 10)
    let fanout = Fanout<Int>(highMark: high, lowMark: low)
    let resumes = CountedConsumer()
    var random: SeededGenerator
    var readers: [Reader] = []
    var isPaused = false
    var number = 0

    init(_ index: Int) {
      random = Seed.generator(index)
      fanout.open { [resumes] in resumes.count() }
      add()
    }

    mutating func step() {
      let resumeCount = resumes.wakeCount
      switch Int.random(in: 0..<20, using: &random) {
      case 0: if readers.count < 4 { add() }
      case 1: end()
      case 2: if Int.random(in: 0..<4, using: &random) == 0 { remove() }
      case 3: if Bool.random(using: &random) { begin() } else { mute() }
      case 4: if fanout.room() == 0 { isPaused = true }
      // A writer that does not pause loses nothing either.
      case 5..<12: if !isPaused || Int.random(in: 0..<50, using: &random) == 0 { write() }
      default: take()
      }
      check(resumeCount)
    }

    /// Checks the state of the writer and of the readers.
    private mutating func check(_ resumeCount: Int) {
      #expect(resumes.wakeCount - resumeCount <= (isPaused ? 1 : 0))
      if resumes.wakeCount > resumeCount { isPaused = false }
      #expect(fanout.isFull == isPaused)
      let isHeldBack = readers.contains { $0.holdsWriterBack && $0.weight > Self.low }
      #expect(!isPaused || isHeldBack, "a writer that waits has a reader for which it waits")
      for reader in readers where reader.handledWakes == reader.consumer.wakeCount {
        #expect(reader.unread.isEmpty, "a reader that has found nothing is woken")
      }
    }

    private mutating func add() {
      let isLoop = Bool.random(using: &random)
      readers.append(Reader(consumer: fanout.addConsumer(isLoop ? .afterBeginning : .all), isLoop: isLoop))
    }

    private mutating func write() {
      number += 1
      let weight = Int.random(in: 1...10, using: &random)
      let pauses = fanout.write(number, weight: weight)
      for index in readers.indices where readers[index].isOpen && !readers[index].isMuted {
        readers[index].unread.append((number, weight))
      }
      #expect(pauses == readers.contains { $0.holdsWriterBack && $0.weight >= Self.high })
      isPaused = isPaused || pauses
    }

    private mutating func take() {
      guard let index = readers.indices.randomElement(using: &random) else { return }
      let limit = Int.random(in: 1...8, using: &random)
      if Int.random(in: 0..<4, using: &random) == 0 {
        let hasMore = fanout.finish(readers[index].consumer)
        #expect(
          hasMore == (!readers[index].unread.isEmpty || !readers[index].isOpen && !readers[index].knowsEnd))
        readers[index].takenWeight = 0
        guard !hasMore else { return }
        readers[index].handledWakes = readers[index].consumer.wakeCount
        if !readers[index].isOpen { readers.remove(at: index) }
      } else {
        let (elements, isLast) = fanout.take(readers[index].consumer, atMost: limit)
        let expected = readers[index].unread.prefix(limit)
        readers[index].unread.removeFirst(expected.count)
        readers[index].takenWeight = expected.reduce(0) { $0 + $1.weight }
        #expect(elements == expected.map(\.number))
        let reader = readers[index]
        #expect(
          isLast == (!reader.isOpen && reader.unread.isEmpty && !reader.knowsEnd), "the end is said once")
        readers[index].knowsEnd = readers[index].knowsEnd || isLast
        if elements.isEmpty { readers[index].handledWakes = readers[index].consumer.wakeCount }
      }
    }

    private mutating func end() {
      guard readers.count > 1, let index = readers.indices.randomElement(using: &random) else { return }
      fanout.leave(readers[index].consumer)
      readers[index].isOpen = false
    }

    private mutating func remove() {
      guard let index = readers.indices.randomElement(using: &random) else { return }
      fanout.remove(readers.remove(at: index).consumer)
    }

    private mutating func mute() {
      guard Int.random(in: 0..<8, using: &random) == 0,
        let index = readers.indices.randomElement(using: &random)
      else { return }
      fanout.mute(readers[index].consumer)
      readers[index].isMuted = true
    }

    private mutating func begin() {
      guard let index = readers.indices.randomElement(using: &random) else { return }
      fanout.begin(readers[index].consumer)
      readers[index].hasBegun = true
    }
  }

  @Test("No element is lost or doubled, and no writer is stuck", .steps, arguments: 0..<100)
  func walk(index: Int) {
    var walk = Walk(index)
    for number in 0..<500 {
      step("operation \(number)")
      walk.step()
    }
    // When all readers have read everything, the writer continues and the end is reached.
    let ends = CountedConsumer()
    let waits = walk.fanout.settled { ends.count() }
    for reader in walk.readers {
      while !walk.fanout.take(reader.consumer, atMost: 3).elements.isEmpty {}
    }
    #expect(!walk.fanout.isFull && walk.fanout.unreadWeight == 0)
    #expect(ends.wakeCount == (waits ? 1 : 0))
  }

  /// A consumer that takes on a queue, and checks what it gets.
  private final class QueueConsumer: MailboxConsumer {
    private let queue: DispatchQueue
    private let numbers = Mutex<[Int]>([])
    let end = DispatchSemaphore(value: 0)

    init(_ name: String) { queue = DispatchQueue(label: name) }

    var taken: [Int] { numbers.withLock { $0 } }

    func wake(_ fanout: Fanout<Int>) { queue.async { [self] in work(fanout) } }

    private func work(_ fanout: Fanout<Int>) {
      let (elements, isLast) = fanout.take(self, atMost: 5)
      numbers.withLock { $0 += elements }
      if isLast { end.signal() }
      if fanout.finish(self) { wake(fanout) }
    }
  }

  @Test("A writer and readers on different threads get everything", arguments: 0..<10)
  func threads(index: Int) async {
    var random = Seed.generator(index)
    let fanout = Fanout<Int>(highMark: 20, lowMark: 5)
    let resumed = DispatchSemaphore(value: 0)
    fanout.open { resumed.signal() }
    let readers = (0..<3).map { QueueConsumer("test.\($0)") }
    for reader in readers { fanout.add(reader, for: reader, .all) }
    let lateAt = Int.random(in: 0..<2000, using: &random)
    let late = QueueConsumer("test.late")
    await onThread {
      for number in 0..<2000 {
        if number == lateAt { fanout.add(late, for: late, .all) }
        if fanout.write(number, weight: 1) { resumed.wait() }
      }
      for reader in readers + [late] { fanout.leave(reader) }
      for reader in readers + [late] { reader.end.wait() }
    }
    for reader in readers { #expect(reader.taken == Array(0..<2000)) }
    #expect(late.taken == Array(lateAt..<2000))
  }

  /// Runs a body that blocks.
  private func onThread(_ body: @escaping @Sendable () -> Void) async {
    await withCheckedContinuation { continuation in
      DispatchQueue(label: "test.writer").async {
        body()
        continuation.resume()
      }
    }
  }
}
