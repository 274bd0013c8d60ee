# Sourced by Scripts/lib/faults/run.

# Scripts/locks
begin
plant Sources/X/A.swift <<'END'
typealias Mutex = TrackedMutex
final class Outer: Sendable {
  private struct State {}
  private let state = Mutex(State())
  /// The answer.
  @exclusivity(unchecked)
  let other: Mutex<Int?>
  init() { state = Mutex(State()) }
}
open class Base: @unchecked Sendable {}
/// A base.
open class Documented: @unchecked Sendable {
  // It has no reason.
}
final class Sub<Value: Sendable>: Base, @unchecked Sendable {
  // Unchecked, as its superclass: it adds locks.
  // Mutex(State())
  let flag = Atomic<Bool>(false)

  /// Another comment.

  let answer = Mutex<Int?>(nil)  // The answer.
  nonisolated(unsafe) let pointer: Int
  unowned(unsafe) let owner: Base
  let text = """
    let no = Mutex(0)
    """
}
let queues = [DispatchQueue(label: "a.b"), DispatchQueue(label: "a.c")]
let queue = DispatchQueue(label: "a.d")
END
plant Tests/YTests/A.swift 'let count = Mutex(0)\n'
plant Documentation/Concurrency.md \
  '| queue | number |\n|---|---|\n| `a.b`, `….d` (`X`) | `a.e` |\n| `a.f`, `….g` | one |\n\n| `a.h` | one |\n'
prints 1 Scripts/locks "$tree" check <<'END'
Sources/X/A.swift:4: Outer: lock without a comment that gives its reason
Sources/X/A.swift:10: Base: @unchecked Sendable without a comment that gives its reason
Sources/X/A.swift:12: Documented: @unchecked Sendable without a comment that gives its reason
Sources/X/A.swift:18: Sub: atomic without a comment that gives its reason
Sources/X/A.swift:23: Sub: nonisolated(unsafe) without a comment that gives its reason
Sources/X/A.swift:24: Sub: unowned(unsafe) without a comment that gives its reason
Sources/X/A.swift:29: the queue a.c is not in Documentation/Concurrency.md
Tests/YTests/A.swift:1: the target has no Mutex that the thread sanitizer sees
Documentation/Concurrency.md:4: there is no queue a.f
Documentation/Concurrency.md:4: there is no queue ….g
END
reports 0 'Sources/X/A.swift:7: Outer lock: The answer.' Scripts/locks "$tree"
reports 0 'Sources/X/A.swift:15: Sub @unchecked Sendable: Unchecked, as its superclass' Scripts/locks "$tree"
