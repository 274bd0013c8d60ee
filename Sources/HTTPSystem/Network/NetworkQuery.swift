import CLinux
import Glibc
package import HTTPWire
import Synchronization

/// Asks the kernel about its network.
package final class NetworkQuery: Sendable {
  /// One question at a time.
  private let channel: TrackedMutex<Channel>

  /// Opens a netlink socket; `nil` if the system has no such sockets, or none left.
  package init?() {
    guard let socket = NetlinkSocket(isListening: false) else { return nil }
    channel = TrackedMutex(Channel(socket: socket))
  }

  /// Returns links, addresses and routes; `nil` if the kernel does not answer.
  package func state() -> NetworkState? {
    channel.withLock { channel in
      var state = NetworkState()
      let links = channel.ask(UInt16(RTM_GETLINK), Array(repeating: 0, count: 16)) { body in
        if let link = NetlinkMessages.link(body, kind: LinkKinds.kind) { state.links.append(link) }
      }
      let addresses = channel.ask(UInt16(RTM_GETADDR), Array(repeating: 0, count: 8)) { body in
        if let address = NetlinkMessages.address(body) { state.addresses.append(address) }
      }
      let routes = channel.ask(UInt16(RTM_GETROUTE), Array(repeating: 0, count: 12)) { body in
        state.routes += NetlinkMessages.routes(body)
      }
      return links && addresses && routes ? state : nil
    }
  }

  /// Returns the route that the kernel would use for an address.
  package func route(to address: IPAddress) -> RouteAnswer {
    var request = [UInt8](repeating: 0, count: 12)
    request[0] = address.family.rawValue
    request[1] = UInt8(address.bytes.count * 8)
    request += Self.attribute(UInt16(RTA_DST.rawValue), address.bytes)
    if address.zone != 0 {
      request += Self.attribute(UInt16(RTA_OIF.rawValue), withUnsafeBytes(of: address.zone) { Array($0) })
    }
    return channel.withLock { channel in
      var answer = RouteAnswer.unreachable
      _ = channel.ask(UInt16(RTM_GETROUTE), request, isDump: false) { answer = NetlinkMessages.answer($0) }
      return answer
    }
  }

  private static func attribute(_ number: UInt16, _ value: [UInt8]) -> [UInt8] {
    let length = UInt16(4 + value.count)
    return withUnsafeBytes(of: length) { Array($0) } + withUnsafeBytes(of: number) { Array($0) } + value
  }
}

/// A socket, and the number of its queries.
private struct Channel: Sendable {
  let socket: NetlinkSocket
  var sequence: UInt32 = 0

  /// Sends one query and calls `body` with the bodies of its answers. Returns false if there is no complete answer.
  mutating func ask(
    _ type: UInt16, _ body: [UInt8], isDump: Bool = true, _ take: (ArraySlice<UInt8>) -> Void
  ) -> Bool {
    sequence &+= 1
    let flags = UInt16(NLM_F_REQUEST) | (isDump ? UInt16(NLM_F_ROOT | NLM_F_MATCH) : 0)
    var head = nlmsghdr()
    head.nlmsg_len = UInt32(16 + body.count)
    head.nlmsg_type = type
    head.nlmsg_flags = flags
    head.nlmsg_seq = sequence
    guard socket.send(withUnsafeBytes(of: head) { Array($0) } + body) else { return false }
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while let datagram = socket.receive(into: &buffer) {
      for message in NetlinkMessages.messages(datagram) where message.sequence == sequence {
        switch Int32(message.type) {
        case NLMSG_DONE: return true
        case NLMSG_ERROR: return false
        default: take(message.body)
        }
        if !isDump { return true }
      }
    }
    return false
  }
}

/// The kinds of network interfaces, as the system's device files show them.
enum LinkKinds {
  private static let ethernet: UInt16 = 1
  private static let rawIP: UInt16 = 519

  static func kind(_ name: String, _ type: UInt16) -> NetworkLinkKind {
    let folder = "/sys/class/net/\(name)"
    switch deviceType(folder) {
    case "wwan": return .cellular
    case "wlan": return .wifi
    case "bridge", "bond", "vlan", "wireguard", "vxlan": return .other
    default: break
    }
    if access("\(folder)/wireless", F_OK) == 0 { return .wifi }
    if type == rawIP || name.hasPrefix("wwan") { return .cellular }
    return type == ethernet ? .wired : .other
  }

  /// Returns the value of the line `DEVTYPE=` of an interface.
  private static func deviceType(_ folder: String) -> String? {
    let file = open("\(folder)/uevent", O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = read(file, &buffer, buffer.count)
    guard count > 0 else { return nil }
    let lines = String(decoding: buffer[..<count], as: UTF8.self).split(separator: "\n")
    return lines.first { $0.hasPrefix("DEVTYPE=") }.map { String($0.dropFirst(8)) }
  }
}
