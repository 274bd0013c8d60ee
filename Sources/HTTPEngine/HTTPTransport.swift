package import HTTPWire

/// The transport of the engine: requests become exchanges of one ``EventLoop``.
package struct HTTPTransport: Transport {
  package let loop: EventLoop
  /// The addresses that name services have returned.
  let names = NameCache()

  package init(loop: EventLoop = EventLoop()) {
    self.loop = loop
  }

  package func send(
    _ request: WireRequest, observer: any TransferObserver, completion: any TransferCompletion
  ) {
    guard !request.profile.asksForNames else {
      return sendToFoundAddresses(request, observer: observer, completion: completion)
    }
    submit(request, observer: observer, completion: completion)
  }

  /// Makes an exchange of a request, on the loop's thread.
  func submit(
    _ request: WireRequest, observer: any TransferObserver, completion: any TransferCompletion
  ) {
    guard loop.isCurrent else {
      return loop.enqueue(
        Submission(request, on: self, observer: observer, completion: completion))
    }
    loop.submit(request, ticket: loop.nextTicket(), observer: observer, completion: completion)
  }

  /// Ends every transfer with `.shutDown`, now and later. The loop's thread ends after them.
  package func shutDown() {
    loop.postShutDown()
  }
}

/// A request that another thread has handed to the engine.
private final class Submission: LoopWork {
  private let transport: HTTPTransport
  private let request: WireRequest
  private let observer: any TransferObserver
  private let completion: any TransferCompletion

  init(
    _ request: WireRequest, on transport: HTTPTransport, observer: any TransferObserver,
    completion: any TransferCompletion
  ) {
    self.transport = transport
    self.request = request
    self.observer = observer
    self.completion = completion
  }

  func runOnLoop() { transport.submit(request, observer: observer, completion: completion) }
}

/// An engine: a transport of requests and of streams of bytes, which does its work on the thread of one ``EventLoop``.
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
