#if THREAD_SANITIZER
  // Exported, so that the files that lock see its members without an import of their own.
  @_exported import class HTTPWire.SanitizedMutex

  /// The lock that the thread sanitizer understands; see ``SanitizedMutex``.
  typealias Mutex = SanitizedMutex
#endif
