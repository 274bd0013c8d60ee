public import Synchronization

/// A `Synchronization.Mutex` with an order that ThreadSanitizer can see.
///
/// On Linux the standard library locks by futex calls in a library without instrumentation. ThreadSanitizer reports
/// each access under such a lock as a race, also in users' programs that are built with `--sanitize=thread`. Here
/// each critical section begins with an acquiring load and ends with a releasing store of one byte. The two
/// operations are compiled into the module itself, and are plain moves on x86.
///
/// Modules may name the type `Mutex` for themselves. The type is public because the compiler
/// specializes inlinable code of other modules only if it is public. A lock that is not specialized costs some 900
/// instructions.
public struct TrackedMutex<Value: ~Copyable>: ~Copyable {
  /// Orders the critical sections for the thread sanitizer.
  @usableFromInline let order = Atomic<Bool>(false)
  @usableFromInline let base: Synchronization.Mutex<Value>

  /// Protects `initial`.
  @inlinable public init(_ initial: consuming sending Value) {
    base = Synchronization.Mutex(initial)
  }

  /// Calls `body` with the value, while no other thread has it.
  @inlinable public borrowing func withLock<Result: ~Copyable, Failure: Error>(
    _ body: (inout sending Value) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    try base.withLock { (value: inout sending Value) throws(Failure) -> sending Result in
      _ = order.load(ordering: .acquiring)
      defer { order.store(false, ordering: .releasing) }
      return try body(&value)
    }
  }
}

// Unchecked: the value is reached under the lock alone.
extension TrackedMutex: @unchecked Sendable where Value: ~Copyable {}

/// The lock of this module; see ``TrackedMutex``.
typealias Mutex = TrackedMutex
