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

  /// The heads of the requests so far.
  var heads: [String] { received.texts }

  init(_ replies: [String]) throws {
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
    let code = withUnsafePointer(to: address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    try #require(code == 0 && listen(listener, 8) == 0, "no server at \(path): \(errno)")
    Thread { [listener, received] in
      while true {
        let connection = accept(listener, nil, nil)
        guard connection >= 0 else { return }
        Self.serve(connection, replies, received)
      }
    }.start()
  }

  deinit {
    // The thread that accepts connections sees the end.
    shutdown(listener, Int32(SHUT_RDWR))
    close(listener)
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
