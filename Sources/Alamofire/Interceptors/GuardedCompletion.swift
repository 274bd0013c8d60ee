import Synchronization

/// A completion that is handed to code of a user and calls on exactly once: with the first answer, or, if
/// it is released without one, with a value that lets the others go on. For completions that lead to
/// further completions; requests await its answers with ``SingleCompletion``.
final class GuardedCompletion<Value: Sendable>: Sendable {
  private let handler: Mutex<(@Sendable (Value) -> Void)?>
  private let whenForgotten: Value

  init(whenForgotten: Value, _ handler: @escaping @Sendable (Value) -> Void) {
    self.whenForgotten = whenForgotten
    self.handler = Mutex(handler)
  }

  deinit { self(whenForgotten) }

  func callAsFunction(_ value: Value) {
    // Taken, so that nothing is kept by a user who keeps the completion.
    let handler = handler.withLock { handler in
      defer { handler = nil }
      return handler
    }
    handler?(value)
  }
}
