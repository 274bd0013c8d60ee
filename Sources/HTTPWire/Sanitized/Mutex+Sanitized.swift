#if THREAD_SANITIZER
  /// The lock that the thread sanitizer understands; see ``SanitizedMutex``.
  typealias Mutex = SanitizedMutex
#endif
