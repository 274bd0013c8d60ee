import FoundationEssentials
import Glibc
import Synchronization
import Testing

/// A server at a Unix-domain socket that gives each connection the same replies: one for every head that it reads.
final class UnixSocketServer: Sendable {
  /// A short path of the socket in this process: one of a deep folder would be too long for the system.
  let path: String
  private let folder: Int32
  private let received = Received()
  private let listener: Int32
  private let replies: [String]
  /// The connections that fill the queue.
  private let fillers: Mutex<[Int32]>
  /// Whether a thread accepts connections. It closes the listener itself: otherwise another server could get the
  /// descriptor's number while the thread still uses it.
  private let isAccepting = Mutex(false)

  /// The heads of the requests so far.
  var heads: [String] { received.texts }

  /// Starts a server.
  ///
  /// - Parameter isFull: Whether its queue of connections is full until ``accept()``.
  init(_ replies: [String], isFull: Bool = false) throws {
    self.replies = replies
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
    Thread { [listener, received, replies] in
      while true {
        let connection = Glibc.accept(listener, nil, nil)
        guard connection >= 0 else {
          close(listener)
          return
        }
        Self.serve(connection, replies, received)
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
