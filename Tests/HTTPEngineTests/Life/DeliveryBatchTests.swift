import Glibc
import HTTPEngine
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5))) struct DeliveryBatchTests {
  /// Tasks that wait until all of them wait.
  private final class Party: Sendable {
    private let waiters = Mutex<[DeliveryBatch.Waiter]>([])
    private let count: Int
    private let thread: SerialThread
    private let body: @Sendable ([DeliveryBatch.Waiter]) -> Void

    init(
      _ count: Int, on thread: SerialThread, _ body: @escaping @Sendable ([DeliveryBatch.Waiter]) -> Void
    ) {
      self.count = count
      self.thread = thread
      self.body = body
    }

    func wait() async {
      await withUnsafeContinuation { waiter in
        let all = waiters.withLock { waiters in
          waiters.append(waiter)
          return waiters.count == count ? waiters : nil
        }
        if let all { thread.async { self.body(all) } }
      }
    }
  }

  /// The thread of a loop. A job begins when the previous job has ended, even if the tasks that the previous job
  /// resumed still run. It is one thread, because a batch belongs to its thread until it retires.
  private let thread = SerialThread()

  /// Lets `count` tasks wait, gives them to `body` on another thread, and returns when all were resumed.
  private func serve(_ count: Int, _ body: @escaping @Sendable ([DeliveryBatch.Waiter]) -> Void) async {
    let party = Party(count, on: thread, body)
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<count { group.addTask { await party.wait() } }
    }
  }

  @Test("All continuations of a turn are resumed", arguments: [1, 2, 64]) func turn(_ count: Int) async {
    let deliveries = DeliveryBatch()
    await serve(count) { waiters in
      deliveries.serve()
      for waiter in waiters { DeliveryBatch.resume(waiter) }
      deliveries.deliverAll()
      deliveries.retire()
    }
  }

  @Test("Remaining continuations are resumed at the end of the thread") func endOfThread() async {
    let deliveries = DeliveryBatch()
    await serve(3) { waiters in
      deliveries.serve()
      for waiter in waiters { DeliveryBatch.resume(waiter) }
      deliveries.retire()
    }
  }

  @Test("A thread without a batch resumes at once") func noBatch() async {
    await serve(2) { waiters in
      for waiter in waiters { DeliveryBatch.resume(waiter) }
    }
  }

  @Test("No continuation is lost over turns and threads") func stress() async {
    let deliveries = DeliveryBatch()
    let first = Mutex<pthread_t?>(nil)
    for round in 0..<200 {
      await serve(3) { waiters in
        let isFirst = first.withLock { thread in
          if thread == nil { thread = pthread_self() }
          return thread == pthread_self()
        }
        #expect(isFirst, "the batch has moved to another thread")
        deliveries.serve()
        for waiter in waiters { DeliveryBatch.resume(waiter) }
        deliveries.deliverAll()
        if round % 3 == 0 { deliveries.retire() }
      }
    }
    await serve(2) { waiters in
      deliveries.serve()
      for waiter in waiters { DeliveryBatch.resume(waiter) }
      deliveries.retire()
    }
  }

  @Test("The task ends with the thread") func taskOfThread() async {
    weak var released: DeliveryBatch?
    do {
      let deliveries = DeliveryBatch()
      released = deliveries
      await serve(2) { waiters in
        deliveries.serve()
        for waiter in waiters { DeliveryBatch.resume(waiter) }
        deliveries.retire()
      }
    }
    while released != nil { await Task.yield() }
    #expect(released == nil)
  }
}
