import HTTPWire
import Synchronization

/// A transfer that the hops of a run wait for.
struct Transfer: Sendable {
  typealias End =
    @Sendable (_ hops: inout HopLoop, _ result: consuming Result<WireResponse, TransportFailure>)
    throws(AFError) -> Outcome<HopLoop>

  let transport: any Transport
  let request: WireRequest
  let observer: any TransferObserver
  /// The rest of the stage, after the transfer.
  let then: End

  /// The work that awaits the transfer in a task. Cancelling the task also cancels the transfer, by its control.
  var work: @Sendable () async -> HopLoop.Entry {
    {
      let end = AwaitedEnd()
      let result = await end.result {
        transport.send(request, observer: observer, completion: end)
      }
      return HopLoop.entry { hops in hops.transferEnded(result) }
    }
  }

  /// The end of a transfer that a task awaits.
  private final class AwaitedEnd: TransferCompletion {
    private typealias Waiter = CheckedContinuation<Result<WireResponse, TransportFailure>, Never>

    /// The task and the end of the transfer take it from each other, on any threads.
    private let waiter = Mutex<Waiter?>(nil)

    func result(of send: () -> Void) async -> Result<WireResponse, TransportFailure> {
      let result = await withCheckedContinuation { continuation in
        waiter.withLock { $0 = continuation }
        send()
      }
      // ThreadSanitizer sees no order of the threads if a continuation is resumed before it is awaited.
      waiter.withLock { _ in }
      return result
    }

    func transferEnded(_ result: consuming Result<WireResponse, TransportFailure>) {
      waiter.withLock { $0.take() }?.resume(returning: result)
    }
  }
}

/// The transfer of a hop: the one that begins when its stage is left, and the rest of that stage.
struct HopTransfer: Sendable {
  private var next: Transfer?
  private var rest: Transfer.End?

  mutating func begin(_ transfer: Transfer) {
    next = transfer
    rest = transfer.then
  }

  /// Returns the transfer that begins now.
  mutating func take() -> Transfer {
    guard let taken = next.take() else { preconditionFailure("the hops wait for a transfer without one") }
    return taken
  }

  /// Returns the rest of the stage whose transfer has ended.
  mutating func end() -> Transfer.End {
    guard let rest = rest.take() else { preconditionFailure("a transfer ended that nothing waits for") }
    return rest
  }
}
