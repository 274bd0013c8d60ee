import HTTPWire

/// Host names as the keys of a ``ServerTrustManager`` and as certificates write them.
enum HostPattern {
  /// The host in lower case, without brackets and the dot at the end, in the form of ASCII.
  static func normalized(_ host: String) -> String {
    var host = ascii(host).lowercased()
    if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
    if host.hasSuffix(".") { host = String(host.dropLast()) }
    // An IPv6 address can be written in many ways, and its zone means something on this machine alone.
    if host.contains(":"), let address = IPAddress(text: host), address.family == .v6 {
      return address.bytes.map { String($0, radix: 16) }.joined(separator: ":")
    }
    return host
  }

  /// What matches a normalized host by one wildcard: `*.example.com` for `www.example.com`; `nil` where nothing may.
  static func wildcard(for host: String) -> String? {
    // The numbers of an address are no labels.
    guard !host.contains(":"), host.last?.isNumber == false, let dot = host.firstIndex(of: "."),
      dot != host.startIndex
    else { return nil }
    return "*" + host[dot...]
  }

  /// Letters outside of ASCII become A-labels (RFC 5890); `*.` at the front stays.
  static func ascii(_ host: String) -> String { InternationalName.ascii(host) ?? host }
}
