import Foundation

/// Ports of 127.0.0.1.
enum Loopback {
  /// Returns different ports without a listening server.
  static func freePorts(_ count: Int) throws -> [UInt16] {
    var sockets: [Int32] = []
    // All sockets stay open until the last port is found, so that all ports are different.
    defer { sockets.forEach { close($0) } }
    return try (0..<count).map { _ in
      let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      guard socket >= 0 else { throw POSIXError(.EMFILE) }
      sockets.append(socket)
      var address = address(port: 0)
      let isBound = withPointer(to: &address) { bind(socket, $0, $1) } == 0
      var length = socklen_t(MemoryLayout<sockaddr_in>.size)
      let isNamed = withPointer(to: &address) { pointer, _ in getsockname(socket, pointer, &length) } == 0
      guard isBound, isNamed else { throw POSIXError(.EADDRNOTAVAIL) }
      return UInt16(bigEndian: address.sin_port)
    }
  }

  /// Returns whether a server listens on a port.
  static func answers(_ port: UInt16) -> Bool {
    let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    guard socket >= 0 else { return false }
    defer { close(socket) }
    var address = address(port: port)
    return withPointer(to: &address) { connect(socket, $0, $1) } == 0
  }

  /// Waits until a server that was started answers.
  static func waitForServer(_ name: String, _ process: Process, _ port: UInt16) throws {
    for _ in 0..<500 {
      if answers(port) { return }
      guard process.isRunning else { break }
      usleep(10_000)
    }
    throw CommandFailure(description: "\(name) does not answer")
  }

  private static func address(port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
    return address
  }

  private static func withPointer(
    to address: inout sockaddr_in, _ body: (UnsafeMutablePointer<sockaddr>, socklen_t) -> Int32
  ) -> Int32 {
    withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
  }
}
