import Glibc
import HTTPWire

/// The result of an attempt to move bytes without waiting.
enum StreamStep {
  case moved(Int)
  /// Nothing can be done before the socket can be read.
  case waitsToRead
  /// Nothing can be done before the socket can be written.
  case waitsToWrite
  /// The peer sends no more bytes.
  case ended
  case failed(TransportFailure)
  /// The watcher has to evaluate the server first.
  case undecided(PresentedChain)
  /// The server asks for a client certificate, and the watcher chooses it.
  case asksForIdentity
}

/// The connection of a stream, below the TLS of the stream. Belongs to the loop's thread. The connection closes with the
/// last reference.
protocol StreamConnection: AnyObject {
  /// The socket to wait for.
  var descriptor: Int32 { get }
  /// Whether a write that has to wait must be repeated with the same bytes.
  var keepsWrites: Bool { get }

  func read(into room: UnsafeMutableRawBufferPointer) -> StreamStep
  func write(_ bytes: UnsafeRawBufferPointer) -> StreamStep
  func shutReading()
  /// Ends writing. Returns `.moved` if the peer will be told.
  func shutWriting() -> StreamStep
}

/// A connected socket, which is closed exactly once.
final class StreamSocket: StreamConnection {
  let descriptor: Int32
  let keepsWrites = false
  private let host: String

  /// Takes over a connected descriptor.
  init(_ descriptor: Int32, host: String) {
    self.descriptor = descriptor
    self.host = host
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    var on: Int32 = 1
    // A small write must not wait for the acknowledgement of the previous one (Nagle's algorithm).
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
  }

  deinit { close(descriptor) }

  func read(into room: UnsafeMutableRawBufferPointer) -> StreamStep {
    while true {
      let count = recv(descriptor, room.baseAddress, room.count, 0)
      if count > 0 { return .moved(count) }
      if count == 0 { return .ended }
      switch errno {
      case EINTR: continue
      case EAGAIN: return .waitsToRead
      default: return .failed(Self.lost(host, errno))
      }
    }
  }

  func write(_ bytes: UnsafeRawBufferPointer) -> StreamStep {
    while true {
      let count = send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
      if count >= 0 { return .moved(count) }
      switch errno {
      case EINTR: continue
      case EAGAIN: return .waitsToWrite
      default: return .failed(Self.lost(host, errno))
      }
    }
  }

  func shutReading() { shutdown(descriptor, Int32(SHUT_RD)) }
  func shutWriting() -> StreamStep {
    shutdown(descriptor, Int32(SHUT_WR))
    return .moved(0)
  }

  static func lost(_ host: String, _ code: Int32) -> TransportFailure {
    TransportFailure(
      .connectionLost, "The connection to \(host) broke: \(String(cString: strerror(code))).")
  }
}
