/// The source of a request's body that is not in memory. The transport calls it on its own thread, one call at a
/// time; it must return at once.
package protocol BodySource: AnyObject, Sendable {
  /// The number of bytes; −1 if it is unknown.
  var length: Int64 { get }
  /// Whether ``start(wake:)`` can begin again with the first byte.
  var isRepeatable: Bool { get }
  /// Whether the whole body can be read at any time, without an effect on its sending.
  var isStored: Bool { get }
  /// Begins with the first byte; called before each sending of the body.
  ///
  /// - Parameter wake: Call it, on any thread, when there are bytes after ``BodyReading/wait``.
  /// - Returns: The failure if the body cannot be read.
  func start(wake: @escaping @Sendable () -> Void) -> TransportFailure?
  /// Reads the next bytes.
  func read(into room: UnsafeMutableRawBufferPointer) -> BodyReading
  /// Called when no more bytes are read until the next start.
  func stop()
}

extension BodySource {
  package var isStored: Bool { false }
}

/// The result of reading a ``BodySource``.
package enum BodyReading: Sendable {
  /// The number of copied bytes, at least one.
  case bytes(Int)
  case end
  /// There are no bytes now; the source will wake the transport.
  case wait
  case failure(TransportFailure)
}

/// The destination of a response's body that is not collected in memory. The transport calls it on its own thread,
/// one call at a time; it must return at once.
package protocol BodySink: AnyObject, Sendable {
  /// Begins the body of a response; bytes of an earlier response are dropped.
  ///
  /// - Parameter wake: Call it, on any thread, when there is room after ``BodyReception/full``.
  /// - Returns: The failure if the body cannot be taken.
  func begin(_ head: ResponseHead, wake: @escaping @Sendable () -> Void) -> TransportFailure?
  /// Returns the number of bytes after which it is full. If that is 0, it calls the wake closure when there is room.
  /// The transport asks before it reads, so that it has to keep nothing.
  func room() -> Int
  /// Takes bytes, all or none.
  func receive(_ bytes: UnsafeRawBufferPointer) -> BodyReception
  /// Called when the transfer has ended, with or without success.
  func finish() -> TransportFailure?
}

/// The pieces in which sinks get a body.
package enum BodyPiece {
  /// The largest piece for a sink that copies. Above 128 KiB, `malloc` maps and unmaps memory for each one.
  package static let size = 65_536
}

extension BodySink {
  /// Returns one piece, because more is not known.
  package func room() -> Int { BodyPiece.size }
}

/// The result of writing to a ``BodySink``.
package enum BodyReception: Sendable {
  case taken
  /// No byte was taken: the transport offers them again after the wake closure was called.
  case full
  case failure(TransportFailure)
}
