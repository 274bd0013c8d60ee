import Foundation

/// The validators and handlers of a request, which run one after the other in the order in which they were added. They
/// do not run before the request has ended, nor while it is suspended.
final class CompletionQueue: Sendable {
  private struct State {
    /// The number of ends that are still missing.
    var pendingEnds = 1
    var isHeld = false
    var isRunning = false
    var steps: [@Sendable () -> Void] = []

    /// Whether the next step may run.
    var hasNext: Bool { pendingEnds == 0 && !isHeld && !steps.isEmpty }
  }

  /// The queue of the steps. Each request has its own, so that a slow serializer delays no other request.
  let queue = DispatchQueue(label: "com.alamofire.request")
  /// The handlers in their order, for any thread.
  private let state = Mutex(State())

  func add(_ step: @escaping @Sendable () -> Void) {
    change { $0.steps.append(step) }
  }

  /// Waits for one more end.
  func close() { change { $0.pendingEnds += 1 } }

  /// Notes that the request, or another step that was waited for, has ended.
  func open() { change { $0.pendingEnds -= 1 } }

  func hold() { change { $0.isHeld = true } }

  func release() { change { $0.isHeld = false } }

  private func change(_ body: (inout sending State) -> Void) {
    let begins = state.withLock { state in
      body(&state)
      guard state.hasNext, !state.isRunning else { return false }
      state.isRunning = true
      return true
    }
    guard begins else { return }
    queue.async {
      while let step = self.next() { step() }
    }
  }

  private func next() -> (@Sendable () -> Void)? {
    state.withLock { state in
      guard state.hasNext else {
        state.isRunning = false
        return nil
      }
      return state.steps.removeFirst()
    }
  }
}
