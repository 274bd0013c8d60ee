public import Foundation
import FoundationNetworking
import HTTPWire

/// A two-way connection to a host and a port, with or without TLS, for protocols other than HTTP. A ``Session`` makes
/// it. It uses the trust, the proxies, the timeouts and the other ``TransportOptions`` of the session.
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
public final class ByteStreamRequest: Sendable {
  /// The state of a stream.
  public enum State: Sendable {
    /// No operation was requested yet.
    case initialized
    /// The connection is being made.
    case connecting
    /// The connection is made. The TLS handshake may still be running.
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
  /// The name or address of the host, as it was given.
  public var host: String { core.host }
  /// The port, as it was given.
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
