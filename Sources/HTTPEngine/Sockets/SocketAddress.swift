import CLinux
import Glibc
import HTTPSystem
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

/// The local end of connections (`localInterface`): `if!name` is an interface, `host!name` an address or the name of
/// one, anything else is an interface if there is one with that name.
struct SocketBinding {
  private let text: Substring
  private let mayBeInterface: Bool
  private let mayBeHost: Bool

  init(_ setting: String) {
    mayBeInterface = !setting.hasPrefix("host!")
    mayBeHost = !setting.hasPrefix("if!")
    let kind = setting.hasPrefix("if!") ? 3 : setting.hasPrefix("host!") ? 5 : 0
    text = setting.dropFirst(kind)
  }

  /// The name to look up before sockets are bound; `nil` for an interface or an address.
  var name: String? {
    let text = String(text)
    guard mayBeHost, !(mayBeInterface && Self.isInterface(text)) else { return nil }
    return HostLookup.addresses(of: text, literalsOnly: true).isEmpty ? text : nil
  }

  /// Binds a socket. Returns false if it cannot be bound.
  ///
  /// - Parameter found: The addresses of ``name``.
  func bind(_ socket: Int32, family: IPAddress.Family, _ found: [IPAddress]) -> Bool {
    let text = String(text)
    if mayBeInterface, Self.isInterface(text) {
      // Without the privilege for it, an address of the interface chooses the route.
      let isBound = text.withCString {
        setsockopt(socket, SOL_SOCKET, SO_BINDTODEVICE, $0, socklen_t(strlen($0) + 1)) == 0
      }
      return isBound || Self.addresses(of: text).contains { bind(socket, $0, family) }
    }
    guard mayBeHost else { return false }
    let literals = HostLookup.addresses(of: text, literalsOnly: true)
    return (literals + found).contains { bind(socket, $0, family) }
  }

  private func bind(_ socket: Int32, _ address: IPAddress, _ family: IPAddress.Family) -> Bool {
    guard address.family == family else { return false }
    return SocketAddress(address, port: 0).withPointer { Glibc.bind(socket, $0, $1) } == 0
  }

  private static func isInterface(_ name: String) -> Bool { if_nametoindex(name) != 0 }

  private static func addresses(of interface: String) -> [IPAddress] {
    var list: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&list) == 0 else { return [] }
    defer { freeifaddrs(list) }
    var found: [IPAddress] = []
    var next = list
    while let entry = next?.pointee {
      next = entry.ifa_next
      guard let name = entry.ifa_name, String(cString: name) == interface, let address = entry.ifa_addr else {
        continue
      }
      if let address = HostLookup.address(address) { found.append(address) }
    }
    return found
  }
}
