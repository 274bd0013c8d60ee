import CCurl
import CNetlink
import Glibc

/// A socket to the kernel's network (netlink(7)), closed when it is released.
package final class NetlinkSocket: Sendable {
  package let descriptor: Int32

  /// - Parameter isListening: Whether the socket receives changes of links, addresses and routes.
  /// - Returns: `nil` if the system has no netlink sockets, or none left.
  package init?(isListening: Bool) {
    let kind = SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue
    // Dispatch tells a listener when there is a message. A query waits for its answer.
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

  /// Reads and drops all messages. Their content does not matter, because the listener reads the whole state of the
  /// network.
  package func drain() {
    var buffer = [UInt8](repeating: 0, count: 16_384)
    while true {
      let count = buffer.withUnsafeMutableBytes {
        recv(descriptor, $0.baseAddress, $0.count, ccurl_do_not_wait)
      }
      // ENOBUFS: some messages were lost, and others may have arrived since.
      guard count > 0 || (count < 0 && (errno == EINTR || errno == ENOBUFS)) else { return }
    }
  }
}
