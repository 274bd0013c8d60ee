/// The proxies of both schemes.
package struct ProxyTable: Sendable, Hashable {
  package enum Choice: Sendable, Hashable {
    case direct
    case server(ProxyServer)
    /// The proxy that the environment of the process names. The engine has read it.
    case environment
    /// The setting of a proxy is unreadable; the text names the setting. No request is sent, because it would bypass
    /// the proxy.
    case unreadable(String)
  }

  /// The proxy of one scheme.
  package struct ProxyEntry: Sendable, Hashable {
    package var choice: Choice
    /// The hosts for which the proxy is not used.
    package var bypass: [String]
    /// Names without a dot are reached without a proxy.
    package var excludesSimpleNames: Bool

    package init(_ choice: Choice = .direct, bypass: [String] = [], excludesSimpleNames: Bool = false) {
      self.choice = choice
      self.bypass = bypass
      self.excludesSimpleNames = excludesSimpleNames
    }
  }

  package var http: ProxyEntry
  package var https: ProxyEntry

  package init(http: ProxyEntry = ProxyEntry(), https: ProxyEntry = ProxyEntry()) {
    self.http = http
    self.https = https
  }

  /// Makes a table with one proxy for everything.
  package init(_ server: ProxyServer) {
    http = ProxyEntry(.server(server), bypass: server.bypass)
    https = http
  }

  /// Returns the table of the options; `nil` for the proxies of the process environment.
  ///
  /// - Parameter system: The proxies of the session's configuration, which replace the proxies of the environment.
  package static func named(by options: TransportOptions, system: ProxyTable?) -> ProxyTable? {
    named(by: options.proxy, system)
  }

  private static func named(by proxy: Proxy, _ system: ProxyTable?) -> ProxyTable? {
    switch proxy {
    case .none: ProxyTable()
    case .environment: system
    case .server(let server): ProxyTable(server)
    case .perScheme(let http, let https):
      ProxyTable(
        http: named(by: http, system)?.http ?? ProxyEntry(.environment),
        https: named(by: https, system)?.https ?? ProxyEntry(.environment))
    }
  }

  /// Reads the variables of an environment.
  package init(environment: [String: String]) {
    func first(_ names: [String]) -> Choice? {
      for name in names {
        guard let value = environment[name], !value.isEmpty else { continue }
        return ProxyServer(value, bypass: []).map { .server($0) } ?? .unreadable(name)
      }
      return nil
    }
    let all = first(["all_proxy", "ALL_PROXY"]) ?? .direct
    let text = environment["no_proxy"].flatMap { $0.isEmpty ? nil : $0 } ?? environment["NO_PROXY"]
    let bypass = ProxyBypass.words(text ?? "")
    http = ProxyEntry(first(["http_proxy"]) ?? all, bypass: bypass)
    https = ProxyEntry(first(["https_proxy", "HTTPS_PROXY"]) ?? all, bypass: bypass)
  }

  /// Whether nothing ever goes through a proxy.
  package var isDirect: Bool {
    http.choice == .direct && https.choice == .direct
  }

  /// Returns the proxy for requests to an origin.
  ///
  /// - Returns: ``Choice/environment`` only from a table with different settings for the schemes.
  package func choice(for origin: Origin) -> Choice {
    let entry = origin.scheme == "https" ? https : http
    guard entry.choice != .direct, !ProxyBypass(entry.bypass).covers(origin) else { return .direct }
    if entry.excludesSimpleNames, Self.isSimpleName(origin.host) { return .direct }
    return entry.choice
  }

  /// Whether a host is a name without a dot. A number is an address.
  private static func isSimpleName(_ host: String) -> Bool {
    !host.contains(".") && !host.contains(":") && IPAddress(host: host) == nil
  }
}

/// The hosts for which a proxy is not used: the entries of `no_proxy`, as curl and others read them.
package struct ProxyBypass: Sendable {
  private enum ProxyEntry: Sendable {
    case all
    case name(String, port: Int?)
    case range(IPAddress, bits: Int, port: Int?)
  }

  private let entries: [ProxyEntry]

  package init(_ entries: [String]) {
    self.entries = entries.compactMap { Self.entry($0) }
  }

  /// Splits the value of a variable at commas and spaces.
  package static func words(_ text: String) -> [String] {
    text.split { $0 == "," || $0 == " " || $0 == "\t" }.map(String.init)
  }

  /// Whether an origin is reached without the proxy.
  package func covers(_ origin: Origin) -> Bool {
    guard !entries.isEmpty else { return false }
    let host = Self.plain(origin.host)
    let address = IPAddress(host: host)
    return entries.contains { entry in
      switch entry {
      case .all: return true
      case .name(let name, let port):
        guard port == nil || port == origin.port else { return false }
        return host == name || (address == nil && host.hasSuffix("." + name))
      case .range(let base, let bits, let port):
        guard port == nil || port == origin.port, let address else { return false }
        return address.isWithin(base, bits: bits)
      }
    }
  }

  private static func entry(_ text: String) -> ProxyEntry? {
    if text == "*" { return .all }
    var text = text.lowercased()
    if text.hasPrefix("*.") { text.removeFirst() }
    if text.hasPrefix(".") { text.removeFirst() }
    if let slash = text.firstIndex(of: "/") {
      guard let bits = DecimalNumber.whole(text[text.index(after: slash)...]).flatMap({ Int(exactly: $0) }),
        let base = IPAddress(text: padded(unbracketed(String(text[..<slash])))),
        (0...base.bytes.count * 8).contains(bits)
      else { return nil }
      return .range(base, bits: bits, port: nil)
    }
    let (host, port) = split(text)
    if let address = IPAddress(text: host) {
      return .range(address, bits: address.bytes.count * 8, port: port)
    }
    let name = plain(host)
    return name.isEmpty ? nil : .name(name, port: port)
  }

  /// Splits host and port; an IPv6 address with a port is in brackets.
  private static func split(_ text: String) -> (String, Int?) {
    if text.hasPrefix("[") {
      guard let end = text.firstIndex(of: "]") else { return (text, nil) }
      let (host, rest) = (String(text[..<end].dropFirst()), text[text.index(after: end)...])
      if rest.isEmpty || rest == ":" { return (host, nil) }
      // With another text after the bracket, the entry covers nothing, rather than all ports.
      guard rest.hasPrefix(":"), let port = DecimalNumber.port(rest.dropFirst()) else { return (text, nil) }
      return (host, port)
    }
    guard let colon = text.lastIndex(of: ":"), text.firstIndex(of: ":") == colon,
      let port = DecimalNumber.port(text[text.index(after: colon)...])
    else { return (text, nil) }
    return (String(text[..<colon]), port)
  }

  private static func unbracketed(_ text: String) -> String {
    text.hasPrefix("[") && text.hasSuffix("]") ? String(text.dropFirst().dropLast()) : text
  }

  /// Completes an abbreviated network, because Apple's systems write `169.254.0.0/16` as `169.254/16`.
  private static func padded(_ text: String) -> String {
    guard !text.contains(":") else { return text }
    let missing = 4 - text.split(separator: ".").count
    return missing > 0 && missing < 4 ? text + String(repeating: ".0", count: missing) : text
  }

  /// Removes the dot of a name in absolute form, which is the same name.
  private static func plain(_ host: String) -> String {
    host.hasSuffix(".") ? String(host.dropLast()) : host
  }
}

extension IPAddress {
  /// Reads an address as written in a URL, without brackets (RFC 3986 §3.2.2); `nil` for any other text. A zone is
  /// ignored.
  package init?(text: String) {
    if let bytes = Self.four(text[...]) {
      self.init(.v4, bytes: bytes)
      return
    }
    let text = text.prefix { $0 != "%" }
    guard text.contains(":") else { return nil }
    let halves = text.split(separator: "::", maxSplits: 2, omittingEmptySubsequences: false)
    guard halves.count == 1 || (halves.count == 2 && !halves[0].contains(".")),
      let head = Self.groups(halves[0])
    else { return nil }
    guard halves.count == 2 else {
      self.init(.v6, bytes: head)
      return
    }
    guard let tail = Self.groups(halves[1]), head.count + tail.count <= 14 else { return nil }
    self.init(.v6, bytes: head + [UInt8](repeating: 0, count: 16 - head.count - tail.count) + tail)
  }

  /// Reads the host of a URL as the system's resolver does. It also accepts IPv4 addresses with fewer parts, and with
  /// octal or hexadecimal ones (`inet_aton`). `nil` for a name.
  package init?(host: String) {
    guard let address = Self(text: host) ?? Self.numbers(host) else { return nil }
    self = address
  }

  private static func four(_ text: Substring) -> [UInt8]? {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 4 else { return nil }
    let bytes = parts.compactMap { part in
      // A leading zero would make the number octal for other readers.
      part.utf8.allSatisfy { (0x30...0x39).contains($0) } && (part == "0" || !part.hasPrefix("0"))
        ? UInt8(part) : nil
    }
    return bytes.count == 4 ? bytes : nil
  }

  /// Reads one to four numbers, of which the last one fills the remaining bytes.
  private static func numbers(_ text: String) -> IPAddress? {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count <= 4, let last = parts.last.flatMap({ number($0) }) else { return nil }
    let first = parts.dropLast().compactMap { number($0).flatMap { UInt8(exactly: $0) } }
    let width = 4 - first.count
    guard first.count == parts.count - 1, last >> UInt32(width * 8) == 0 else { return nil }
    let rest = (0..<width).reversed().map { UInt8(truncatingIfNeeded: last >> UInt32($0 * 8)) }
    return IPAddress(.v4, bytes: first + rest)
  }

  /// Reads a number as in C: hexadecimal after `0x`, octal after `0`.
  private static func number(_ text: Substring) -> UInt32? {
    let isHexadecimal = text.hasPrefix("0x") || text.hasPrefix("0X")
    let digits = isHexadecimal ? text.dropFirst(2) : text
    // Swift also accepts a sign.
    guard let first = digits.utf8.first, first != 0x2B, first != 0x2D else { return nil }
    return UInt32(digits, radix: isHexadecimal ? 16 : text.hasPrefix("0") ? 8 : 10)
  }

  private static func groups(_ text: Substring) -> [UInt8]? {
    guard !text.isEmpty else { return [] }
    var bytes: [UInt8] = []
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    for (index, part) in parts.enumerated() {
      if index == parts.count - 1, part.contains(".") {
        guard let four = four(part) else { return nil }
        bytes += four
      } else {
        guard (1...4).contains(part.utf8.count), part.utf8.allSatisfy({ $0 != 0x2B && $0 != 0x2D }),
          let value = UInt16(part, radix: 16)
        else { return nil }
        bytes += [UInt8(value >> 8), UInt8(value & 255)]
      }
    }
    return bytes.count <= 16 ? bytes : nil
  }

  /// Whether the first `bits` bits equal those in `base`.
  package func isWithin(_ base: IPAddress, bits: Int) -> Bool {
    guard family == base.family, bits >= 0, bits <= bytes.count * 8 else { return false }
    let whole = bits / 8
    guard bytes.prefix(whole) == base.bytes.prefix(whole) else { return false }
    let rest = bits % 8
    guard rest > 0 else { return true }
    let mask = UInt8(truncatingIfNeeded: 0xFF00 >> rest)
    return bytes[whole] & mask == base.bytes[whole] & mask
  }
}
