public import Foundation
import FoundationNetworking
import HTTPWire

/// A connection to a host and a port over which bytes go both ways, with or without TLS: for protocols that are not
/// HTTP.
/// A ``Session`` makes it, and lends it its trust, its proxies, its time limits and its other ``TransportOptions``.
///
/// ```swift
/// let stream = session.byteStream(host: "mail.example.com", port: 25)
/// let (greeting, _) = try await stream.read()
/// try await stream.write(Data("STARTTLS\r\n".utf8))
/// _ = try await stream.read()
/// try await stream.startTLS()
/// ```
///
/// It connects when the first thing is asked of it. Reads are answered in their order, and so are writes; neither waits
/// for the other. Nothing is read from the network that nobody has asked for, so that a sender who is too fast is held
/// up
/// by TCP.
///
/// The stream ends once: when both sides are closed, by a failure, by ``cancel()``, with its session, or when nobody
/// keeps
/// it any more. What is asked for later fails with the error of the end. All members may be used from any thread.
public final class ByteStreamRequest: Sendable {
  /// Where a stream stands.
  public enum State: Sendable {
    /// Nothing was asked of it yet.
    case initialized
    /// It is being connected.
    case connecting
    /// It is connected. Over TLS, the handshake may still be under way.
    case open
    /// It is over.
    case closed
  }

  /// Bytes that were read, and whether the other side sends no more after them.
  public typealias Bytes = (data: Data, isAtEnd: Bool)

  let core: ByteStreamCore

  init(_ core: ByteStreamCore) { self.core = core }

  deinit { core.cancel() }

  /// Names the stream in logs.
  public var id: UUID { core.id }
  /// The name or address of the host, as it was given.
  public var host: String { core.host }
  /// The port, as it was given.
  public var port: Int { core.port }
  /// Where the stream stands.
  public var state: State { core.phase }
  /// Why the stream is over; `nil` as long as it is not, and when both sides were closed.
  public var error: AFError? { core.error }
  /// Whether it is held back by ``suspend()``.
  public var isSuspended: Bool { core.isSuspended }
  /// The bytes of all writes that were done.
  public var sentByteCount: Int64 { core.counts.sent }
  /// The bytes of all reads that were answered.
  public var receivedByteCount: Int64 { core.counts.received }
  /// What delegates see of the stream.
  public var task: ByteStreamTask { core.task }

  /// Connects, if that has not begun, or lets the stream go on after ``suspend()``. Does nothing after the end.
  @discardableResult
  public func resume() -> Self {
    core.resume()
    return self
  }

  /// Holds the stream back: no byte is read or written until ``resume()``, and time limits begin again then. A
  /// connection
  /// that is being made is made. Does nothing after the end.
  @discardableResult
  public func suspend() -> Self {
    core.suspend()
    return self
  }

  /// Closes the reading side once the reads that were asked for are answered; later ones fail. Bytes that come
  /// nevertheless are lost.
  public func closeRead() { core.closeReading() }

  /// Closes the writing side once the writes that were asked for are done, which tells the other side that nothing more
  /// comes; later ones fail. What the other side sends can still be read.
  public func closeWrite() { core.closeWriting() }

  /// Closes both sides. Writes that were asked for are done before, reads fail.
  public func close() { core.close() }

  /// Ends the stream at once: what is not done fails with `AFError.explicitlyCancelled`.
  @discardableResult
  public func cancel() -> Self {
    core.cancel()
    return self
  }

  /// Calls `body` when the stream is over, at once when it is; however often this is called, each one once.
  ///
  /// - Parameters:
  ///   - queue: The queue of `body`. Default: the main queue.
  ///   - body: Gets the reason, `nil` when both sides were closed.
  @preconcurrency
  @discardableResult
  public func onEnd(queue: DispatchQueue = .main, perform body: @escaping @Sendable (AFError?) -> Void)
    -> Self
  {
    core.whenEnded { error in queue.async { body(error) } }
    return self
  }
}
