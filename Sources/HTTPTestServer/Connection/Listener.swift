import Glibc
import Synchronization

/// A socket on 127.0.0.1; closed with its last reference.
final class Listener: Sendable {
  let descriptor: Int32
  let port: Int

  /// Takes a port, 0 for any free one. With a `backlog` it listens; without, connections to the port are
  /// refused.
  init(backlog: Int32?, port requested: Int = 0) throws(ServerError) {
    var address = try LoopbackAddress.make(port: requested, for: "bind")
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    descriptor = socket(AF_INET, kind, 0)
    guard descriptor >= 0 else { throw .system(call: "socket", code: errno) }
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    if requested != 0 { Self.allowReuse(of: descriptor) }
    let status = withUnsafeMutablePointer(to: &address) { [descriptor] pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer -> (String, Int32)? in
        if bind(descriptor, pointer, length) != 0 { return ("bind", errno) }
        if let backlog, listen(descriptor, backlog) != 0 { return ("listen", errno) }
        if getsockname(descriptor, pointer, &length) != 0 { return ("getsockname", errno) }
        return nil
      }
    }
    port = Int(UInt16(bigEndian: address.sin_port))
    // Accepted connections inherit this option, so that one in TIME_WAIT does not block the port for the next server.
    // For port 0 it is set after `bind`, because before it the kernel could choose a port with a listener.
    if backlog != nil { Self.allowReuse(of: descriptor) }
    if let (call, code) = status { throw .system(call: call, code: code) }
  }

  deinit {
    close(descriptor)
  }

  /// Allows a later server to bind the port while old connections are in TIME_WAIT, but not while another socket
  /// listens.
  private static func allowReuse(of descriptor: Int32) {
    var on: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
  }

  /// The result of an attempt to accept a connection.
  private enum AcceptOutcome {
    case connection(Int32)
    /// No connection is pending, or the pending one was aborted.
    case nobody
    /// The process has no free descriptors; an immediate retry would fail again.
    case exhausted
  }

  /// Waits for the next connection, and joins the threads of earlier ones that have ended. Returns `nil` when the
  /// server is to stop.
  func next(until stopSignal: Waker, joining threads: ConnectionThreads) -> Int32? {
    var entries = [stopSignal.descriptor, descriptor, threads.descriptor].map {
      pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
    }
    while true {
      let count = poll(&entries, 3, -1)
      if count < 0 { continue }
      if entries[0].revents != 0 { return nil }
      threads.joinEnded()
      switch accept() {
      case .connection(let connection): return connection
      case .nobody: continue
      // The connection stays pending, so that waiting for it would not wait.
      case .exhausted: _ = poll(&entries, 1, 10)
      }
    }
  }

  private func accept() -> AcceptOutcome {
    let connection = Glibc.accept(descriptor, nil, nil)
    guard connection >= 0 else {
      switch errno {
      case EMFILE, ENFILE, ENOBUFS, ENOMEM: return .exhausted
      default: return .nobody
      }
    }
    DescriptorFlags.set(on: connection)
    // A reply in several writes must not wait for acknowledgements.
    var on: Int32 = 1
    setsockopt(
      connection, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    return .connection(connection)
  }
}

/// 127.0.0.1 as the C library wants it.
enum LoopbackAddress {
  /// Returns the address of a port. Throws an error of `call` if there is no such port.
  static func make(port: Int, for call: String) throws(ServerError) -> sockaddr_in {
    guard let number = UInt16(exactly: port) else { throw .system(call: call, code: EINVAL) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = number.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
  }
}

/// A descriptor that becomes readable with ``wake()``, and stays so until ``reset()``.
///
/// It is a pipe; the C library's module does not export `eventfd`.
final class Waker: Sendable {
  /// The end to wait for.
  let descriptor: Int32
  private let writingEnd: Int32
  private let woken = Atomic(false)

  /// Whether ``wake()`` was called since the last ``reset()``.
  var isAwake: Bool { woken.load(ordering: .relaxed) }

  init() throws(ServerError) {
    var ends: (Int32, Int32) = (-1, -1)
    let status = withUnsafeMutableBytes(of: &ends) {
      pipe($0.assumingMemoryBound(to: Int32.self).baseAddress)
    }
    (descriptor, writingEnd) = ends
    if status != 0 { throw .system(call: "pipe", code: errno) }
    DescriptorFlags.set(on: descriptor)
    DescriptorFlags.set(on: writingEnd)
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
    if writingEnd >= 0 { close(writingEnd) }
  }

  /// Makes the descriptor readable; from any thread, any number of times.
  func wake() {
    woken.store(true, ordering: .relaxed)
    var byte: UInt8 = 1
    // It can only fail when the pipe is full, and then it is readable already.
    _ = write(writingEnd, &byte, 1)
  }

  /// Makes the descriptor unreadable again.
  func reset() {
    woken.store(false, ordering: .relaxed)
    var bytes: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
    while read(descriptor, &bytes, MemoryLayout.size(ofValue: bytes)) > 0 {}
  }
}

/// The flags that every descriptor of the server has.
enum DescriptorFlags {
  /// Sets a descriptor to never block, and keeps programs that a test starts from inheriting it.
  static func set(on descriptor: Int32) {
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
  }
}
