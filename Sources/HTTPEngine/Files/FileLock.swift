import Glibc

/// Locks of files (`flock`), which belong to an open file and all copies of its descriptor.
enum FileLock {
  /// Closes a file that may be locked. Returns what `close` returns.
  ///
  /// The lock is released before, because a process that is being started has a copy of the descriptor until its
  /// program begins.
  @discardableResult static func close(_ descriptor: Int32) -> Int32 {
    flock(descriptor, LOCK_UN)
    return Glibc.close(descriptor)
  }
}
