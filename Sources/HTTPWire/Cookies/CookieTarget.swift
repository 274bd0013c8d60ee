/// The parts of a URL that a cookie has to match: host, path and scheme.
package struct CookieTarget: Sendable, Hashable {
  /// ASCII, lower case, without the brackets of an IPv6 address.
  package let host: String
  package let port: Int
  /// Begins with a slash, as it is sent: percent-encoding is not undone.
  package let path: String
  /// Whether the connection to the target is encrypted.
  package let isSecure: Bool

  package init(host: String, port: Int = 80, path: String = "/", isSecure: Bool = false) {
    self.host = host
    self.port = port
    self.path = path
    self.isSecure = isSecure
  }

  /// Makes the target of a request to a URL.
  ///
  /// - Parameters:
  ///   - url:    An absolute URL.
  ///   - origin: The origin of the URL.
  package init(url: String, origin: Origin) {
    self.init(
      host: origin.host, port: origin.port, path: Self.path(of: url),
      isSecure: origin.scheme == "https" || origin.scheme == "wss")
  }

  /// Makes the target of an absolute http or https URL; `nil` for any other text.
  package init?(url: String) {
    guard let origin = Origin(url: url) else { return nil }
    self.init(url: url, origin: origin)
  }

  private static func path(of url: String) -> String {
    let bytes = url.utf8
    guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else { return "/" }
    let authority = bytes[colon...].dropFirst(3)
    let start = authority.firstIndex { $0 == 0x2F || $0 == 0x3F || $0 == 0x23 } ?? authority.endIndex
    let path = authority[start...].prefix { $0 != 0x3F && $0 != 0x23 }
    return path.isEmpty ? "/" : String(path) ?? "/"
  }

  /// The path of a cookie that names none: the folder of the URL that set it (RFC 6265bis §5.1.4).
  package var defaultPath: String {
    guard let last = path.utf8.lastIndex(of: UInt8(ascii: "/")), last > path.startIndex else { return "/" }
    return String(path[..<last])
  }

  /// Whether the host is an address; no domain covers one but itself.
  package var isAddress: Bool { Self.isAddress(host) }

  /// Whether a host is an address: one with colons, or one whose last label is a number, which is IPv4 in one of its
  /// spellings.
  package static func isAddress(_ host: String) -> Bool {
    let host = host.utf8
    if host.contains(UInt8(ascii: ":")) { return true }
    let digits = host.last == UInt8(ascii: ".") ? host.dropLast() : host[...]
    let label = digits[
      (digits.lastIndex(of: UInt8(ascii: ".")).map { digits.index(after: $0) } ?? digits.startIndex)...]
    guard let first = label.first, (0x30...0x39).contains(first) else { return false }
    return label.allSatisfy { (0x30...0x39).contains($0) } || label.starts(with: "0x".utf8)
  }

  /// Whether this host is `domain` or one of its subdomains (RFC 6265bis §5.1.3).
  package func isCovered(by domain: String) -> Bool {
    Self.covers(domain, host: host)
  }

  static func covers(_ domain: String, host: String) -> Bool {
    if domain == host { return true }
    let (host, domain) = (host.utf8, domain.utf8)
    guard !domain.isEmpty, host.count > domain.count, host.reversed().starts(with: domain.reversed()),
      host[host.index(host.endIndex, offsetBy: -domain.count - 1)] == UInt8(ascii: ".")
    else { return false }
    return !isAddress(String(host))
  }

  /// Whether the path is `path` or below it (RFC 6265bis §5.1.4).
  package func isBelow(_ path: String) -> Bool {
    Self.isPath(self.path, below: path)
  }

  static func isPath(_ path: String, below folder: String) -> Bool {
    let (path, folder) = (path.utf8, folder.utf8)
    guard path.starts(with: folder) else { return false }
    return path.count == folder.count || folder.last == UInt8(ascii: "/")
      || path[path.index(path.startIndex, offsetBy: folder.count)] == UInt8(ascii: "/")
  }

  /// Whether host, path, port and encryption allow a cookie. The cause of the request is checked separately.
  package func isMet(by cookie: Cookie) -> Bool {
    guard cookie.isHostOnly ? cookie.domain == host : isCovered(by: cookie.domain) else { return false }
    return (isSecure || !cookie.isSecure) && isBelow(cookie.path)
      && (cookie.ports.isEmpty || cookie.ports.contains(port))
  }
}
