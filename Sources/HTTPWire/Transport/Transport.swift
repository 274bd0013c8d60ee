// The seam between the pipeline and whatever moves bytes. The story of one exchange:
//
//  1. The pipeline has a request that is ready to be sent: adapted, validated, with its credentials
//     and cookies. It hands it over as a ``WireRequest`` and waits.
//  2. The transport queues it until its host may take one more, connects or reuses a connection,
//     and sends it once. It follows no redirect, answers no challenge, retries nothing.
//  3. While bytes move it tells the ``TransferObserver`` how many, and shows it the head of the
//     response before the first byte of the body. The observer may hold the body back there.
//     The bytes of the body are collected, or handed to the request's ``BodySink``; those that are sent
//     lie in memory, or come from a ``BodySource``. Either may ask the transport to wait.
//  4. Whoever owns the request may close the ``Valve`` (suspend) and open it again (resume).
//  5. It ends exactly once: with a ``WireResponse``, whatever its status, or by throwing a
//     ``TransportFailure``. If the surrounding task is cancelled, or its valve, it ends with
//     `.cancelled`.
//
// libcurl stands behind this seam, and so do the fake of the tests and the `URLProtocol` classes of
// a user.

/// Sends one request once: follows nothing, retries nothing, validates nothing.
package protocol Transport: Sendable {
  nonisolated(nonsending) func send(
    _ request: WireRequest, observer: any TransferObserver
  ) async throws(TransportFailure) -> WireResponse
}

/// Watches one transfer. Its methods are called by the transport, on any thread, one at a time, and
/// must return at once: they run between two reads of a socket that others share.
package protocol TransferObserver: AnyObject, Sendable {
  /// Whether ``Valve/cancel()`` is called for every transfer that is not wanted any more. Then the
  /// transport need not watch the surrounding task, which costs.
  var cancelsByValve: Bool { get }
  /// The transfer is in the transport's hands. `valve` works until the transfer ends and does nothing
  /// afterwards.
  func transferBegan(_ valve: any Valve) -> TransferStart
  /// The head of the final response has come; informational ones (1xx) are not reported.
  func headReceived(_ head: ResponseHead) -> HeadDisposition
  /// Bytes have moved, counted over the whole transfer.
  func bytesMoved(_ count: ByteCount)
  /// The transfer is over; its valve does nothing any more.
  func transferEnded()
}

extension TransferObserver {
  package var cancelsByValve: Bool { false }
}

/// Whether a transfer that has come into the transport's hands starts.
package enum TransferStart: Sendable, Equatable {
  case go
  /// It waits for ``Valve/open()``.
  case hold
  /// It is not wanted any more, and ends as cancelled.
  case refuse
}

/// What happens to the body of a response whose head has just come.
package enum HeadDisposition: Sendable, Equatable {
  case proceed
  /// Nothing of the body is read until the valve is opened.
  case hold
  /// The body is of no use: it is read, and reaches no sink.
  case discard
}

/// Stops and starts the bytes of one transfer, from any thread.
package protocol Valve: Sendable {
  func close()
  func open()
  /// Ends the transfer as cancelled.
  func cancel()
}

/// How far a transfer has come.
package struct ByteCount: Sendable, Equatable {
  package var sent: Int64 = 0
  /// The length of the request's body; −1 when it is not known.
  package var expectedToSend: Int64 = -1
  package var received: Int64 = 0
  /// The length of the response's body; −1 when it is not known or the body is encoded.
  package var expectedToReceive: Int64 = -1

  package init() {}
}
