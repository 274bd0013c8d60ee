public import Foundation
import HTTPWire
import Synchronization

// Reading and writing by tasks. A cancelled task withdraws its operation.
extension ByteStreamRequest {
  /// Reads bytes, after all earlier reads.
  ///
  /// A read that times out or whose task is cancelled consumes no bytes: the next read returns them.
  ///
  /// - Parameters:
  ///   - least: The minimum number of bytes to wait for. Default, and at least: 1.
  ///   - most: The maximum number of bytes, at least `least`. Default: 65,536.
  ///   - timeout: The time from the call. Default: `nil`, no timeout.
  /// - Returns: The bytes, and whether the peer has closed its side. Only in that case there may be fewer than
  ///   `least`, or none.
  /// - Throws: `AFError`: `URLError.timedOut` as the error of ``AFError/sessionTaskFailed(error:)``,
  ///   ``AFError/explicitlyCancelled``, or the error of the stream.
  public func read(
    atLeast least: Int = 1, atMost most: Int = 65_536, timeout: Duration? = nil
  ) async throws -> Bytes {
    let bytes = try await operation { core, completion in core.read(least, most, timeout, completion) }
    return (bytes.data, bytes.isAtEnd)
  }

  /// Writes all of `data`, after all earlier writes. Returns when the system has accepted the bytes, not when the
  /// peer has received them.
  ///
  /// If a write times out or its task is cancelled after a part was sent, the stream ends. The reason is that the peer
  /// could not interpret later bytes. Over TLS, this holds from the beginning of the write.
  ///
  /// - Parameters:
  ///   - data: The bytes.
  ///   - timeout: The time from the call. Default: `nil`, no timeout.
  /// - Throws: The errors of ``read(atLeast:atMost:timeout:)``.
  public func write(_ data: Data, timeout: Duration? = nil) async throws {
    try await operation { core, completion in core.write(data, timeout, completion) }
  }

  /// Begins TLS (as after `STARTTLS`) after all earlier operations; later ones wait for it. The session's
  /// ``ServerTrustManager`` or the trust store evaluates the server, as for `https`, before a byte is sent.
  ///
  /// Unread plaintext bytes end the stream, because an attacker could have injected them. A failed handshake ends it
  /// as well.
  ///
  /// - Throws: The errors of ``read(atLeast:atMost:timeout:)``; for an untrusted server, the error of a data request.
  public func startTLS() async throws {
    try await operation { core, completion in core.secure(completion) }
  }

  /// Returns when the stream has ended, with its error; `nil` if both sides were closed.
  public func ended() async -> AFError? {
    await withCheckedContinuation { waiter in core.whenEnded { waiter.resume(returning: $0) } }
  }

  private func operation<Value: Sendable>(
    _ ask: (ByteStreamCore, @escaping @Sendable (Result<Value, AFError>) -> Void) -> ByteStreamFlow.Number?
  ) async throws -> Value {
    let withdrawal = Withdrawal(core)
    // The release of the request would end the stream, so it is retained during the operation.
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

/// Withdraws the operation of a cancelled task, whether its number is known yet or not.
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
