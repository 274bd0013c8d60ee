package import HTTPWire

/// An engine: a transport of requests and of streams of bytes, whose work is done on the thread of one ``EventLoop``.
///
/// A session owns one engine, and everything above the engine uses these members only. Two engines can therefore be
/// compared by the same tests.
package protocol EngineTransport: Transport, ByteStreamTransport {
  /// The loop of the engine, which is also the executor of the tasks of requests.
  var loop: EventLoop { get }

  /// Ends every transfer with `.shutDown`, now and later. The loop's thread ends after them.
  func shutDown()

  /// Returns the requests and connections of this moment. Callable from any thread.
  func snapshot() async -> TransportSnapshot
}

extension HTTPTransport: EngineTransport {
  package func snapshot() async -> TransportSnapshot { await loop.snapshot() }
}

/// The observer of a request that the engine sends for itself. It ignores all events.
final class QuietObserver: TransferObserver {
  func transferBegan(_ control: any TransferControl) -> TransferStart { .go }
  func headReceived(_ head: ResponseHead) -> HeadDisposition { .proceed }
  func bytesMoved(_ count: ByteCount) {}
  func transferEnded() {}
}
