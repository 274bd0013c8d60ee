import Glibc

/// Ports of 127.0.0.1.
enum Loopback {
  /// Ports that nobody listens on, all different.
  static func freePorts(_ count: Int) throws -> [UInt16] {
    var sockets: [Int32] = []
    defer { for socket in sockets { close(socket) } }
    return try (0..<count).map { _ in
      let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      guard socket >= 0 else { throw ServerFailure(description: "there is no socket left") }
      sockets.append(socket)
      var address = address(port: 0)
      let bound = withAddress(&address) { bind(socket, $0, $1) }
      var length = socklen_t(MemoryLayout<sockaddr_in>.size)
      let named = withAddress(&address) { pointer, _ in getsockname(socket, pointer, &length) }
      guard bound == 0, named == 0 else { throw ServerFailure(description: "there is no port left") }
      return UInt16(bigEndian: address.sin_port)
    }
  }

  /// Whether somebody accepts connections on `port`.
  static func answers(_ port: UInt16) -> Bool {
    let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    guard socket >= 0 else { return false }
    defer { close(socket) }
    var address = address(port: port)
    return withAddress(&address) { connect(socket, $0, $1) } == 0
  }

  private static func address(port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
  }

  private static func withAddress(
    _ address: inout sockaddr_in, _ body: (UnsafeMutablePointer<sockaddr>, socklen_t) -> Int32
  ) -> Int32 {
    withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
  }
}
