import COpenSSL
import Glibc
import HTTPSystem
import HTTPWire

/// The facts about an open connection, for the metrics of the exchanges that it carries. It never changes.
final class ConnectionFacts: Sendable {
  /// The end of each step of connecting, on the monotonic clock in nanoseconds; 0 if the step did not happen.
  struct Times: Sendable {
    var lookupEnd: UInt64 = 0
    var connectEnd: UInt64 = 0
    var secureEnd: UInt64 = 0
  }

  let times: Times
  /// The facts that the metrics of each exchange hold.
  let details: ConnectionDetails
  let localPort: Int32
  let remotePort: Int32
  /// Whether a proxy stands between the two ends.
  let isProxied: Bool

  init(of pipe: any Pipe, _ tls: TLSConnection?, _ times: Times, isProxied: Bool) {
    self.times = times
    self.isProxied = isProxied
    let local = Self.end(of: pipe.descriptor, isRemote: false)
    let remote = Self.end(of: pipe.descriptor, isRemote: true)
    (localPort, remotePort) = (local.port, remote.port)
    details = ConnectionDetails(
      localAddress: local.address, remoteAddress: remote.address, tlsVersion: tls?.version,
      tlsCipher: tls?.cipher)
  }

  /// Returns the address and the port of one end of a socket; an empty text for a Unix-domain socket.
  private static func end(of descriptor: Int32, isRemote: Bool) -> (address: String, port: Int32) {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let address = withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        let status =
          isRemote
          ? getpeername(descriptor, address, &length) : getsockname(descriptor, address, &length)
        return status == 0 ? HostLookup.address(address) : nil
      }
    }
    guard let address else { return ("", 0) }
    // Both address families have the port at the same offset.
    let port = withUnsafeBytes(of: &storage) { $0.load(fromByteOffset: 2, as: UInt16.self) }
    return (address.literal, Int32(UInt16(bigEndian: port)))
  }
}
