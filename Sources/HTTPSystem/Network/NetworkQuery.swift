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

  /// Sends one query and calls `body` with the bodies of its answers. Returns false if the answer is not complete.
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

/// A socket to the kernel's network (netlink(7)), closed when it is released.
package final class NetlinkSocket: Sendable {
  package let descriptor: Int32

  /// Opens a socket and binds it.
  ///
  /// - Parameter isListening: Whether the socket receives changes of links, addresses and routes.
  /// - Returns: `nil` if the system has no netlink sockets, or none left.
  package init?(isListening: Bool) {
    let kind = SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue
    // Dispatch notifies a listener when a message arrives. A query waits for its answer.
    let mode = isListening ? kind | SOCK_NONBLOCK.rawValue : kind
    let descriptor = socket(AF_NETLINK, Int32(mode), NETLINK_ROUTE)
    guard descriptor >= 0 else { return nil }
    var address = sockaddr_nl()
    address.nl_family = sa_family_t(AF_NETLINK)
    if isListening {
      address.nl_groups = UInt32(
        RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_IFADDR | RTMGRP_IPV6_ROUTE)
    }
    let length = socklen_t(MemoryLayout<sockaddr_nl>.size)
    let isBound = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) == 0 }
    }
    var patience = timeval(tv_sec: 2, tv_usec: 0)
    setsockopt(
      descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    guard isBound else {
      close(descriptor)
      return nil
    }
    self.descriptor = descriptor
  }

  deinit { close(descriptor) }

  func send(_ bytes: [UInt8]) -> Bool {
    bytes.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, 0) == $0.count }
  }

  /// Returns the next datagram; `nil` after the timeout or an error.
  func receive(into buffer: inout [UInt8]) -> ArraySlice<UInt8>? {
    while true {
      let count = buffer.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
      if count < 0, errno == EINTR { continue }
      return count > 0 ? buffer[..<count] : nil
    }
  }

  /// Reads and drops all messages, because the listener reads the whole state of the network.
  package func drain() {
    var buffer = [UInt8](repeating: 0, count: 16_384)
    while true {
      let count = buffer.withUnsafeMutableBytes {
        recv(descriptor, $0.baseAddress, $0.count, linux_do_not_wait)
      }
      // ENOBUFS: some messages were lost, and others may have arrived since.
      guard count > 0 || (count < 0 && (errno == EINTR || errno == ENOBUFS)) else { return }
    }
  }
}

/// The parser of the kernel's answers about its network (rtnetlink(7)). A message with inconsistent lengths is ignored.
package enum NetlinkMessages {
  /// One message: its type and the bytes after its header.
  package struct Message {
    package let type: UInt16
    package let sequence: UInt32
    package let body: ArraySlice<UInt8>
  }

  private static let headLength = 16

  /// Returns the messages of one datagram.
  package static func messages(_ datagram: ArraySlice<UInt8>) -> [Message] {
    var messages: [Message] = []
    var rest = datagram
    while rest.count >= headLength {
      let length = Int(rest.number(at: 0, UInt32.self))
      guard length >= headLength, length <= rest.count else { break }
      messages.append(
        Message(
          type: rest.number(at: 4, UInt16.self), sequence: rest.number(at: 8, UInt32.self),
          body: rest.dropFirst(headLength).prefix(length - headLength)))
      rest = rest.dropFirst(aligned(length))
    }
    return messages
  }

  /// Returns the link of a message. ``LinkKinds`` determines its kind.
  package static func link(
    _ body: ArraySlice<UInt8>, kind: (_ name: String, _ type: UInt16) -> NetworkLinkKind
  )
    -> NetworkState.Link?
  {
    guard body.count >= 16 else { return nil }
    let flags = body.number(at: 8, UInt32.self)
    guard let nameBytes = attributes(body.dropFirst(16))[3] else { return nil }
    let name = String(decoding: nameBytes.prefix { $0 != 0 }, as: UTF8.self)
    let isLoopback = flags & UInt32(IFF_LOOPBACK) != 0
    return NetworkState.Link(
      index: body.number(at: 4, Int32.self), name: name,
      kind: isLoopback ? .loopback : kind(name, body.number(at: 2, UInt16.self)),
      isUp: flags & UInt32(IFF_UP) != 0, isRunning: flags & UInt32(IFF_RUNNING) != 0)
  }

  package static func address(_ body: ArraySlice<UInt8>) -> NetworkState.Address? {
    guard body.count >= 8, let family = IPAddress.Family(rawValue: body.number(at: 0, UInt8.self)) else {
      return nil
    }
    // The scope decides: 0 is the universe, 200 a site.
    return NetworkState.Address(
      link: body.number(at: 4, Int32.self), family: family, isGlobal: body.number(at: 3, UInt8.self) <= 200)
  }

  /// Returns the routes of a message, one for each next hop. Routes that refuse packets, and routes of other tables
  /// than the main one, are ignored.
  package static func routes(_ body: ArraySlice<UInt8>) -> [NetworkState.Route] {
    guard let (family, found) = routeParts(body) else { return [] }
    let table = found[15]?.number(at: 0, UInt32.self) ?? UInt32(body.number(at: 4, UInt8.self))
    guard body.number(at: 7, UInt8.self) == UInt8(RTN_UNICAST), table == 254 else { return [] }
    return hops(found).map { link, hasGateway in
      NetworkState.Route(
        family: family, prefixLength: body.number(at: 1, UInt8.self), link: link,
        priority: found[6]?.number(at: 0, UInt32.self) ?? 0, hasGateway: hasGateway)
    }
  }

  /// Returns the answer to a query for the route to one address.
  package static func answer(_ body: ArraySlice<UInt8>) -> RouteAnswer {
    guard let (_, found) = routeParts(body) else { return .unreachable }
    switch body.number(at: 7, UInt8.self) {
    case UInt8(RTN_LOCAL): return .local
    case UInt8(RTN_UNICAST), UInt8(RTN_BROADCAST), UInt8(RTN_MULTICAST), UInt8(RTN_ANYCAST):
      guard let (link, hasGateway) = hops(found).first else { return .unreachable }
      return .link(link, hasGateway: hasGateway)
    default: return .unreachable
    }
  }

  private static func routeParts(_ body: ArraySlice<UInt8>) -> (
    IPAddress.Family, [UInt16: ArraySlice<UInt8>]
  )? {
    guard body.count >= 12, let family = IPAddress.Family(rawValue: body.number(at: 0, UInt8.self)) else {
      return nil
    }
    return (family, attributes(body.dropFirst(12)))
  }

  /// Returns the links of a route: its own (RTA_OIF), or its next hops' (RTA_MULTIPATH).
  private static func hops(_ found: [UInt16: ArraySlice<UInt8>]) -> [(link: Int32, hasGateway: Bool)] {
    func hasGateway(_ found: [UInt16: ArraySlice<UInt8>]) -> Bool { found[5] != nil || found[18] != nil }
    if let link = found[4] { return [(link.number(at: 0, Int32.self), hasGateway(found))] }
    var hops: [(Int32, Bool)] = []
    var rest = found[9] ?? []
    while rest.count >= 8 {
      let length = Int(rest.number(at: 0, UInt16.self))
      guard length >= 8, length <= rest.count else { break }
      hops.append(
        (rest.number(at: 4, Int32.self), hasGateway(attributes(rest.dropFirst(8).prefix(length - 8)))))
      rest = rest.dropFirst(aligned(length))
    }
    return hops
  }

  /// Returns the attributes by their number, without the flags in the number.
  private static func attributes(_ bytes: ArraySlice<UInt8>) -> [UInt16: ArraySlice<UInt8>] {
    var found: [UInt16: ArraySlice<UInt8>] = [:]
    var rest = bytes
    while rest.count >= 4 {
      let length = Int(rest.number(at: 0, UInt16.self))
      guard length >= 4, length <= rest.count else { break }
      found[rest.number(at: 2, UInt16.self) & 0x3FFF] = rest.dropFirst(4).prefix(length - 4)
      rest = rest.dropFirst(aligned(length))
    }
    return found
  }

  private static func aligned(_ length: Int) -> Int { (length + 3) & ~3 }
}

extension ArraySlice<UInt8> {
  /// Returns a number in the byte order of the machine; 0 if there are not enough bytes.
  func number<Number: FixedWidthInteger>(at offset: Int, _ type: Number.Type) -> Number {
    guard count >= offset + MemoryLayout<Number>.size else { return 0 }
    return withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: Number.self) }
  }
}
