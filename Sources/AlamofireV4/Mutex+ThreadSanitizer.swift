#if THREAD_SANITIZER
  import Foundation

  /// Takes the place of `Synchronization.Mutex` in builds for the thread sanitizer, which does not see what that one
  /// orders: it is made of futex calls in a library which is not instrumented.
  final class Mutex<Value>: Sendable {
    private let lock = NSLock()
    // Guarded by the lock, which is all that there is to say.
    private nonisolated(unsafe) let value: UnsafeMutablePointer<Value>

    init(_ initial: sending Value) {
      value = .allocate(capacity: 1)
      value.initialize(to: initial)
    }

    deinit {
      value.deinitialize(count: 1)
      value.deallocate()
    }

    func withLock<Result: ~Copyable, Failure: Error>(
      _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
      lock.lock()
      defer { lock.unlock() }
      return try body(&value.pointee)
    }
  }
#endif
