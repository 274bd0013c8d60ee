// The boundary between requests for a stream of bytes and the transport. The life of a stream:
//
//  1. A session requests a connection to a host and a port by a ``WireRequest`` that only connects.
//  2. At the first operation on the ``ByteStream``, the transport connects as for any request: with proxies,
//     overrides, guards and timeouts.
//  3. The stream reads only for pending reads, and writes in order. ``ByteStream/secure(_:)`` begins TLS. It sends no
//     data over TLS before the server is accepted, by the evaluator of the profile, or by the ``ByteStreamWatcher`` if
//     the evaluator returns ``TrustVerdict/ask``.
//  4. The stream ends once; pending operations fail before.

package import FoundationEssentials

/// Opens streams of bytes.
package protocol ByteStreamTransport: Sendable {
  /// Makes a stream that connects at its first operation.
  ///
  /// - Parameters:
  ///   - request: The target; only its connection is established.
  ///   - isSecure: Whether the stream begins with TLS.
  ///   - watcher: Retained until the end of the stream.
  func stream(
    _ request: WireRequest, isSecure: Bool, watcher: any ByteStreamWatcher
  ) -> any ByteStream
}

package typealias ByteStreamCompletion<Value> = @Sendable (Result<Value, TransportFailure>) -> Void

/// Bytes both ways, from any thread. Completions are called once, on the transport's thread, where no code of a user
/// may run.
package protocol ByteStream: Sendable {
  typealias Number = ByteStreamFlow.Number

  func resume()
  func suspend()
  /// Calls back with at least `least` bytes and at most `most`; with fewer only at the end.
  @discardableResult
  func read(
    least: Int, most: Int, timeout: Duration?, _ completion: @escaping ByteStreamCompletion<StreamedBytes>
  ) -> Number
  /// Writes the bytes that `data` returns. It is called on the transport's thread, so that the bytes of other threads
  /// which came in the meantime are part of the same write.
  @discardableResult
  func write(
    _ data: @escaping @Sendable () -> Data, timeout: Duration?,
    _ completion: @escaping ByteStreamCompletion<Void>
  ) -> Number
  /// Begins TLS after all pending operations.
  @discardableResult
  func secure(_ completion: @escaping ByteStreamCompletion<Void>) -> Number
  /// Withdraws an operation.
  func withdraw(_ number: Number)
  func closeReading()
  func closeWriting()
  func close()
  func cancel()
  /// Ends the stream because its session has ended, also one that has not connected yet.
  func shutDown()
}

extension ByteStream {
  @discardableResult
  package func write(
    _ data: Data, timeout: Duration?, _ completion: @escaping ByteStreamCompletion<Void>
  ) -> Number {
    write({ data }, timeout: timeout, completion)
  }
}

/// Bytes that were read.
package struct StreamedBytes: Sendable {
  package let data: Data
  /// Whether the other side has finished sending.
  package let isAtEnd: Bool

  package init(data: Data, isAtEnd: Bool) {
    self.data = data
    self.isAtEnd = isAtEnd
  }
}

/// The owner of a stream.
package protocol ByteStreamWatcher: AnyObject, Sendable {
  /// Decides about a server for which the evaluator of the profile returned ``TrustVerdict/ask``. Never called on a
  /// thread of the transport. `nil` accepts the server, and the evaluator is called again.
  func evaluate(_ chain: PresentedChain) async -> TransportFailure?
  /// Chooses the client identity for a server that requests one, if the evaluator of the profile requires the choice.
  /// Does not run on a thread of the transport. `nil` stands for no identity.
  func identity() async -> Result<ClientIdentity?, TransportFailure>
  /// Called when the stream is connected. On the transport's thread.
  func streamOpened()
  /// Called when the stream is over; `nil` when both sides were closed. On the transport's thread, once.
  func streamEnded(_ failure: TransportFailure?)
}
