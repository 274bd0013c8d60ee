#if THREAD_SANITIZER
  import HTTPWire

  /// The lock that the thread sanitizer understands; see ``SanitizedMutex``.
  typealias Mutex = SanitizedMutex
#endif
