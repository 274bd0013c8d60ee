package import HTTPWire

/// The transport of the engine: requests become exchanges of one ``EventLoop``.
package struct HTTPTransport: Transport {
  package let loop: EventLoop
  /// The addresses that name services have returned.
  let names = NameCache()

  package init(loop: EventLoop = EventLoop()) {
    self.loop = loop
  }

  // Code for rare requests is not inlined, because the frame of this function is allocated for every request.
  nonisolated(nonsending) package func send(
    _ request: WireRequest, observer: any TransferObserver
  ) async throws(TransportFailure) -> WireResponse {
    guard !request.profile.asksForNames, loop.isCurrent, observer.cancelsByControl, !Task.isCancelled else {
      return try await sendInTask(request, observer)
    }
    let ticket = loop.nextTicket()
    // Unchecked: `Exchange.finish` traps on a second outcome, and the loop ends every transfer.
    let outcome = await withUnsafeContinuation { continuation in
      loop.submit(request, ticket: ticket, observer: observer, completion: .continuation(continuation))
    }
    return try outcome.get()
  }

  package func send(
    _ request: WireRequest, observer: any TransferObserver, completion: any TransferCompletion
  ) -> Bool {
    guard !request.profile.asksForNames, loop.isCurrent, observer.cancelsByControl else { return false }
    loop.submit(request, ticket: loop.nextTicket(), observer: observer, completion: .callback(completion))
    return true
  }

  @inline(never)
  nonisolated(nonsending) private func sendInTask(
    _ request: WireRequest, _ observer: any TransferObserver
  ) async throws(TransportFailure) -> WireResponse {
    if request.profile.asksForNames { return try await sendWithAddresses(request, observer) }
    guard loop.isCurrent else {
      let outcome = await withTaskExecutorPreference(loop) { await exchange(request, observer: observer) }
      return try outcome.get()
    }
    return try await exchange(request, observer: observer).get()
  }

  /// Ends every transfer with `.shutDown`, now and later. The loop's thread ends after them.
  package func shutDown() {
    loop.postShutDown()
  }

  nonisolated(nonsending) func exchange(_ request: WireRequest, observer: any TransferObserver) async
    -> Exchange.Outcome
  {
    guard !Task.isCancelled else {
      return .failure(TransportFailure(.cancelled, "The request was cancelled."))
    }
    let ticket = loop.nextTicket()
    guard !observer.cancelsByControl else {
      // Unchecked: `Exchange.finish` traps on a second outcome, and the loop ends every transfer.
      return await withUnsafeContinuation { continuation in
        loop.submit(request, ticket: ticket, observer: observer, completion: .continuation(continuation))
      }
    }
    return await withTaskCancellationHandler {
      await withUnsafeContinuation { continuation in
        loop.submit(request, ticket: ticket, observer: observer, completion: .continuation(continuation))
      }
    } onCancel: {
      // The submission above ran on the loop's thread, so the loop reads this command after it.
      loop.post(.cancel(ticket: ticket))
    }
  }
}

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
