import Dispatch
import HTTPEngine
package import HTTPSystem
package import HTTPWire

/// The engine of a session: the transport of its requests and the executor of their tasks. Only this file names
/// `HTTPEngine`.
package struct Engine: Sendable {
  package let transport: any Transport
  /// Runs work on the engine's thread, asynchronously, once; callable on any thread. `nil` if only tasks can
  /// use the transport.
  let enqueue: (@Sendable (any LoopWork) -> Void)?
  /// Opens streams of bytes; `nil` if the transport cannot.
  let byteStreams: (any ByteStreamTransport)?
  /// The source of the state of the network.
  package let network: any NetworkSource
  /// The transport that has a loop; `nil` for any other.
  private let own: HTTPTransport?

  /// Makes an engine with a new loop, because sessions never share connections.
  package static func standard() -> Engine {
    let own = HTTPTransport()
    return Engine(
      transport: own, enqueue: { [loop = own.loop] in loop.enqueue($0) }, byteStreams: own,
      network: SystemNetwork(), own: own)
  }

  /// Makes an engine of any other transport and any network, without a thread.
  package init(
    transport: any Transport, enqueue: (@Sendable (any LoopWork) -> Void)? = nil,
    byteStreams: (any ByteStreamTransport)? = nil, network: any NetworkSource = SystemNetwork()
  ) {
    self.init(transport: transport, enqueue: enqueue, byteStreams: byteStreams, network: network, own: nil)
  }

  private init(
    transport: any Transport, enqueue: (@Sendable (any LoopWork) -> Void)?,
    byteStreams: (any ByteStreamTransport)?, network: any NetworkSource, own: HTTPTransport?
  ) {
    self.transport = transport
    self.enqueue = enqueue
    self.byteStreams = byteStreams
    self.network = network
    self.own = own
  }

  /// The executor of the steps of requests; `nil` is the pool.
  package var executor: (any TaskExecutor)? { own?.loop }

  /// Whether the caller is on the engine's thread, which calls handlers at the end of its turn.
  var isCurrent: Bool { own?.loop.isCurrent ?? false }

  /// Runs work as ``enqueue`` does, but not before the handlers of the engine's current turn are called.
  func enqueueForNextTurn(_ work: any LoopWork) {
    guard let own else {
      enqueue?(work)
      return
    }
    own.loop.enqueueForNextTurn(work)
  }

  /// Returns the number of the engine's turn, on its own thread; `nil` elsewhere.
  package func turn() -> UInt64? { own?.loop.turn }

  /// Ends every transfer, now and from now on.
  package func shutDown() { own?.shutDown() }

  /// Returns the number of times that another thread has enqueued work for the engine's thread; for tests and
  /// benchmarks.
  package func threadHopCount() -> UInt64 { own?.loop.threadHopCount ?? 0 }

  /// Returns the requests and connections of the transport.
  func snapshot() async -> TransportSnapshot { await own?.snapshot() ?? TransportSnapshot() }
}

extension Engine {
  /// The schemes with which the engine authenticates connections.
  package static var connectionSchemes: Set<AuthenticationScheme> { LoginTokens.schemes }

  /// Resumes a task that waits for a response: with all that the engine's turn has served, when called on the
  /// engine's thread, at once elsewhere.
  static func resume(_ waiter: UnsafeContinuation<Void, Never>) { DeliveryBatch.resume(waiter) }

  /// Calls the handler of a response on its queue, asynchronously: with all that the engine's turn has served, when
  /// called on the engine's thread, at once elsewhere.
  static func call(on queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void) {
    DeliveryBatch.call(on: queue, handler)
  }

  /// Makes the downloads about revocation, which block the calling thread.
  ///
  /// - Parameters:
  ///   - options: The options of the session or request, of which only those about the way to servers are used.
  ///   - proxies: The proxies to responders and lists; `nil` uses the environment's.
  static func revocationDownloads(
    _ options: TransportOptions, proxies: ProxyTable?
  ) -> any RevocationDownloads {
    RevocationDownload(options, proxies: proxies)
  }
}
