import Synchronization

/// A completion that is handed to code of a user and answers exactly once: with the first call, or, if
/// it is released without one, with a value that lets the request go on. Later calls do nothing.
final class CompletionOnce<Value: Sendable>: Sendable {
  private let continuation: Mutex<CheckedContinuation<Value, Never>?>
  private let whenForgotten: Value

  init(_ continuation: CheckedContinuation<Value, Never>, whenForgotten: Value) {
    self.continuation = Mutex(continuation)
    self.whenForgotten = whenForgotten
  }

  deinit {
    take()?.resume(returning: whenForgotten)
  }

  func callAsFunction(_ value: Value) {
    take()?.resume(returning: value)
  }

  private func take() -> CheckedContinuation<Value, Never>? {
    continuation.withLock { continuation in
      defer { continuation = nil }
      return continuation
    }
  }
}
