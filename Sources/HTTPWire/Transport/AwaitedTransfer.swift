import Synchronization

extension Transport {
  /// Sends a request and awaits its outcome. The cancellation of the current task cancels the transfer.
  nonisolated(nonsending) package func send(
    _ request: WireRequest, observer: any TransferObserver
  ) async throws(TransportFailure) -> WireResponse {
    let transfer = AwaitedTransfer(observer)
    let outcome = await withTaskCancellationHandler {
      await transfer.outcome { send(request, observer: transfer, completion: transfer) }
    } onCancel: {
      transfer.cancel()
    }
    return try outcome.get()
  }
}

/// A transport that runs each transfer in a task, because it waits for the caller's code, a disk or another transfer.
package protocol AsyncTransport: Transport {
  /// Sends a request. Called in a task on the pool, which is never cancelled.
  func response(
    to request: WireRequest, observer: any TransferObserver
  ) async throws(TransportFailure) -> WireResponse
}

extension AsyncTransport {
  package func send(
    _ request: WireRequest, observer: any TransferObserver, completion: any TransferCompletion
  ) {
    // Detached, because the current task, if any, may belong to another request.
    Task.detached(priority: Task.currentPriority) {
      let outcome: Result<WireResponse, TransportFailure>
      do throws(TransportFailure) {
        outcome = .success(try await response(to: request, observer: observer))
      } catch {
        outcome = .failure(error)
      }
      completion.transferEnded(outcome)
    }
  }
}

/// A transfer that a task awaits. Cancelling the task cancels the transfer.
private final class AwaitedTransfer: TransferObserver, TransferCompletion {
  private struct State {
    var control: (any TransferControl)?
    var isCancelled = false
    var waiter: CheckedContinuation<Result<WireResponse, TransportFailure>, Never>?
  }

  private let observer: any TransferObserver
  /// The control of the transfer, and the task that awaits it, for any thread.
  private let state = Mutex(State())

  init(_ observer: any TransferObserver) { self.observer = observer }

  /// Begins the transfer by calling `send`, and waits for its outcome.
  nonisolated(nonsending) func outcome(
    of send: () -> Void
  ) async -> Result<WireResponse, TransportFailure> {
    let outcome = await withCheckedContinuation { continuation in
      state.withLock { $0.waiter = continuation }
      send()
    }
    // ThreadSanitizer sees no order of the threads if a continuation is resumed before it is awaited.
    state.withLock { _ in }
    return outcome
  }

  func cancel() {
    let control = state.withLock { state in
      state.isCancelled = true
      return state.control
    }
    control?.cancel()
  }

  func transferBegan(_ control: any TransferControl) -> TransferStart {
    let isCancelled = state.withLock { state in
      state.control = control
      return state.isCancelled
    }
    let start = observer.transferBegan(control)
    return isCancelled ? .refuse : start
  }

  func informationalHeadReceived(_ head: ResponseHead) { observer.informationalHeadReceived(head) }
  func headReceived(_ head: ResponseHead) -> HeadDisposition { observer.headReceived(head) }
  func bytesMoved(_ count: ByteCount) { observer.bytesMoved(count) }
  func transferEnded() { observer.transferEnded() }

  func transferEnded(_ outcome: consuming Result<WireResponse, TransportFailure>) {
    state.withLock { state in
      state.control = nil
      return state.waiter.take()
    }?.resume(returning: outcome)
  }
}
