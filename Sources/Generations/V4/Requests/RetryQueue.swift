import Alamofire

/// Performs the retries of a manager in the order of the retrier's completions. The next one begins when the adapter
/// has adapted the previous one, because a handler that refreshes a token can complete hundreds at once.
final class RetryQueue: Sendable {
  private struct State {
    var current: ObjectIdentifier?
    var waiting: [(id: ObjectIdentifier, begin: @Sendable () -> Void)] = []
  }

  /// The order of the retries.
  private let state = Mutex(State())

  /// Calls `begin` when it is the turn of `bridge`: now or later.
  func enter(_ bridge: RequestBridge, _ begin: @escaping @Sendable () -> Void) {
    let id = ObjectIdentifier(bridge)
    let isFirst = state.withLock { state in
      guard state.current == nil else {
        state.waiting.append((id, begin))
        return false
      }
      state.current = id
      return true
    }
    if isFirst { begin() }
  }

  /// Removes a bridge that has begun its next attempt or will not begin one, and starts the next bridge.
  func leave(_ bridge: RequestBridge) {
    let id = ObjectIdentifier(bridge)
    let next = state.withLock { state -> (@Sendable () -> Void)? in
      guard state.current == id else {
        state.waiting.removeAll { $0.id == id }
        return nil
      }
      guard !state.waiting.isEmpty else {
        state.current = nil
        return nil
      }
      let next = state.waiting.removeFirst()
      state.current = next.id
      return next.begin
    }
    next?()
  }
}
