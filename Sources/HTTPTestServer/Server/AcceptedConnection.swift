import Glibc

/// The socket of an accepted connection, which its thread uses and ``HTTPTestServer/closeIdleConnections()`` may close.
final class AcceptedConnection: Sendable {
  private struct Use {
    var isOpen = true
    var isIdle = false
  }

  let descriptor: Int32
  /// The use of the socket, for the thread of the connection and tests.
  private let use = Mutex(Use())

  init(_ descriptor: Int32) {
    self.descriptor = descriptor
  }

  /// Notes whether the connection waits for its next request.
  func setIdle(_ isIdle: Bool) {
    use.withLock { $0.isIdle = isIdle }
  }

  /// Performs an attempt to write the end of a response. If it succeeds, the connection is idle before anyone else can
  /// ask: the client may have the response already.
  ///
  /// - Parameter attempt: Writes without waiting, and returns whether the last byte was written.
  func finish(_ attempt: () -> Bool) {
    use.withLock { use in
      if attempt() { use.isIdle = true }
    }
  }

  /// Sends FIN if the connection waits for its next request.
  func closeIfIdle() {
    use.withLock { use in
      if use.isOpen, use.isIdle { shutdown(descriptor, Int32(SHUT_RDWR)) }
    }
  }

  /// Closes the socket. Called once, by the thread of the connection as its last step.
  func end() {
    use.withLock { $0.isOpen = false }
    close(descriptor)
  }
}
