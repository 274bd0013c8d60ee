import Foundation
import HTTPSystem
import HTTPWire
import Synchronization

/// A completion for user code. It has exactly one value: the value of its first call, or a default if it is released
/// without a call. Later calls do nothing.
final class SingleCompletion<Value: Sendable>: Sendable {
  private let waiter: CompletionWaiter<Value>
  private let whenForgotten: Value

  fileprivate init(_ waiter: CompletionWaiter<Value>, whenForgotten: Value) {
    self.waiter = waiter
    self.whenForgotten = whenForgotten
  }

  deinit { waiter.answer(whenForgotten) }

  func callAsFunction(_ value: Value) { waiter.answer(value) }

  /// Calls `body` with a completion and waits for its answer. A task that is cancelled stops waiting, so that code that
  /// retains the completion cannot delay the end of a request. The deadline counts as a cancellation.
  static func answer(
    whenForgotten: Value, whenCancelled: Value, deadline: MonotonicTime? = nil,
    _ body: (SingleCompletion) -> Void
  ) async -> Value {
    let waiter = CompletionWaiter<Value>()
    body(SingleCompletion(waiter, whenForgotten: whenForgotten))
    if let value = waiter.answeredValue() { return value }
    let timer = deadline.map { waiter.timer($0, whenCancelled) }
    defer { timer?.cancel() }
    return await withTaskCancellationHandler {
      await waiter.wait()
    } onCancel: {
      waiter.answer(whenCancelled)
    }
  }
}

/// Receives the first answer, before or after a task waits for it.
private final class CompletionWaiter<Value: Sendable>: Sendable {
  private enum State {
    case open
    case awaited(CheckedContinuation<Value, Never>)
    case answered(Value)
    case taken
  }

  /// The first answer, and what waits for it, for any thread and a timer.
  private let state = Mutex(State.open)

  func answer(_ value: Value) {
    let continuation = state.withLock { state -> CheckedContinuation<Value, Never>? in
      switch state {
      case .open:
        state = .answered(value)
        return nil
      case .awaited(let continuation):
        state = .taken
        return continuation
      case .answered, .taken: return nil
      }
    }
    continuation?.resume(returning: value)
  }

  /// Answers at the deadline, unless the timer is cancelled before.
  func timer(_ deadline: MonotonicTime, _ value: Value) -> any DispatchSourceTimer {
    DispatchSource.timer(at: DispatchTime(deadline)) { [weak self] in self?.answer(value) }
  }

  /// Returns the answer if there is one already, as most adapters give it.
  func answeredValue() -> Value? {
    state.withLock { state in
      guard case .answered(let value) = state else { return nil }
      state = .taken
      return value
    }
  }

  func wait() async -> Value {
    await withCheckedContinuation { continuation in
      let value = state.withLock { state -> Value? in
        switch state {
        case .open:
          state = .awaited(continuation)
          return nil
        case .answered(let value):
          state = .taken
          return value
        case .awaited, .taken: preconditionFailure("an answer was waited for twice")
        }
      }
      if let value { continuation.resume(returning: value) }
    }
  }
}

/// A completion for user code. Its handler is called once, with the first value, or with a default if it is released
/// without a call. It is for completions that lead to further completions; requests await ``SingleCompletion``.
final class GuardedCompletion<Value: Sendable>: Sendable {
  /// The completion until its first call, by threads of users.
  private let handler: Mutex<(@Sendable (Value) -> Void)?>
  private let whenForgotten: Value

  init(whenForgotten: Value, _ handler: @escaping @Sendable (Value) -> Void) {
    self.whenForgotten = whenForgotten
    self.handler = Mutex(handler)
  }

  deinit { self(whenForgotten) }

  func callAsFunction(_ value: Value) {
    // Removed, so that a user who retains the completion does not retain the handler.
    let handler = handler.withLock { handler in
      defer { handler = nil }
      return handler
    }
    handler?(value)
  }
}
