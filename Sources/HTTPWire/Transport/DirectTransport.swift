/// A transport that can do without tasks: it calls who wants to send on its own thread, and answers there.
///
/// What never waits for anything but its transfer needs no task, and a task is a tenth of what a small request costs.
/// The story of the exchange is that of ``Transport``; it can be told by either, for one session at the same time.
package protocol DirectTransport: Sendable {
  /// Calls `visitor` on the transport's thread, soon, once. From any thread.
  func admit(_ visitor: any TransportVisitor)

  /// Sends one request once, and answers `receiver` on the transport's thread, once: before this returns, at the
  /// earliest. Only on that thread.
  ///
  /// Returns false, and does nothing, when somebody has to wait for this request: ``Transport`` can send it.
  func send(
    _ request: WireRequest, observer: any TransferObserver, answering receiver: any TransferReceiver
  ) -> Bool
}

/// Who wants to be on the transport's thread. It must return at once: every transfer waits meanwhile.
package protocol TransportVisitor: Sendable {
  func visit()
}

/// Who is told what came of a transfer, and must return at once.
package protocol TransferReceiver: AnyObject {
  func received(_ outcome: Result<WireResponse, TransportFailure>)
}
