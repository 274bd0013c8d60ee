import CCurl
import Glibc

/// The sockets of the connections that libcurl may use again, which it does not tell by itself: by the two
/// ports, as it names a connection when a request is about to go out on it. Belongs to the loop thread.
struct RetainedSockets {
  struct Ports: Hashable {
    let local: Int32
    let remote: Int32
  }

  private var sockets: [Ports: Int32] = [:]
  /// With more entries than this, those whose connection is gone are looked for.
  private var bound = 128

  /// A connection has come to be over one of these sockets.
  mutating func connected(_ ports: Ports, over candidates: [Int32]) {
    guard let socket = candidates.first(where: { Self.localPort(of: $0) == ports.local }) else { return }
    sockets[ports] = socket
    guard sockets.count > bound else { return }
    sockets = sockets.filter { Self.localPort(of: $0.value) == $0.key.local }
    bound = max(128, sockets.count * 2)
  }

  /// Whether nothing has come on a connection, neither bytes nor its end.
  func isSilent(_ ports: Ports) -> Bool {
    guard let socket = sockets[ports] else { return true }
    var byte: UInt8 = 0
    return recv(socket, &byte, 1, Int32(MSG_PEEK) | ccurl_do_not_wait) < 0
  }

  /// Zero when it is no socket any more.
  private static func localPort(of socket: Int32) -> Int32 {
    var address = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let result = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket, $0, &length) }
    }
    guard result == 0 else { return 0 }
    // Both families have the port at the same place.
    return withUnsafeBytes(of: &address) { bytes in
      Int32(UInt16(bigEndian: bytes.load(fromByteOffset: 2, as: UInt16.self)))
    }
  }
}
