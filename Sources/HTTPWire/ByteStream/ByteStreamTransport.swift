// The boundary between requests for a stream of bytes and the transport. The life of a stream:
//
//  1. A session asks for a connection to a host and a port by a ``WireRequest`` that only connects.
//  2. Nothing happens until something is asked of the ``ByteStream``. Then the transport connects, by the same ways as
//     for any request: proxies, overrides, guards, time limits.
//  3. It reads what is asked for and no more, and writes what it is given, each in order. ``ByteStream/secure(_:)``
//     begins TLS where the stream stands then; nothing is sent over it before the server is accepted, by the judge of
//     the profile or, when that wants to ask elsewhere, by the ``ByteStreamWatcher``.
//  4. It ends once; whatever is still asked for then has failed before.

package import FoundationEssentials

/// Opens streams of bytes.
package protocol ByteStreamTransport: Sendable {
  /// A stream that waits to be asked for something.
  ///
  /// - Parameters:
  ///   - request: Where to; one that ``WireRequest/connectsOnly``.
  ///   - isSecure: Whether TLS comes before everything else.
  ///   - watcher: Kept until the end of the stream.
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
  @discardableResult
  func write(_ data: Data, timeout: Duration?, _ completion: @escaping ByteStreamCompletion<Void>) -> Number
  /// Begins TLS when everything asked for before is done.
  @discardableResult
  func secure(_ completion: @escaping ByteStreamCompletion<Void>) -> Number
  /// Gives up something that was asked for.
  func withdraw(_ number: Number)
  func closeReading()
  func closeWriting()
  func close()
  func cancel()
}

/// Bytes that were read.
package struct StreamedBytes: Sendable {
  package let data: Data
  /// Whether the other side sends no more.
  package let isAtEnd: Bool

  package init(data: Data, isAtEnd: Bool) {
    self.data = data
    self.isAtEnd = isAtEnd
  }
}

/// The owner of a stream.
package protocol ByteStreamWatcher: AnyObject, Sendable {
  /// Decides about a server that the judge of the profile wants to be asked about elsewhere. Runs on no thread of the
  /// transport. `nil` accepts it, and the judge is asked again.
  func judge(_ chain: PresentedChain) async -> TransportFailure?
  /// Chooses the identity of the client for a server that asks for one, if the judge of the profile demands the choice.
  /// Runs on no thread of the transport. `nil` is no identity.
  func identity() async -> Result<ClientIdentity?, TransportFailure>
  /// The stream is connected. On the transport's thread.
  func streamOpened()
  /// The stream is over; `nil` when both sides were closed. On the transport's thread, once.
  func streamEnded(_ failure: TransportFailure?)
}
