public import Foundation
public import FoundationNetworking
import HTTPWire
import Synchronization

/// A two-way connection to a host and a port, with or without TLS, for protocols other than HTTP. A ``Session`` makes
/// it. It uses the trust, the proxies, the timeouts and the other ``TransportOptions`` of the session, except for the
/// limits of requests and of the bandwidth.
///
/// ```swift
/// let stream = session.byteStream(host: "mail.example.com", port: 25)
/// let (greeting, _) = try await stream.read()
/// try await stream.write(Data("STARTTLS\r\n".utf8))
/// _ = try await stream.read()
/// try await stream.startTLS()
/// ```
///
/// It connects at the first operation. Reads are performed in their order, and so are writes; reads and writes do not
/// wait for each other. Bytes are received only for a pending read, so that TCP slows down a faster sender.
///
/// The stream ends once: when both sides are closed, by a failure, by ``cancel()``, with its session, or when the
/// request is released. Later operations fail with the error of the end. All members may be used from any thread.
///
/// If the peer has left, a write fails. What the peer sent before can still be read, and then the stream ends with that
/// error. It lasts until those bytes are read, or until you close it. A read that needs more bytes than are left also
/// ends it.
public final class ByteStreamRequest: Sendable {
  /// The state of a stream.
  public enum State: Sendable {
    /// No operation was requested yet.
    case initialized
    /// The connection is being established.
    case connecting
    /// The connection is established. The TLS handshake may still be running.
    case open
    /// The stream has ended.
    case closed
  }

  /// The bytes of a read, and whether the peer has closed its side.
  public typealias Bytes = (data: Data, isAtEnd: Bool)

  let core: ByteStreamCore

  init(_ core: ByteStreamCore) { self.core = core }

  deinit { core.cancel() }

  /// The identifier of the stream, for logs.
  public var id: UUID { core.id }
  /// The name or address of the host, as given.
  public var host: String { core.host }
  /// The port, as given.
  public var port: Int { core.port }
  /// The state of the stream.
  public var state: State { core.phase }
  /// The error with which the stream ended; `nil` before the end, and if both sides were closed.
  public var error: AFError? { core.error }
  /// Whether the stream is suspended by ``suspend()``.
  public var isSuspended: Bool { core.isSuspended }
  /// The number of bytes of all completed writes.
  public var sentByteCount: Int64 { core.counts.sent }
  /// The number of bytes of all completed reads.
  public var receivedByteCount: Int64 { core.counts.received }
  /// The task that delegates see.
  public var task: ByteStreamTask { core.task }

  /// Connects, if necessary, or continues after ``suspend()``. Has no effect after the end.
  @discardableResult
  public func resume() -> Self {
    core.resume()
    return self
  }

  /// Suspends reads and writes until ``resume()``, which restarts their timeouts. A connection attempt continues. Has
  /// no effect after the end.
  @discardableResult
  public func suspend() -> Self {
    core.suspend()
    return self
  }

  /// Closes the reading side after all pending reads; later reads fail. Bytes that still arrive are discarded.
  public func closeRead() { core.closeReading() }

  /// Closes the writing side after all pending writes, which the peer sees as the end; later writes fail. Reads are
  /// still possible.
  public func closeWrite() { core.closeWriting() }

  /// Closes both sides. Pending writes are performed, pending reads fail.
  public func close() { core.close() }

  /// Ends the stream at once; pending operations fail with `AFError.explicitlyCancelled`.
  @discardableResult
  public func cancel() -> Self {
    core.cancel()
    return self
  }

  /// Calls `body` when the stream has ended, at once if it already has. Each added closure is called once.
  ///
  /// - Parameters:
  ///   - queue: The queue of `body`. Default: the main queue.
  ///   - body: Called with the error; `nil` if both sides were closed.
  @preconcurrency
  @discardableResult
  public func onEnd(queue: DispatchQueue = .main, perform body: @escaping @Sendable (AFError?) -> Void)
    -> Self
  {
    core.whenEnded { error in queue.async { body(error) } }
    return self
  }
}

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
  /// - Returns: The bytes, and whether the peer has closed its side. Only in that case can there be fewer than `least`,
  ///   or none.
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
  /// as well. So do the cancellation of the task, also before the call, a peer that has closed its side, and an earlier
  /// ``closeRead()``, ``closeWrite()`` or failed write, because later operations would not be secure.
  ///
  /// - Throws: The errors of ``read(atLeast:atMost:timeout:)``; for an untrusted server, the error of a data request.
  public func startTLS() async throws {
    // The stream ends even if the task is cancelled already, because other operations would be performed in the clear.
    try await operation(ifCancelledBefore: { core in core.refuseToSecure() }) { core, completion in
      core.secure(completion)
    }
  }

  /// Returns when the stream has ended, with its error; `nil` if both sides were closed. A cancelled task returns at
  /// once with ``AFError/explicitlyCancelled``, and the stream goes on. After ``close()`` it does so also without a
  /// reference: its pending writes are performed, and then it ends.
  public func ended() async -> AFError? {
    var number: Int?
    let error = await SingleCompletion<AFError?>.answer(
      whenForgotten: nil, whenCancelled: .explicitlyCancelled
    ) { completion in
      number = core.whenEnded { completion($0) }
    }
    if let number { core.forget(number) }
    if Task.isCancelled, core.isClosing {
      // The release of the request, for which the task does not wait any more, would cut off the close.
      core.retain(self)
    }
    return error
  }

  /// Waits for an operation, which it withdraws if the task is cancelled.
  ///
  /// - Parameters:
  ///   - react: Called instead of `ask` if the task is already cancelled. Default: does nothing.
  ///   - ask: Begins the operation.
  private func operation<Value: Sendable>(
    ifCancelledBefore react: (ByteStreamCore) -> Void = { _ in },
    _ ask: (ByteStreamCore, @escaping @Sendable (Result<Value, AFError>) -> Void) -> ByteStreamFlow.Number?
  ) async throws -> Value {
    // Once it has begun, the withdrawal of an operation can end the stream.
    guard !Task.isCancelled else {
      react(core)
      throw AFError.explicitlyCancelled
    }
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
  /// The pending operation of a task, and whether the task was cancelled.
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

// Reading and writing with handlers, in the order of the calls. The stream is retained until the last handler has been
// called.
extension ByteStreamRequest {
  /// Reads bytes as ``read(atLeast:atMost:timeout:)`` does, and calls a handler.
  ///
  /// - Parameters:
  ///   - least: The minimum number of bytes to wait for. Default, and at least: 1.
  ///   - most: The maximum number of bytes. Default: 65,536.
  ///   - timeout: The time from the call. Default: `nil`, no timeout.
  ///   - queue: The queue of the handler. Default: the main queue.
  ///   - completionHandler: Called once.
  @preconcurrency
  @discardableResult
  public func read(
    atLeast least: Int = 1, atMost most: Int = 65_536, timeout: Duration? = nil,
    queue: DispatchQueue = .main, completionHandler: @escaping @Sendable (Result<Bytes, AFError>) -> Void
  ) -> Self {
    core.read(least, most, timeout) { [self] result in
      queue.async {
        completionHandler(result.map { ($0.data, $0.isAtEnd) })
        withExtendedLifetime(self) {}
      }
    }
    return self
  }

  /// Writes all of `data` as ``write(_:timeout:)`` does, and calls back.
  ///
  /// - Parameters:
  ///   - data: The bytes.
  ///   - timeout: From the call on. Default: `nil`, without end.
  ///   - queue: The queue of the handler. Default: the main queue.
  ///   - completionHandler: Called once.
  @preconcurrency
  @discardableResult
  public func write(
    _ data: Data, timeout: Duration? = nil, queue: DispatchQueue = .main,
    completionHandler: @escaping @Sendable (Result<Void, AFError>) -> Void
  ) -> Self {
    core.write(data, timeout) { [self] result in
      queue.async {
        completionHandler(result)
        withExtendedLifetime(self) {}
      }
    }
    return self
  }

  /// Begins TLS as ``startTLS()`` does, and calls back.
  ///
  /// - Parameters:
  ///   - queue: The queue of the handler. Default: the main queue.
  ///   - completionHandler: Called once.
  @preconcurrency
  @discardableResult
  public func startTLS(
    queue: DispatchQueue = .main, completionHandler: @escaping @Sendable (Result<Void, AFError>) -> Void
  ) -> Self {
    core.secure { [self] result in
      queue.async {
        completionHandler(result)
        withExtendedLifetime(self) {}
      }
    }
    return self
  }
}

extension Session {
  /// Makes a stream of bytes to a host and a port. It connects at the first operation.
  ///
  /// The connection is established as for an `https` request: with the same proxies (by `CONNECT`), overrides and
  /// guards. The client identity comes from the options, or from the session's delegate when the server requests one.
  /// The connection and the TLS handshake must each succeed within `timeoutIntervalForRequest`, and both together
  /// within `connectTimeout`, if that option is set. The stream ends after `timeoutIntervalForResource`, a week by
  /// default, counted from the first operation, suspended or not.
  ///
  /// ```swift
  /// let stream = session.byteStream(host: "irc.example.com", port: 6697, secure: true)
  /// try await stream.write(Data("NICK ada\r\n".utf8))
  /// let (line, isAtEnd) = try await stream.read(timeout: .seconds(10))
  /// ```
  ///
  /// - Parameters:
  ///   - host: A name or an address. An invalid one fails the first operation with `URLError.badURL`.
  ///   - port: From 1 to 65,535.
  ///   - secure: Whether the stream begins with TLS. Default: `false`; ``ByteStreamRequest/startTLS()`` begins it
  ///     later.
  ///   - change: Changes the options of the session for this stream. Default: no change.
  public func byteStream(
    host: String, port: Int, secure: Bool = false,
    transportOptions change: ((inout TransportOptions) -> Void)? = nil
  ) -> ByteStreamRequest {
    var options = transportOptions
    change?(&options)
    return ByteStreamRequest(
      ByteStreamCore(
        core, host: host, port: port, isSecure: secure, options: change == nil ? nil : options))
  }
}

/// A stream of bytes as a task, with the methods of `URLSessionStreamTask` on Apple's systems. Foundation's class of
/// that name has no function on Linux. ``ByteStreamRequest/task`` is one.
///
/// Operations are performed in their order. Handlers are called on the root queue of the session. After the release
/// of the ``ByteStreamRequest`` the task has no effect.
///
/// Unchecked, as Foundation's class is: its own properties are constants and a reference that only becomes `nil`.
public final class ByteStreamTask: URLSessionTask, @unchecked Sendable {
  private weak var core: ByteStreamCore?
  private let queue: DispatchQueue
  private let identifier = TaskRecord.nextIdentifier()

  init(_ core: ByteStreamCore) {
    self.core = core
    queue = core.session.rootQueue
    super.init()
  }

  /// Reads bytes, and calls a handler with them and with whether the peer has closed its side.
  ///
  /// - Parameters:
  ///   - minBytes: The minimum number of bytes to wait for.
  ///   - maxBytes: The maximum number of bytes.
  ///   - timeout: In seconds; 0 for no timeout.
  ///   - completionHandler: Called once, on the root queue of the session.
  @preconcurrency
  public func readData(
    ofMinLength minBytes: Int, maxLength maxBytes: Int, timeout: TimeInterval,
    completionHandler: @escaping @Sendable (_ data: Data?, _ isAtEnd: Bool, _ error: (any Error)?) -> Void
  ) {
    let queue = queue
    let finish = { @Sendable (result: Result<StreamedBytes, AFError>) in
      queue.async {
        switch result {
        case .success(let bytes): completionHandler(bytes.data, bytes.isAtEnd, nil)
        case .failure(let error): completionHandler(nil, false, Self.plain(error))
        }
      }
    }
    guard let core else { return finish(.failure(.explicitlyCancelled)) }
    core.read(minBytes, maxBytes, Self.duration(timeout), finish)
  }

  /// Writes all of `data`, and calls back.
  ///
  /// - Parameters:
  ///   - data: The bytes.
  ///   - timeout: In seconds; 0 is without end.
  ///   - completionHandler: Called once, on the root queue of the session.
  @preconcurrency
  public func write(
    _ data: Data, timeout: TimeInterval,
    completionHandler: @escaping @Sendable (_ error: (any Error)?) -> Void
  ) {
    let queue = queue
    let finish = { @Sendable (result: Result<Void, AFError>) in
      queue.async {
        if case .failure(let error) = result {
          completionHandler(Self.plain(error))
        } else {
          completionHandler(nil)
        }
      }
    }
    guard let core else { return finish(.failure(.explicitlyCancelled)) }
    core.write(data, Self.duration(timeout), finish)
  }

  /// Closes the reading side after all pending reads.
  public func closeRead() { core?.closeReading() }
  /// Closes the writing side after all pending writes.
  public func closeWrite() { core?.closeWriting() }
  /// Begins TLS after all pending operations. A failure ends the stream, unless TLS has begun before, or both sides are
  /// closed.
  public func startSecureConnection() { core?.secure { _ in } }

  /// Returns the error that a data task would have.
  private static func plain(_ error: AFError) -> any Error {
    // Data tasks also show this error after a cancellation, and for an untrusted server.
    if case .sessionTaskFailed(let error) = error { error } else { URLError(.cancelled) }
  }

  private static func duration(_ seconds: TimeInterval) -> Duration? {
    guard seconds > 0, seconds < 1e9 else { return nil }
    return .milliseconds(Int64((seconds * 1000).rounded(.up)))
  }

  // MARK: URLSessionTask

  /// Counts the tasks of the process.
  public override var taskIdentifier: Int {
    get { identifier }
    set {}
  }
  /// Always `nil`, because a stream has no request.
  public override var originalRequest: URLRequest? {
    get { nil }
    set {}
  }
  /// Always `nil`, because a stream has no request.
  public override var currentRequest: URLRequest? {
    get { nil }
    set {}
  }
  /// Always `nil`, because a stream has no response.
  public override var response: URLResponse? {
    get { nil }
    set {}
  }
  /// The failure of the stream; `nil` until it has ended, and if both sides were closed.
  public override var error: (any Error)? {
    get { core?.error.map { Self.plain($0) } }
    set {}
  }
  /// The state of the stream.
  public override var state: URLSessionTask.State {
    get {
      switch core?.phase {
      case nil, .closed: .completed
      case .initialized: .suspended
      case .connecting, .open: core?.isSuspended == true ? .suspended : .running
      }
    }
    set {}
  }
  /// The bytes of all writes that were done.
  public override var countOfBytesSent: Int64 {
    get { core?.counts.sent ?? 0 }
    set {}
  }
  /// The bytes of all reads that were answered.
  public override var countOfBytesReceived: Int64 {
    get { core?.counts.received ?? 0 }
    set {}
  }

  /// Starts or continues the request; see ``ByteStreamRequest/resume()``.
  public override func resume() { core?.resume() }
  /// Suspends the request; see ``ByteStreamRequest/suspend()``.
  public override func suspend() { core?.suspend() }
  /// Cancels the request; see ``ByteStreamRequest/cancel()``.
  public override func cancel() { core?.cancel() }
}
