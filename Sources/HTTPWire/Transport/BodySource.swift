/// Where the bytes of a request's body come from when they do not lie in memory. Called by the transport
/// on its own thread, one call at a time, and must return at once.
package protocol BodySource: AnyObject, Sendable {
  /// The number of bytes; −1 if it is unknown.
  var length: Int64 { get }
  /// Whether ``start(wake:)`` will give the bytes from the first once more.
  var isRepeatable: Bool { get }
  /// Whether it can be read from its first byte to its last at any time, without an effect on what is sent.
  var isStored: Bool { get }
  /// Makes the first byte the next one to be read; before each sending of the body.
  ///
  /// - Parameter wake: To be called, from any thread, when there is something after ``BodyReading/wait``.
  /// - Returns: Why the body cannot be had, if so.
  func start(wake: @escaping @Sendable () -> Void) -> TransportFailure?
  /// The next bytes.
  func read(into room: UnsafeMutableRawBufferPointer) -> BodyReading
  /// Nothing more will be read, until the next start.
  func stop()
}

extension BodySource {
  package var isStored: Bool { false }
}

/// The result of reading a ``BodySource``.
package enum BodyReading: Sendable {
  /// So many bytes have been copied, at least one.
  case bytes(Int)
  case end
  /// There is nothing now; the source will wake the transport.
  case wait
  case failure(TransportFailure)
}

/// Where the bytes of a response's body go when they are not to be collected in memory. Called by the
/// transport on its own thread, one call at a time, and must return at once.
package protocol BodySink: AnyObject, Sendable {
  /// A response has come whose body follows; what an earlier one has left is not wanted any more.
  ///
  /// - Parameter wake: To be called, from any thread, when there is room after ``BodyReception/full``.
  /// - Returns: Why the body cannot be taken, if so.
  func begin(_ head: ResponseHead, wake: @escaping @Sendable () -> Void) -> TransportFailure?
  /// Takes bytes, all or none.
  func receive(_ bytes: UnsafeRawBufferPointer) -> BodyReception
  /// The transfer is over, well or not.
  func finish() -> TransportFailure?
}

/// The result of writing to a ``BodySink``.
package enum BodyReception: Sendable {
  case taken
  /// None was taken: they come again when the sink has woken the transport.
  case full
  case failure(TransportFailure)
}

extension RequestBody {
  /// The number of bytes; −1 if it is unknown.
  package var count: Int64 {
    switch self {
    case .none: 0
    case .bytes(let data): Int64(data.count)
    case .source(let source): source.length
    }
  }

  /// Whether it can be sent once more.
  package var isRepeatable: Bool {
    switch self {
    case .none, .bytes: true
    case .source(let source): source.isRepeatable
    }
  }

  /// Whether all of it can be looked at before it is sent.
  package var isStored: Bool {
    switch self {
    case .none, .bytes: true
    case .source(let source): source.isStored
    }
  }

  package var isPresent: Bool {
    switch self {
    case .none: false
    case .bytes, .source: true
    }
  }
}
