@testable import AlamofireImage
import Foundation
import Testing

@Suite("The threads for images, and their limits", .timeLimit(.minutes(1)))
struct ImageQueueTests {
  /// Notes what was started and done, in its order. No thread is started; the test serves the queue.
  private final class Log: Sendable {
    private let entries = Mutex<[String]>([])
    private let answers: Mutex<[Bool]>

    /// Makes a log, with answers to whether a thread can be started, one after the other. Later ones can.
    init(_ answers: Bool...) { self.answers = Mutex(answers) }

    var all: [String] { entries.withLock { $0 } }
    func add(_ entry: String) { entries.withLock { $0.append(entry) } }

    func queue(width: Int) -> ImageQueue {
      ImageQueue(width: width, idleLimit: .nanoseconds(0)) { _ in
        let isStarted = self.answers.withLock { $0.isEmpty || $0.removeFirst() }
        self.add(isStarted ? "thread" : "no thread")
        return isStarted
      }
    }
  }

  @Test("There are as many threads as pieces of work, up to the width, and the work is done in its order")
  func order() {
    let log = Log()
    let queue = log.queue(width: 3)
    #expect(queue.threadCount == 0)
    for index in 1...5 { queue.run { log.add("\(index)") } }
    #expect(log.all == ["thread", "thread", "thread"])
    #expect(queue.threadCount == 3)
    queue.serve()
    #expect(log.all == ["thread", "thread", "thread", "1", "2", "3", "4", "5"])
    #expect(queue.threadCount == 2, "the thread has ended")
    // Two threads wait, so that the next work needs no other.
    queue.run { log.add("6") }
    queue.run { log.add("7") }
    #expect(queue.threadCount == 2)
    queue.run { log.add("8") }
    #expect(queue.threadCount == 3)
    queue.serve()
    #expect(log.all.suffix(4) == ["thread", "6", "7", "8"])
  }

  @Test("Work that begins while other work is under way needs another thread, unless all work")
  func nested() {
    let log = Log()
    let queue = log.queue(width: 2)
    queue.run {
      log.add("a")
      queue.run { log.add("b") }
      log.add("\(queue.threadCount)")
      queue.run { log.add("c") }
      log.add("\(queue.threadCount)")
    }
    queue.serve()
    #expect(log.all == ["thread", "a", "thread", "2", "2", "b", "c"])
    #expect(queue.threadCount == 1)
  }

  @Test("A width of less than one thread counts as one", arguments: [0, -3])
  func width(width: Int) {
    let log = Log()
    let queue = log.queue(width: width)
    for index in 1...2 { queue.run { log.add("\(index)") } }
    queue.serve()
    #expect(log.all == ["thread", "1", "2"])
    #expect(queue.threadCount == 0)
  }

  @Test("Without any thread, the caller does the work at once, and later work asks for a thread again")
  func alone() {
    let log = Log(false, false, true)
    let queue = log.queue(width: 3)
    queue.run { log.add("1") }
    #expect(log.all == ["no thread", "1"])
    #expect(queue.threadCount == 0)
    queue.run { log.add("2") }
    #expect(log.all == ["no thread", "1", "no thread", "2"])
    queue.run { log.add("3") }
    #expect(log.all.suffix(1) == ["thread"])
    queue.serve()
    #expect(log.all.suffix(2) == ["thread", "3"])
  }

  @Test("With a thread, work that gets no other waits for it")
  func besideAnother() {
    let log = Log(true, false)
    let queue = log.queue(width: 3)
    queue.run { log.add("1") }
    queue.run { log.add("2") }
    #expect(log.all == ["thread", "no thread"])
    #expect(queue.threadCount == 1)
    queue.serve()
    #expect(log.all == ["thread", "no thread", "1", "2"])
    #expect(queue.threadCount == 0)
  }

  @Test("A task that is cancelled while its work waits goes on without a thread, and the work is released")
  func leaving() async throws {
    final class Witness: Sendable {}
    let log = Log()
    let queue = log.queue(width: 1)
    weak var released: Witness?
    let task: Task<Void, any Error>
    do {
      let witness = Witness()
      released = witness
      task = Task {
        try await queue.run(limit: .seconds(20)) { withExtendedLifetime(witness) { log.add("1") } }
      }
    }
    // The work waits from now on, because the test does not serve the queue.
    while log.all.isEmpty { await Task.yield() }
    task.cancel()
    await #expect(throws: ImageError.cancelled) { try await task.value }
    while released != nil { await Task.yield() }
    queue.run { log.add("2") }
    queue.serve()
    #expect(log.all == ["thread", "2"])
    #expect(queue.threadCount == 0)
  }

  @Test("A queue is released with its threads")
  func released() async throws {
    weak var released: ImageQueue?
    do {
      let queue = ImageQueue(width: 2, idleLimit: .nanoseconds(0))
      released = queue
      try await queue.run(limit: .seconds(20)) {}
    }
    while released != nil { await Task.yield() }
  }

  @Test("A result, an error and the limits of the work reach the caller")
  func results() async throws {
    let queue = ImageQueue(width: 1)
    #expect(try await queue.run(limit: .seconds(20)) { 7 } == 7)
    await #expect(throws: ImageError.invalidPixels) {
      try await queue.run(limit: .seconds(20)) { throw ImageError.invalidPixels }
    }
    #expect(ImageWork.current == nil)
    let work = try #require(try await queue.run(limit: .seconds(20)) { ImageWork.current })
    #expect(work.failure == nil)
    await #expect("its time is over before it begins") {
      try await queue.run(limit: .seconds(-2)) { Issue.record("It begins.") }
    } throws: { error in
      if case .limitExceeded(.time, limit: -2_000, actual: _)? = error as? ImageError { true } else { false }
    }
  }

  @Test("The work of a task that is cancelled is cancelled, also when it has begun")
  func cancelled() async throws {
    let queue = ImageQueue(width: 1)
    let (began, continuation) = AsyncStream.makeStream(of: Void.self)
    let proceed = DispatchSemaphore(value: 0)
    let task = Task {
      try await queue.run(limit: .seconds(20)) {
        let before = ImageWork.current?.failure
        continuation.yield()
        proceed.wait()
        return [before, ImageWork.current?.failure]
      }
    }
    for await _ in began { break }
    task.cancel()
    proceed.signal()
    #expect(try await task.value == [nil, .cancelled])
  }

  @Test("The time that work took is counted from its beginning, in milliseconds")
  func failures() {
    for (limit, milliseconds) in [
      (Duration.seconds(-2), -2_000), (.milliseconds(-1_500), -1_500), (.zero, 0),
      (.microseconds(-2_500), -2),
    ] {
      let work = ImageWork(limit: limit)
      let failure = work.failure
      guard case .limitExceeded(.time, limit: milliseconds, actual: let actual)? = failure else {
        Issue.record("\(limit): \(String(describing: failure))")
        continue
      }
      #expect((0..<60_000).contains(actual), "\(limit)")
    }
    #expect(ImageWork(limit: .seconds(60)).failure == nil)
    let cancellation = ImageCancellation()
    let (endless, late) = (
      ImageWork(limit: .seconds(60), cancellation: cancellation),
      ImageWork(limit: .seconds(-1), cancellation: cancellation)
    )
    #expect(!cancellation.isCancelled)
    #expect(endless.failure == nil)
    #expect(late.failure != .cancelled)
    cancellation.cancel()
    #expect(cancellation.isCancelled)
    #expect(endless.failure == .cancelled)
    #expect(late.failure == .cancelled)
  }
}
