import Glibc
import Synchronization

/// Ports of 127.0.0.1.
package enum Loopback {
  /// Ports below those that Linux assigns to connections and to servers without a fixed port, because assigned ports
  /// are reused at once.
  private static let candidates: Range<UInt16> = 15_000..<32_000

  /// The ports that this process has returned. Tests ask for them at once, and a server needs a moment until it listens
  /// on its port.
  private static let returned = Mutex<Set<UInt16>>([])

  /// Returns different ports without a listening server. No other call in this process returns them, too.
  package static func freePorts(_ count: Int) throws -> [UInt16] {
    var ports: Set<UInt16> = []
    for _ in 0..<1000 where ports.count < count {
      let port = UInt16.random(in: candidates)
      if try isFree(port), returned.withLock({ $0.insert(port).inserted }) { ports.insert(port) }
    }
    guard ports.count == count else { throw ServerFailure(description: "there is no port left") }
    return Array(ports)
  }

  private static func isFree(_ port: UInt16) throws -> Bool {
    let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    guard socket >= 0 else { throw ServerFailure(description: "there is no socket left") }
    defer { close(socket) }
    var address = address(port: port)
    return withAddress(&address) { bind(socket, $0, $1) } == 0
  }

  /// Returns whether a server accepts connections on `port`.
  package static func answers(_ port: UInt16) -> Bool {
    let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    guard socket >= 0 else { return false }
    defer { close(socket) }
    var address = address(port: port)
    return withAddress(&address) { connect(socket, $0, $1) } == 0
  }

  /// Sends `request` to `port`, and returns all bytes until the peer closes the connection. Blocks the thread.
  ///
  /// - Throws: ``ServerFailure`` if no server listens, or if no byte is transferred for thirty seconds.
  package static func exchange(_ request: [UInt8], with port: UInt16) throws -> [UInt8] {
    let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    guard socket >= 0 else { throw ServerFailure(description: "there is no socket left") }
    defer { close(socket) }
    var limit = timeval(tv_sec: 30, tv_usec: 0)
    for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
      setsockopt(socket, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
    }
    var address = address(port: port)
    guard withAddress(&address, { connect(socket, $0, $1) }) == 0 else {
      throw ServerFailure(description: "nobody listens on port \(port)")
    }
    var rest = request[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      guard count > 0 else { throw ServerFailure(description: "port \(port) takes no more: errno \(errno)") }
      rest = rest.dropFirst(count)
    }
    var answer: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = recv(socket, &buffer, buffer.count, 0)
      guard count >= 0 else { throw ServerFailure(description: "port \(port) is silent: errno \(errno)") }
      guard count > 0 else { return answer }
      answer += buffer.prefix(count)
    }
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
