import Glibc

/// Where a loop without transfers sleeps. A semaphore costs one system call a side; libcurl's own
/// wake-up, which a loop with transfers needs, costs two and a socket.
final class LoopSleep: Sendable {
  // A POSIX semaphore is made to be used from any thread; the pointer never changes.
  private nonisolated(unsafe) let semaphore: UnsafeMutablePointer<sem_t>

  init() {
    semaphore = .allocate(capacity: 1)
    // Cannot fail for a semaphore of one process that starts at zero.
    sem_init(semaphore, 0, 0)
  }

  deinit {
    sem_destroy(semaphore)
    semaphore.deallocate()
  }

  /// Ends the sleep, or the next one if nobody sleeps; from any thread.
  func wake() {
    sem_post(semaphore)
  }

  /// Sleeps until it is woken or the time is over; sometimes shorter.
  func sleep(nanoseconds: UInt64) {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    let total = UInt64(time.tv_nsec) + nanoseconds % 1_000_000_000
    time.tv_sec += Int(nanoseconds / 1_000_000_000 + total / 1_000_000_000)
    time.tv_nsec = Int(total % 1_000_000_000)
    sem_timedwait(semaphore, &time)
  }
}
