import Glibc
import Synchronization

extension ServerCore {
  func received(byteCount: Int) {
    state.withLock { $0.receivedByteCount += byteCount }
  }

  func record(_ request: RecordedRequest) {
    deliver(state.withLock { $0.record(request) })
  }

  /// Takes the next scripted reply, if there is one.
  func nextScriptedReply() -> Reply? {
    state.withLock { $0.replies.isEmpty ? nil : $0.replies.removeFirst() }
  }

  /// Notes whether a connection waits for its next request.
  func setIdle(_ isIdle: Bool, connection id: Int) {
    state.withLock { $0.connections[id]?.isIdle = isIdle }
  }

  /// Sends FIN on every connection without a request; the entry keeps each descriptor valid.
  func closeIdleConnections() {
    state.withLock { state in
      for connection in state.connections.values where connection.isIdle {
        shutdown(connection.descriptor, Int32(SHUT_RDWR))
      }
    }
  }

  func takeRequest(timeout: Duration) async throws(ServerError) -> RecordedRequest {
    let id = state.withLock { $0.makeWaiterID() }
    let timer = Task {
      do { try await Task.sleep(for: timeout) } catch { return }
      deliver(state.withLock { $0.giveUp(id, .timedOut(after: timeout)) })
    }
    defer { timer.cancel() }
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { waiter in
        deliver(state.withLock { $0.take(for: id, waiter, isCancelled: Task.isCancelled) })
      }
    } onCancel: {
      deliver(state.withLock { $0.giveUp(id, .cancelled) })
    }
    return try result.get()
  }

  private func deliver(_ delivery: ServerState.Delivery?) {
    if let (waiter, result) = delivery { waiter.resume(returning: result) }
  }
}
