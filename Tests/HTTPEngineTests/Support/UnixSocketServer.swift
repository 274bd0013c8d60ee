import FoundationEssentials
import Glibc
import Synchronization
import Testing

/// A server at a Unix-domain socket that gives each connection the same replies: one for every head that it reads. It
/// can also forward the bytes of each connection to a port.
final class UnixSocketServer: Sendable {
  /// A short path of the socket in this process: one of a deep folder would be too long for the system.
  let path: String
  private let folder: Int32
  private let received = Received()
  private let listener: Int32
  private let replies: [String]
  /// The port to which connections are forwarded.
  private let port: Int?
  /// The connections that fill the queue.
  private let fillers: Mutex<[Int32]>
  /// Whether a thread accepts connections. It closes the listener itself: otherwise another server could get the
  /// descriptor's number while the thread still uses it.
  private let isAccepting = Mutex(false)

  /// The heads of the requests so far.
  var heads: [String] { received.texts }

  /// Starts a server.
  ///
  /// - Parameters:
  ///   - replies: The replies to each connection.
  ///   - port: A port on 127.0.0.1 to which connections are forwarded instead.
  ///   - isFull: Whether its queue of connections is full until ``accept()``.
  init(_ replies: [String] = [], forwardingTo port: Int? = nil, isFull: Bool = false) throws {
    self.replies = replies
    self.port = port
    fillers = Mutex([])
    folder = open(FileManager.default.temporaryDirectory.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    try #require(folder >= 0)
    path = "/proc/self/fd/\(folder)/s-\(UInt32.random(in: 0 ... .max))"
    listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    try #require(listener >= 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    try #require(bytes.count < MemoryLayout.size(ofValue: address.sun_path), "the path \(path) is too long")
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    let size = socklen_t(MemoryLayout<sockaddr_un>.size)
    let code = withUnsafePointer(to: address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(listener, $0, size) }
    }
    try #require(code == 0 && listen(listener, isFull ? 0 : 8) == 0, "no server at \(path): \(errno)")
    if isFull { try fill(address) } else { accept() }
  }

  /// Fills the queue of connections.
  private func fill(_ address: sockaddr_un) throws {
    let size = socklen_t(MemoryLayout<sockaddr_un>.size)
    let flags = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
    var isTaken = true
    while isTaken {
      let filler = socket(AF_UNIX, flags, 0)
      fillers.withLock { $0.append(filler) }
      isTaken = withUnsafePointer(to: address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(filler, $0, size) == 0 }
      }
    }
    try #require(errno == EAGAIN, "the queue is not full: \(errno)")
  }

  /// Begins to accept connections.
  func accept() {
    closeFillers()
    isAccepting.withLock { $0 = true }
    Thread { [listener, received, replies, port] in
      while true {
        let connection = Glibc.accept(listener, nil, nil)
        guard connection >= 0 else {
          close(listener)
          return
        }
        if let port {
          Thread { Self.forward(connection, to: port) }.start()
        } else {
          Self.serve(connection, replies, received)
        }
      }
    }.start()
  }

  private func closeFillers() {
    let closed = fillers.withLock { fillers in
      defer { fillers = [] }
      return fillers
    }
    for filler in closed { close(filler) }
  }

  deinit {
    closeFillers()
    // The thread that accepts connections sees the end.
    shutdown(listener, Int32(SHUT_RDWR))
    if !isAccepting.withLock({ $0 }) { close(listener) }
    unlink(path)
    close(folder)
  }

  /// Forwards the bytes of both sides until one has ended.
  private static func forward(_ connection: Int32, to port: Int) {
    defer { close(connection) }
    let other = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard other >= 0 else { return }
    defer { close(other) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(clamping: port).bigEndian
    address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
    let size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let code = withUnsafePointer(to: address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(other, $0, size) }
    }
    guard code == 0 else { return }
    var ends = [connection, other].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    var bytes = [UInt8](repeating: 0, count: 65_536)
    while poll(&ends, 2, -1) > 0 {
      for index in 0..<2 where ends[index].revents != 0 {
        let count = recv(ends[index].fd, &bytes, bytes.count, 0)
        guard count > 0, send(ends[1 - index].fd, bytes, count, Int32(MSG_NOSIGNAL)) == count else { return }
      }
    }
  }

  private static func serve(_ connection: Int32, _ replies: [String], _ received: Received) {
    defer { close(connection) }
    for reply in replies {
      var head: [UInt8] = []
      var byte: UInt8 = 0
      while !head.suffix(4).elementsEqual("\r\n\r\n".utf8) {
        guard recv(connection, &byte, 1, 0) == 1 else { return }
        head.append(byte)
      }
      received.add(head)
      let bytes = Array(reply.utf8)
      guard send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else { return }
    }
    var byte: UInt8 = 0
    _ = recv(connection, &byte, 1, 0)
  }
}
