import Foundation
import Synchronization

/// Lets tasks wait for a response that is made somewhere else, or by the first of them. Not generic:
/// code that is generic over the value would look types up at run time for every step.
///
/// A base class, so that it needs no object of its own. Unchecked, since the compiler does not see who may
/// touch the variables: see ``AwaitedSink``.
class DeliveryLatch: @unchecked Sendable {
  typealias Waiter = UnsafeContinuation<Void, Never>

  private enum Phase {
    /// The request is under way.
    case pending
    /// The request is over; the response waits to be handed out, and to be made by the first who asks.
    case postponed
    /// The response is made, and waits to be handed out.
    case prepared
    /// To be made by the first who asks.
    case claimable
    /// Somebody makes it.
    case claimed
    case open
  }

  /// Guarded by the one lock of this class.
  private struct State {
    var phase = Phase.pending
    /// Mostly there is one; more are kept apart so that it costs no array.
    var waiter: Waiter?
    var moreWaiters: [Waiter] = []

    mutating func takeWaiters() -> (Waiter?, [Waiter]) {
      defer {
        waiter = nil
        moreWaiters = []
      }
      return (waiter, moreWaiters)
    }

    mutating func add(_ new: Waiter) {
      if waiter == nil { waiter = new } else { moreWaiters.append(new) }
    }
  }

  enum Entrance { case makeIt, isMade }

  // What goes with the value, here since it is not generic.
  @exclusivity(unchecked) final var outcome = RequestOutcome()
  @exclusivity(unchecked) final var failure: AFError?
  @exclusivity(unchecked) final var duration: TimeInterval = 0

  private let state = Mutex(State())

  /// The response will be made by the first who asks for it.
  final func postponed() { state.withLock { $0.phase = .postponed } }

  /// The response has been made.
  final func prepared() { state.withLock { $0.phase = .prepared } }

  /// Whether the response has been made and no task has it yet. The attempt asks before it reads what was
  /// written on another queue: the lock orders both for the thread sanitizer too, which does not see that a
  /// continuation does when it is resumed before it is awaited.
  final var isPrepared: Bool {
    state.withLock { state in
      if case .prepared = state.phase { return true }
      return false
    }
  }

  /// The response may be had from now on.
  final func deliver() {
    wake(
      state.withLock { state in
        switch state.phase {
        case .postponed: state.phase = .claimable
        case .prepared: state.phase = .open
        case .pending, .claimable, .claimed, .open:
          preconditionFailure("a handler was served before its response was made, or twice")
        }
        return state.takeWaiters()
      })
  }

  /// Whoever was told to make the response has made it.
  final func open() {
    wake(
      state.withLock { state in
        state.phase = .open
        return state.takeWaiters()
      })
  }

  /// Waits for the response; cancels the request when the surrounding task is cancelled meanwhile.
  nonisolated(nonsending) final func enter(cancelling request: Request?) async -> Entrance {
    if let entrance = tryToEnter() { return entrance }
    guard let request else { return await enter() }
    return await withTaskCancellationHandler {
      await enter()
    } onCancel: {
      request.cancel()
    }
  }

  /// Waits for the response. Told ``Entrance/makeIt``, the caller makes it and calls ``open()``.
  nonisolated(nonsending) final func enter() async -> Entrance {
    while true {
      if let entrance = tryToEnter() { return entrance }
      // Unchecked: every waiter is taken out once, under the lock, and resumed.
      await withUnsafeContinuation { waiter in
        let waits = state.withLock { state in
          switch state.phase {
          case .pending, .postponed, .prepared, .claimed:
            state.add(waiter)
            return true
          case .claimable, .open: return false
          }
        }
        if !waits { waiter.resume() }
      }
    }
  }

  private func tryToEnter() -> Entrance? {
    state.withLock { state in
      switch state.phase {
      case .open: return .isMade
      case .claimable:
        state.phase = .claimed
        return .makeIt
      case .pending, .postponed, .prepared, .claimed: return nil
      }
    }
  }

  private func wake(_ waiters: (Waiter?, [Waiter])) {
    if let waiter = waiters.0 { Engine.resume(waiter) }
    for waiter in waiters.1 { Engine.resume(waiter) }
  }
}
