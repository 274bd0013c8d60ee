import COpenSSL
import Glibc
import HTTPWire

/// The facts about an open connection, for the metrics of the exchanges that it carries. It never changes.
struct ConnectionFacts {
  /// The end of each step of connecting, on the monotonic clock in nanoseconds; 0 if the step did not happen.
  struct Times {
    var lookupEnd: UInt64 = 0
    var connectEnd: UInt64 = 0
    var secureEnd: UInt64 = 0
  }

  let times: Times
  let localAddress: String
  let remoteAddress: String
  let localPort: Int32
  let remotePort: Int32
  /// Whether a proxy stands between the two ends.
  let isProxied: Bool
  let tlsVersion: String?
  let tlsCipher: UInt16?

  init(of pipe: any Pipe, _ tls: TLSConnection?, _ times: Times, isProxied: Bool) {
    self.times = times
    self.isProxied = isProxied
    (localAddress, localPort) = Self.end(of: pipe.descriptor, isRemote: false)
    (remoteAddress, remotePort) = Self.end(of: pipe.descriptor, isRemote: true)
    tlsVersion = tls?.version
    tlsCipher = tls?.cipher
  }

  /// Returns the address and the port of one end of a socket; an empty text for a Unix-domain socket.
  private static func end(of descriptor: Int32, isRemote: Bool) -> (String, Int32) {
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
