import Synchronization

/// The turns of discretionary transfers, which run one after the other in the order in which they ask.
package final class TransferTurns: Sendable {
  private struct State {
    var isTaken = false
    var waiting: [(number: UInt64, completion: SingleCompletion<Bool>)] = []
    var lastNumber: UInt64 = 0

    /// Returns the number of a new waiter, or `nil` if the turn is free, and taken now.
    mutating func take(or completion: SingleCompletion<Bool>) -> UInt64? {
      guard isTaken else {
        isTaken = true
        return nil
      }
      lastNumber += 1
      waiting.append((lastNumber, completion))
      return lastNumber
    }

    /// Returns the waiter that has the turn next; without one, the turn is free.
    mutating func pass() -> SingleCompletion<Bool>? {
      isTaken = !waiting.isEmpty
      return waiting.isEmpty ? nil : waiting.removeFirst().completion
    }

    /// Removes a waiter. Returns false if the turn was passed to it already.
    mutating func remove(_ number: UInt64) -> Bool {
      guard let index = waiting.firstIndex(where: { $0.number == number }) else { return false }
      waiting.remove(at: index)
      return true
    }
  }

  private let state = Mutex(State())

  package init() {}

  /// Waits for a turn. Returns false if the surrounding task is cancelled before.
  package func take() async -> Bool {
    var number: UInt64?
    let hasTurn = await SingleCompletion.answer(whenForgotten: false, whenCancelled: false) { completion in
      number = state.withLock { $0.take(or: completion) }
      if number == nil { completion(true) }
    }
    guard !hasTurn else { return true }
    if let number, state.withLock({ $0.remove(number) }) { return false }
    // The turn came together with the cancellation.
    pass()
    return false
  }

  /// Gives a turn back.
  package func pass() {
    let next = state.withLock { $0.pass() }
    next?(true)
  }
}
