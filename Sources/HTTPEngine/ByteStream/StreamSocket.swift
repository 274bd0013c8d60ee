import Glibc
import HTTPWire

/// What came of an attempt to move bytes without waiting.
enum StreamStep {
  case moved(Int)
  /// Nothing can be done before the socket can be read.
  case waitsToRead
  /// Nothing can be done before the socket can be written.
  case waitsToWrite
  /// The other side sends no more.
  case ended
  case failed(TransportFailure)
  /// The server has to be judged elsewhere before anything else.
  case undecided(PresentedChain)
  /// The server asks who the client is, and somebody wants to say so.
  case asksForIdentity
}

/// What the bytes of a stream go over, below any TLS that is the stream's own. Belongs to the loop thread; closes with
/// its end.
protocol StreamCarrier: AnyObject {
  /// The socket to wait for.
  var descriptor: Int32 { get }
  /// Whether a write that has to wait is kept: then it is tried again with the same bytes, or the stream is over.
  var keepsWrites: Bool { get }

  func read(into room: UnsafeMutableRawBufferPointer) -> StreamStep
  func write(_ bytes: UnsafeRawBufferPointer) -> StreamStep
  func shutReading()
  /// `.moved` when the other side will learn of it.
  func shutWriting() -> StreamStep
}

/// A connected socket, which is closed exactly once.
final class StreamSocket: StreamCarrier {
  let descriptor: Int32
  let keepsWrites = false
  private let host: String

  /// Takes over a connected descriptor.
  init(_ descriptor: Int32, host: String) {
    self.descriptor = descriptor
    self.host = host
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    var on: Int32 = 1
    // Whoever writes little and waits for an answer must not wait for the acknowledgement before.
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
