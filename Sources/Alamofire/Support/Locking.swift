import HTTPWire

/// The lock of this module; see ``TrackedMutex``.
typealias Mutex = TrackedMutex

/// Stores a value in place of another one, which is returned.
///
/// Under a lock, an object of the caller is replaced in this way, and released after the lock: the code of its `deinit`
/// may use the object that the lock belongs to.
@inline(__always)
func replace<Value>(_ value: inout Value, with new: Value) -> Value {
  let old = value
  value = new
  return old
}

/// A value that most of its owners never change, so that they allocate no memory for it. An array or an optional in its
/// place would be copied whole for each member that is read.
///
/// The first change allocates. A copy shares the memory of the original, so that no copy keeps an old value.
struct Rare<Value: RareValue>: Sendable {
  /// Unchecked, because the lock of the owner guards the value as it guards the rest of its state.
  final class Memory: @unchecked Sendable {
    @exclusivity(unchecked) fileprivate var value = Value()
  }

  private var memory: Memory?

  init() {}

  /// Whether the value was changed. Asked first on the path of every request.
  var isChanged: Bool { memory != nil }

  /// Returns a part of the value; `nil` if the value was never changed. On the path of every request this costs less
  /// than ``value``.
  @inline(__always)
  func read<Part>(_ part: (borrowing Value) -> Part?) -> Part? {
    if let memory { part(memory.value) } else { nil }
  }

  var value: Value {
    _read {
      let memory = memory ?? Value.unchanged
      yield memory.value
    }
    _modify {
      let memory = memory ?? Memory()
      self.memory = memory
      yield &memory.value
    }
  }
}

/// A value for ``Rare``.
protocol RareValue: Sendable {
  init()
  /// The memory of all owners that have changed nothing. Nothing writes to it.
  static var unchanged: Rare<Self>.Memory { get }
}
