import Dispatch
import Glibc
import Synchronization
import Testing

/// A thread of the test; Foundation's is not in FoundationEssentials.
final class Thread {
  private let body: @Sendable () -> Void

  init(_ body: @escaping @Sendable () -> Void) { self.body = body }

  func start() {
    var thread = pthread_t()
    let code = pthread_create(
      &thread, nil,
      { context in
        guard let context else { return nil }
        Unmanaged<Thread>.fromOpaque(context).takeRetainedValue().body()
        return nil
      }, Unmanaged.passRetained(self).toOpaque())
    #expect(code == 0)
    if code == 0 { pthread_detach(thread) }
  }
}

/// A single thread that runs closures in order. A serial `DispatchQueue` runs them in order too, but each on any thread
/// of its pool.
final class SerialThread: Sendable {
  private final class Queue: Sendable {
    private let closures = Mutex<[(@Sendable () -> Void)?]>([])
    private let count = DispatchSemaphore(value: 0)

    /// Adds a closure; `nil` ends the thread.
    func append(_ closure: (@Sendable () -> Void)?) {
      closures.withLock { $0.append(closure) }
      count.signal()
    }

    func run() {
      while true {
        count.wait()
        guard let closure = closures.withLock({ $0.removeFirst() }) else { return }
        closure()
      }
    }
  }

  private let queue = Queue()

  init() { Thread { [queue] in queue.run() }.start() }

  deinit { queue.append(nil) }

  func async(_ closure: @escaping @Sendable () -> Void) { queue.append(closure) }
}
