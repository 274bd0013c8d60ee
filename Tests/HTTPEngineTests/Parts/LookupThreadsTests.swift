import Dispatch
import FoundationEssentials
import Synchronization
import Testing

@testable import HTTPEngine

@Suite("The threads of look-ups", .timeLimit(.minutes(1))) struct LookupThreadsTests {
  @Test("All work is done, also more than there are threads") func work() async {
    let threads = LookupThreads()
    let gate = DispatchSemaphore(value: 0)
    let count = Counter()
    await withCheckedContinuation { continuation in
      for _ in 0..<40 {
        threads.run {
          gate.wait()
          if count.next() == 40 { continuation.resume() }
        }
      }
      // Work that waits holds its thread, and the rest of it waits for a free one.
      for _ in 0..<40 { gate.signal() }
    }
    #expect(count.value == 40)
  }

  @Test("A thread without work takes the next one") func reuse() async {
    let threads = LookupThreads()
    for _ in 0..<200 {
      await withCheckedContinuation { continuation in threads.run { continuation.resume() } }
    }
  }

  @Test("Work does not wait for other work while a thread can be had") func independence() async {
    let threads = LookupThreads()
    for round in 0..<20 {
      let hasRun = DispatchSemaphore(value: 0)
      // Afterwards one thread is idle, or about to be.
      await withCheckedContinuation { continuation in threads.run { continuation.resume() } }
      let isDone = await withCheckedContinuation { continuation in
        threads.run { continuation.resume(returning: hasRun.wait(timeout: .now() + 20) == .success) }
        threads.run { hasRun.signal() }
      }
      #expect(isDone, "round \(round): the second work waited for the first")
      guard isDone else { return }
    }
  }

  @Test("No more threads than the limit work at a time") func limit() async {
    let threads = LookupThreads(mostThreads: 2)
    let gate = DispatchSemaphore(value: 0)
    let isOpen = Mutex(false)
    let hasWaited = await withCheckedContinuation { continuation in
      for _ in 0..<2 { threads.run { gate.wait() } }
      threads.run { continuation.resume(returning: isOpen.withLock { $0 }) }
      isOpen.withLock { $0 = true }
      for _ in 0..<2 { gate.signal() }
    }
    #expect(hasWaited)
  }

  @Test("Names are looked up while every thread for tokens is busy") func tokens() async {
    let gate = DispatchSemaphore(value: 0)
    for _ in 0..<40 { PendingTokens.sharedThreads.run { gate.wait() } }
    await withCheckedContinuation { continuation in LookupThreads.shared.run { continuation.resume() } }
    for _ in 0..<40 { gate.signal() }
    #expect(PendingTokens.sharedThreads !== LookupThreads.shared)
  }

  @Test("Withdrawn work is not done, and the rest keeps its order") func withdrawal() async {
    let threads = LookupThreads(mostThreads: 1)
    let (begun, gate) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let done = Mutex<[Int]>([])
    let first = threads.run {
      begun.signal()
      gate.wait()
    }
    await withCheckedContinuation { continuation in
      threads.run { continuation.resume() }
      #expect(begun.wait(timeout: .now() + 20) == .success)
      #expect(!threads.withdraw(first), "it has begun")
      let numbers = (0..<3_000).map { number in threads.run { done.withLock { $0.append(number) } } }
      for number in numbers where number % 1_000 != 0 { #expect(threads.withdraw(number)) }
      #expect(!threads.withdraw(numbers[1]), "it was withdrawn")
      gate.signal()
    }
    await withCheckedContinuation { continuation in threads.run { continuation.resume() } }
    #expect(done.withLock { $0.count } == 3)
    #expect(done.withLock { $0 == $0.sorted() })
  }

  @Test("A token that is not awaited any more takes no thread, and does not arrive") func leftTokens() async {
    let loop = Client().transport.loop
    let (begun, gate) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let made = Mutex<[UInt8]>([])
    let arrived = Mutex<[UInt8]>([])
    await withCheckedContinuation { continuation in
      loop.post(
        .run { core in
          core.tokens.threads = LookupThreads(mostThreads: 1)
          for number: UInt8 in 1...4 {
            let holder = TokenHolder()
            let token = core.tokens.make {
              made.withLock { $0.append(number) }
              if number == 1 {
                begun.signal()
                gate.wait()
              }
              return [number]
            } then: { token in
              holder.token = nil
              arrived.withLock { $0 += token ?? [] }
              if number == 4 { continuation.resume() }
            }
            // The first one is released after a thread has begun it, and the second one before.
            if number == 1 { _ = begun.wait(timeout: .now() + 20) }
            if number > 2 { holder.token = token }
          }
          gate.signal()
        })
    }
    #expect(made.withLock { $0 } == [1, 3, 4] && arrived.withLock { $0 } == [3, 4])
  }

  private final class TokenHolder { var token: PendingToken? }

  @Test("Without a thread, the caller does the work before it goes on") func noThread() {
    let threads = LookupThreads(mayStartThread: { false })
    let count = Counter()
    for number in 1...3 {
      threads.run { count.add() }
      #expect(count.value == number)
    }
  }

  /// Whether the system shows what its threads wait for.
  private static let showsCalls = callText(of: "thread-self") != nil

  /// Returns the call in which a thread waits, or `running`; `nil` if there is no such thread.
  private static func callText(of thread: String) -> String? {
    try? String(contentsOfFile: "/proc/\(thread)/syscall", encoding: .utf8)
  }

  /// Returns the operation of a thread that waits with `futex` until a time; `nil` of any other one.
  private static func timedWait(_ call: String) -> UInt64? {
    let words = call.split(separator: " ")
    guard words.count > 2, let operation = UInt64(words[2].dropFirst(2), radix: 16) else { return nil }
    let (futex, waitUntil): (Set<Substring>, UInt64) = (["202", "98"], 9)
    return futex.contains(words[0]) && operation & 0x7F == waitUntil ? operation : nil
  }

  /// Checks the call in which the thread waits, because its effect would show only after the calendar is set.
  @Test(
    "A thread waits for work by a clock that is never set", .enabled(if: LookupThreadsTests.showsCalls))
  func clock() async throws {
    let threads = LookupThreads(mostThreads: 1)
    var operation: UInt64?
    while operation == nil {
      let link = await withCheckedContinuation { (continuation: CheckedContinuation<String?, Never>) in
        threads.run {
          let link = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")
          continuation.resume(returning: link)
        }
      }
      let thread = try #require(link)
      // The thread is gone after some seconds, and then another one is asked.
      while operation == nil, let call = Self.callText(of: thread) {
        operation = Self.timedWait(call)
        await Task.yield()
      }
    }
    let calendar: UInt64 = 0x100
    #expect(try #require(operation) & calendar == 0, "the wait lasts longer if the calendar is set back")
  }

  private final class Counter: Sendable {
    private let number = Mutex(0)

    var value: Int { number.withLock { $0 } }
    func add() { number.withLock { $0 += 1 } }

    func next() -> Int {
      number.withLock { number in
        number += 1
        return number
      }
    }
  }
}
