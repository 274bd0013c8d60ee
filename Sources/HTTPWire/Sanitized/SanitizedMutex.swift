#if THREAD_SANITIZER
  import Glibc

  /// Takes the place of `Synchronization.Mutex` in builds for the thread sanitizer, with
  /// `-Xswiftc -DTHREAD_SANITIZER`.
  ///
  /// On Linux that one is made of futex calls in a library which is not instrumented: the sanitizer does
  /// not see that it orders anything, and reports every access under it. It knows the mutex of the C library.
  /// Each module that locks names it `Mutex` for itself.
  package final class SanitizedMutex<Value>: Sendable {
    private nonisolated(unsafe) let lock: UnsafeMutablePointer<pthread_mutex_t>
    private nonisolated(unsafe) let value: UnsafeMutablePointer<Value>

    package init(_ initial: sending Value) {
      lock = .allocate(capacity: 1)
      pthread_mutex_init(lock, nil)
      value = .allocate(capacity: 1)
      value.initialize(to: initial)
    }

    deinit {
      value.deinitialize(count: 1)
      value.deallocate()
      pthread_mutex_destroy(lock)
      lock.deallocate()
    }

    package func withLock<Result: ~Copyable, Failure: Error>(
      _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
      pthread_mutex_lock(lock)
      defer { pthread_mutex_unlock(lock) }
      return try body(&value.pointee)
    }
  }
#endif
