public import Foundation
public import FoundationNetworking
import HTTPWire

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
  /// Begins TLS after all pending operations. A failure ends the stream.
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
