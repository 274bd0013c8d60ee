public import Foundation
import HTTPWire
import Synchronization

// Reading and writing by tasks. A task that is cancelled gives up what it has asked for.
extension ByteStreamRequest {
  /// Reads bytes, once those who have asked before have theirs.
  ///
  /// A read that times out or whose task is cancelled takes nothing with it: what had come for it is there for the next
  /// one.
  ///
  /// - Parameters:
  ///   - least: Waits for so many. Default, and at least: 1.
  ///   - most: Reads no more than so many, but not fewer than `least`. Default: 65,536.
  ///   - timeout: From the call on. Default: `nil`, without end.
  /// - Returns: The bytes, and whether the other side sends no more; only then they may be fewer than `least`, or none.
  /// - Throws: `AFError`: `URLError.timedOut` as the error of ``AFError/sessionTaskFailed(error:)``,
  ///   ``AFError/explicitlyCancelled``, or why the stream is over.
  public func read(
    atLeast least: Int = 1, atMost most: Int = 65_536, timeout: Duration? = nil
  ) async throws -> Bytes {
    let bytes = try await operation { core, completion in core.read(least, most, timeout, completion) }
    return (bytes.data, bytes.isAtEnd)
  }

  /// Writes all of `data`, once what was to be written before is. Returns when the system has taken it; whether it has
  /// arrived only the other side can tell.
  ///
  /// A write that times out or whose task is cancelled after some of it has gone out ends the stream: nobody could make
  /// sense of what would follow. Over TLS that is so as soon as it has begun.
  ///
  /// - Parameters:
  ///   - data: The bytes.
  ///   - timeout: From the call on. Default: `nil`, without end.
  /// - Throws: As ``read(atLeast:atMost:timeout:)``.
  public func write(_ data: Data, timeout: Duration? = nil) async throws {
    try await operation { core, completion in core.write(data, timeout, completion) }
  }

  /// Begins TLS (as after `STARTTLS`), once everything that was asked for before is done; what is asked for later
  /// waits for
  /// it. The server is judged by the session's ``ServerTrustManager`` or the trust store, as for `https`, before a
  /// byte is
  /// sent.
  ///
  /// Bytes that came in the clear and were not read before are an attack (they could be anybody's), and end the
  /// stream. It
  /// ends as well when the handshake fails.
  ///
  /// - Throws: As ``read(atLeast:atMost:timeout:)``; what a data request ends with when a server is not trusted.
  public func startTLS() async throws {
    try await operation { core, completion in core.secure(completion) }
  }

  /// Returns when the stream is over, with the reason; `nil` when both sides were closed.
  public func ended() async -> AFError? {
    await withCheckedContinuation { waiter in core.whenEnded { waiter.resume(returning: $0) } }
  }

  private func operation<Value: Sendable>(
    _ ask: (ByteStreamCore, @escaping @Sendable (Result<Value, AFError>) -> Void) -> ByteStreamFlow.Number?
  ) async throws -> Value {
    let withdrawal = Withdrawal(core)
    // The stream ends when nobody keeps it; whoever waits for it does.
    defer { withExtendedLifetime(self) {} }
    return try await withTaskCancellationHandler {
      try await withCheckedContinuation { waiter in
        withdrawal.asked(ask(core) { waiter.resume(returning: $0) })
      }.get()
    } onCancel: {
      withdrawal.cancel()
    }
  }
}

/// Gives up what a task has asked for, whether its number is known yet or not.
private final class Withdrawal: Sendable {
  private struct State {
    var number: ByteStreamFlow.Number?
    var isCancelled = false
  }

  private let core: ByteStreamCore
  private let state = Mutex(State())

  init(_ core: ByteStreamCore) { self.core = core }

  func asked(_ number: ByteStreamFlow.Number?) {
    let isCancelled = state.withLock { state in
      state.number = number
      return state.isCancelled
    }
    if isCancelled, let number { core.withdraw(number) }
  }

  func cancel() {
    let number = state.withLock { state in
      state.isCancelled = true
      return state.number
    }
    if let number { core.withdraw(number) }
  }
}
