import CLinux
import FoundationEssentials
package import Glibc
package import HTTPWire

extension IPAddress {
  /// The address as text, without its zone: `127.0.0.1`, `::1` (RFC 5952).
  package var text: String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { text in
      let kind = family == .v4 ? AF_INET : AF_INET6
      guard let start = text.baseAddress, inet_ntop(kind, bytes, start, socklen_t(text.count)) != nil else {
        return ""
      }
      return String(cString: start)
    }
  }
}

/// The look-up of names by the system.
package enum HostLookup {
  /// The reason why a name has no addresses: a code of `getaddrinfo`, and the `errno` beside `EAI_SYSTEM`.
  package struct Failure: Error, Sendable, Equatable {
    package let code: Int32
    package let systemError: Int32

    /// The system's words for it.
    package var text: String {
      guard code != EAI_SYSTEM else { return String(cString: strerror(systemError)) }
      return gai_strerror(code).map { String(cString: $0) } ?? "code \(code)"
    }
  }

  /// Returns the addresses of a name; none if there are none, or if the look-up fails. The call blocks as long as the
  /// system's resolver does.
  ///
  /// - Parameter literalsOnly: Whether only addresses are accepted as `host`, which never blocks.
  package static func addresses(of host: String, literalsOnly: Bool = false) -> [IPAddress] {
    (try? lookUp(host, literalsOnly: literalsOnly).get()) ?? []
  }

  /// Looks up a name, and blocks as long as the system's resolver does.
  package static func lookUp(_ host: String, literalsOnly: Bool = false) -> Result<[IPAddress], Failure> {
    // In a URL, the zone of an address follows an escaped percent sign (RFC 6874 §2).
    let host = host.utf8.contains(UInt8(ascii: ":")) ? host.replacing("%25", with: "%") : host
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    if literalsOnly { hints.ai_flags = AI_NUMERICHOST }
    var list: UnsafeMutablePointer<addrinfo>?
    errno = 0
    let code = getaddrinfo(host, nil, &hints, &list)
    guard code == 0 else { return .failure(failure(code, literalsOnly)) }
    defer { freeaddrinfo(list) }
    var found = FoundAddresses()
    var next = list
    while let info = next?.pointee {
      if let address = info.ai_addr.flatMap(address) { found.add(address) }
      next = info.ai_next
    }
    return .success(found.addresses)
  }

  /// Returns the failure of a look-up. Without a free descriptor, the system only says that the name is unknown.
  private static func failure(_ code: Int32, _ literalsOnly: Bool) -> Failure {
    let failure = Failure(code: code, systemError: errno)
    guard !literalsOnly, code != EAI_SYSTEM else { return failure }
    let probe = linux_stream_socket(AF_INET)
    guard probe < 0 else {
      close(probe)
      return failure
    }
    return Failure(code: EAI_SYSTEM, systemError: errno)
  }

  /// Returns the address of a socket; `nil` for other families.
  package static func address(_ pointer: UnsafeMutablePointer<sockaddr>) -> IPAddress? {
    switch Int32(pointer.pointee.sa_family) {
    case AF_INET:
      return pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { address in
        IPAddress(.v4, bytes: withUnsafeBytes(of: address.pointee.sin_addr) { Array($0) })
      }
    case AF_INET6:
      return pointer.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { address in
        IPAddress(
          .v6, bytes: withUnsafeBytes(of: address.pointee.sin6_addr) { Array($0) },
          zone: address.pointee.sin6_scope_id)
      }
    default: return nil
    }
  }
}

/// The proxies in the environment of the process at the first request. The environment is read once, because reading it
/// for each request would cost time, and other threads may change it.
package struct ProxyEnvironment: Sendable {
  package static let shared = ProxyEnvironment()

  let table: ProxyTable
  let isDirect: Bool

  private init() {
    table = ProxyTable(environment: ProcessInfo.processInfo.environment)
    isDirect = table.isDirect
  }

  /// Returns the proxy of a table for requests to an origin. Without a table, or if it refers to the environment, the
  /// environment determines the proxy.
  package func choice(for origin: Origin, in table: ProxyTable?) -> ProxyTable.Choice {
    let choice = table?.choice(for: origin) ?? .environment
    return choice == .environment ? self.table.choice(for: origin) : choice
  }
}
