import CLinux
import Glibc
import HTTPSystem
import HTTPWire

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
