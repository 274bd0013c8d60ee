import Dispatch
import HTTPEngine
import Synchronization
import Testing

@Suite("Handlers of one turn of the loop", .timeLimit(.minutes(5))) struct HandlerBatchTests {
  /// The numbers of the handlers, in the order of their calls.
  private final class Calls: Sendable {
    private let numbers = Mutex<[Int]>([])
    let finished = DispatchSemaphore(value: 0)

    var all: [Int] { numbers.withLock { $0 } }

    func note(_ number: Int) {
      numbers.withLock { $0.append(number) }
      finished.signal()
    }

    func wait(for count: Int) {
      for number in 0..<count where finished.wait(timeout: .now() + 60) == .timedOut {
        Issue.record("\(number) of \(count) handlers were called in 60 seconds")
        return
      }
    }
  }

  private final class Token: Sendable {}

  /// The thread of a loop.
  private let thread = SerialThread()
  private let calls = Calls()

  /// Performs a turn of a loop, and returns after its end.
  private func turn(_ body: @escaping @Sendable () -> Void) async {
    await withCheckedContinuation { continuation in
      thread.async {
        let deliveries = DeliveryBatch()
        deliveries.serve()
        body()
        deliveries.deliverAll()
        deliveries.retire()
        continuation.resume()
      }
    }
  }

  @Test("A serial queue calls them in their order", arguments: [1, 2, 64]) func serialQueue(count: Int) async
  {
    let queue = DispatchQueue(label: "handlers")
    await turn { [calls] in
      for number in 0..<count {
        DeliveryBatch.call(on: queue) {
          dispatchPrecondition(condition: .onQueue(queue))
          calls.note(number)
        }
      }
    }
    calls.wait(for: count)
    #expect(calls.all == Array(0..<count))
  }

  @Test("They are called after the end of the turn") func endOfTurn() async {
    let queue = DispatchQueue(label: "handlers")
    await turn { [calls] in
      for number in 0..<3 { DeliveryBatch.call(on: queue) { calls.note(number) } }
      queue.sync {}
      #expect(calls.all.isEmpty)
    }
    calls.wait(for: 3)
    #expect(calls.all == [0, 1, 2])
  }

  @Test("On a concurrent queue, none waits for another") func concurrentQueue() async {
    let queue = DispatchQueue(label: "handlers", attributes: .concurrent)
    let last = DispatchSemaphore(value: 0)
    await turn { [calls] in
      for number in 0..<2 {
        DeliveryBatch.call(on: queue) {
          _ = last.wait(timeout: .now() + 120)
          calls.note(number)
        }
      }
      DeliveryBatch.call(on: queue) {
        calls.note(2)
        last.signal()
        last.signal()
      }
    }
    calls.wait(for: 3)
    #expect(calls.all.first == 2)
    #expect(calls.all.sorted() == [0, 1, 2])
  }

  @Test("Each of several serial queues calls its own in their order") func severalQueues() async {
    let queues = (0..<3).map { DispatchQueue(label: "handlers \($0)") }
    let order = [0, 0, 1, 0, 1, 1, 2, 2, 0]
    await turn { [calls] in
      for (number, queue) in order.enumerated() {
        DeliveryBatch.call(on: queues[queue]) {
          dispatchPrecondition(condition: .onQueue(queues[queue]))
          calls.note(number)
        }
      }
    }
    calls.wait(for: order.count)
    for queue in queues.indices {
      let expected = order.indices.filter { order[$0] == queue }
      #expect(calls.all.filter { order[$0] == queue } == expected, "queue \(queue)")
    }
  }

  @Test("What a handler captured is released before the next one is called") func release() async {
    let queue = DispatchQueue(label: "handlers")
    let wasReleased = Mutex<Bool?>(nil)
    await turn { [calls] in
      let token = Token()
      let observed = WeakToken(token)
      DeliveryBatch.call(on: queue) {
        withExtendedLifetime(token) {}
        calls.note(0)
      }
      DeliveryBatch.call(on: queue) {
        wasReleased.withLock { $0 = observed.token == nil }
        calls.note(1)
      }
    }
    calls.wait(for: 2)
    #expect(wasReleased.withLock { $0 } == true)
  }

  @Test("A thread without a loop calls them at once") func noLoop() {
    let queue = DispatchQueue(label: "handlers")
    for number in 0..<3 { DeliveryBatch.call(on: queue) { [calls] in calls.note(number) } }
    queue.sync {}
    #expect(calls.all == [0, 1, 2])
  }

  private struct WeakToken: Sendable {
    weak let token: Token?

    init(_ token: Token) { self.token = token }
  }
}
