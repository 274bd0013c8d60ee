import CLinux
import Glibc
import HTTPWire

/// An address of a socket, as the system takes it.
struct SocketAddress {
  private var storage = sockaddr_storage()
  let length: socklen_t

  var family: Int32 { Int32(storage.ss_family) }

  init(_ address: IPAddress, port: UInt16) {
    switch address.family {
    case .v4:
      var value = sockaddr_in()
      value.sin_family = sa_family_t(AF_INET)
      value.sin_port = port.bigEndian
      withUnsafeMutableBytes(of: &value.sin_addr) { $0.copyBytes(from: address.bytes) }
      length = socklen_t(MemoryLayout<sockaddr_in>.size)
      withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: value, as: sockaddr_in.self) }
    case .v6:
      var value = sockaddr_in6()
      value.sin6_family = sa_family_t(AF_INET6)
      value.sin6_port = port.bigEndian
      value.sin6_scope_id = address.zone
      withUnsafeMutableBytes(of: &value.sin6_addr) { $0.copyBytes(from: address.bytes) }
      length = socklen_t(MemoryLayout<sockaddr_in6>.size)
      withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: value, as: sockaddr_in6.self) }
    }
  }

  /// Makes the address of a Unix-domain socket; `nil` if the path is empty, contains a NUL, or is too long for the
  /// system.
  init?(path: String) {
    var value = sockaddr_un()
    value.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    // One byte is for the end of the text.
    guard !bytes.isEmpty, !bytes.contains(0), bytes.count < MemoryLayout.size(ofValue: value.sun_path) else {
      return nil
    }
    withUnsafeMutableBytes(of: &value.sun_path) { $0.copyBytes(from: bytes) }
    length = socklen_t(MemoryLayout<sockaddr_un>.size)
    withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: value, as: sockaddr_un.self) }
  }

  /// Calls `body` with the address as the system's functions take it.
  func withPointer<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
    withUnsafePointer(to: storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
    }
  }
}
