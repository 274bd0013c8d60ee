import Synchronization

/// A `Synchronization.Mutex` whose order the thread sanitizer sees.
///
/// The lock of the standard library is in a library that is not instrumented. The acquiring load and the releasing
/// store of one byte are compiled into the module that uses the lock.
struct Mutex<Value: ~Copyable>: ~Copyable {
  /// Orders the critical sections for the thread sanitizer.
  private let order = Atomic<Bool>(false)
  private let base: Synchronization.Mutex<Value>

  /// Protects `initial`.
  init(_ initial: consuming sending Value) {
    base = Synchronization.Mutex(initial)
  }

  /// Calls `body` with the value, while no other thread has it.
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

extension Mutex {
  /// Sets a property. The former value is released outside of the lock, because it may be the last reference to an
  /// object of the user's, whose deinitializer may call what has the lock.
  borrowing func set<Property: Sendable>(
    _ property: any WritableKeyPath<Value, Property> & Sendable, to new: Property
  ) {
    _ = withLock { value in
      let former = value[keyPath: property]
      value[keyPath: property] = new
      return former
    }
  }
}

// Unchecked: the value is reached only under the lock.
extension Mutex: @unchecked Sendable where Value: ~Copyable {}

/// A closure or an object of the user's that is passed to another thread.
///
/// Unchecked, and the only type of the older generations that is unchecked for this reason: their protocols and
/// closures were not `Sendable`. Users guard their own classes, or hand them over for good. The older generations call
/// the value and never change it.
struct Boxed<Value>: @unchecked Sendable {
  let value: Value

  init(_ value: Value) { self.value = value }
}
