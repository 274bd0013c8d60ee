import AlamofireGenerations
import Foundation

/// The lock of this module.
typealias Mutex = AlamofireGenerations.Mutex

/// What is done when a request is over: validators and handlers, one after the other, in the order in which they
/// were added; not before the end, and not while the request is suspended.
final class CompletionQueue: Sendable {
  private struct State {
    /// How many ends have to come.
    var pendingEnds = 1
    var isHeld = false
    var isRunning = false
    var steps: [@Sendable () -> Void] = []

    /// Whether there is something to do, and may be done.
    var hasNext: Bool { pendingEnds == 0 && !isHeld && !steps.isEmpty }
  }

  /// On which it is done; its own, so that a slow serializer holds up nothing but its request.
  let queue = DispatchQueue(label: "com.alamofire.request")
  private let state = Mutex(State())

  func add(_ step: @escaping @Sendable () -> Void) {
    change { $0.steps.append(step) }
  }

  /// One more end has to come.
  func close() { change { $0.pendingEnds += 1 } }

  /// The request is over, or what else has to come to its end.
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
