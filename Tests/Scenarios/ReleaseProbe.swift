/// An object that calls a closure when it is released.
package final class ReleaseProbe: Sendable {
  private let call: @Sendable () -> Void

  package init(_ call: @escaping @Sendable () -> Void) { self.call = call }

  deinit { call() }

  /// Does nothing. A closure that calls it retains the object.
  package func hold() {}

  /// Passes an object to `set`, which stores something that retains it, and then `nil`. The release of the object
  /// passes `nil`, too. Returns whether it was released. A lock that is acquired twice ends the process.
  package static func isReleased(by set: @escaping @Sendable (ReleaseProbe?) -> Void) -> Bool {
    let releases = ReleaseCount()
    set(
      ReleaseProbe {
        set(nil)
        releases.count.withLock { $0 += 1 }
      })
    set(nil)
    return releases.count.withLock { $0 } == 1
  }
}

private final class ReleaseCount: Sendable {
  let count = Mutex(0)
}
