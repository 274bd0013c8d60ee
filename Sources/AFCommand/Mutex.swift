import Synchronization

/// A `Synchronization.Mutex` whose order ThreadSanitizer sees. The lock of the standard library is in a library
/// without instrumentation, so an atomic byte is compiled into this module.
struct Mutex<Value: ~Copyable>: ~Copyable {
  /// Orders the critical sections for the thread sanitizer.
  private let order = Atomic<Bool>(false)
  private let base: Synchronization.Mutex<Value>

  init(_ initial: consuming sending Value) {
    base = Synchronization.Mutex(initial)
  }

  borrowing func withLock<Result: ~Copyable, Failure: Error>(
    _ body: (inout sending Value) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    try base.withLock { (value: inout sending Value) throws(Failure) -> sending Result in
      _ = order.load(ordering: .acquiring)
      defer { order.store(false, ordering: .releasing) }
      return try body(&value)
    }
  }
}

// Unchecked: the value is reached only under the lock.
extension Mutex: @unchecked Sendable where Value: ~Copyable {}
