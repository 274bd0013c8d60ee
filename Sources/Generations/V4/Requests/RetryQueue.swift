import Alamofire

/// Performs the retries of a manager in the order of the retrier's completions. The next one begins when the adapter
/// has adapted the previous one, because a handler that refreshes a token can complete hundreds at once.
final class RetryQueue: Sendable {
  /// The name of one retry, which is never used again.
  struct Ticket: Hashable, Sendable {
    fileprivate let number: UInt64
  }

  private struct State {
    var ticketCount: UInt64 = 0
    var current: Ticket?
    /// The waiting retries by their places in the order. A retry that leaves is removed without a search.
    var waiting: [UInt64: (ticket: Ticket, begin: @Sendable () -> Void)] = [:]
    var places: [Ticket: UInt64] = [:]
    /// The first place at which a retry may wait.
    var firstPlace: UInt64 = 0
    var endPlace: UInt64 = 0

    mutating func append(_ ticket: Ticket, _ begin: @escaping @Sendable () -> Void) {
      waiting[endPlace] = (ticket, begin)
      places[ticket] = endPlace
      endPlace += 1
    }

    /// Removes a waiting retry. Returns its closure, which may be the last reference to the user's objects.
    mutating func remove(_ ticket: Ticket) -> (@Sendable () -> Void)? {
      places.removeValue(forKey: ticket).flatMap { waiting.removeValue(forKey: $0) }?.begin
    }

    /// Makes the first of the waiting retries the current one, and returns its closure.
    mutating func next() -> (@Sendable () -> Void)? {
      current = nil
      while firstPlace < endPlace {
        defer { firstPlace += 1 }
        guard let first = waiting.removeValue(forKey: firstPlace) else { continue }
        places[first.ticket] = nil
        current = first.ticket
        return first.begin
      }
      return nil
    }
  }

  /// The order of the retries.
  private let state = Mutex(State())

  /// The number of retries that wait.
  var waitingCount: Int { state.withLock { $0.waiting.count } }

  /// Returns the name of a retry that may follow.
  func makeTicket() -> Ticket {
    state.withLock { state in
      state.ticketCount += 1
      return Ticket(number: state.ticketCount)
    }
  }

  /// Calls `begin` when it is the turn of the retry: now or later.
  func enter(_ ticket: Ticket, _ begin: @escaping @Sendable () -> Void) {
    let isFirst = state.withLock { state in
      guard state.current == nil else {
        state.append(ticket, begin)
        return false
      }
      state.current = ticket
      return true
    }
    if isFirst { begin() }
  }

  /// Removes a retry that has begun or will not begin, and begins the next one.
  func leave(_ ticket: Ticket) {
    let (next, removed) = state.withLock { state in
      state.current == ticket ? (state.next(), nil) : (nil, state.remove(ticket))
    }
    next?()
    // Released outside of the lock.
    _ = removed
  }
}
