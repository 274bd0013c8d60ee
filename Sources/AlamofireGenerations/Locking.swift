public import Synchronization

/// A `Synchronization.Mutex` whose order the thread sanitizer sees.
///
/// The lock of the standard library is in a library that is not instrumented. The acquiring load and the releasing
/// store of one byte are compiled into the module that uses the lock. It is public because the compiler specializes
/// inlinable code of other modules only when that is public.
public struct Mutex<Value: ~Copyable>: ~Copyable {
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
extension Mutex: @unchecked Sendable where Value: ~Copyable {}

/// A closure or an object of the user's that is passed to another thread.
///
/// Unchecked, and the only type of the older generations that is unchecked for this reason: their protocols and
/// closures were not `Sendable`. Users guard their own classes, or hand them over for good. The older generations call
/// the value and never change it.
package struct Boxed<Value>: @unchecked Sendable {
  package let value: Value

  package init(_ value: Value) { self.value = value }
}
