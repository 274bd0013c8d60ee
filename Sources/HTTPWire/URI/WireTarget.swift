/// The target of a request, read from the text of its URL. User and password are removed, because they are
/// credentials and not part of the target (RFC 9110 §4.2.4).
package struct WireTarget: Sendable, Equatable {
  /// The URL without user and password.
  package let url: String
  package let origin: Origin
  package let user: String?
  package let password: String?

  /// Parses an absolute http or https URL with a host; `nil` for any other text.
  package init?(_ text: String) {
    if let origin = Self.plainOrigin(text) {
      self.origin = origin
      url = text
      user = nil
      password = nil
      return
    }
    guard let origin = Origin(url: text) else { return nil }
    self.origin = origin
    let reference = text.utf8.contains(UInt8(ascii: "@")) ? URIReference(text) : nil
    guard var reference, let authority = reference.authority, let at = authority.lastIndex(of: "@") else {
      url = text
      user = nil
      password = nil
      return
    }
    let userInfo = authority[..<at]
    let parts = userInfo.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    user = PercentDecoding.text(parts[0])
    password = parts.count > 1 ? PercentDecoding.text(parts[1]) : nil
    reference.authority = String(authority[authority.index(after: at)...])
    url = reference.text
  }
}

extension WireTarget {
  /// Returns the origin of a common URL: a lower-case scheme, a host of letters, digits, dots and dashes, perhaps a
  /// port. `nil` for any other, which the full parser reads.
  private static func plainOrigin(_ text: String) -> Origin? {
    text.utf8.withContiguousStorageIfAvailable { bytes -> Origin? in
      let isSecure = bytes.count > 4 && bytes[4] == UInt8(ascii: "s")
      let scheme: StaticString = isSecure ? "https://" : "http://"
      let start = scheme.utf8CodeUnitCount
      guard bytes.count > start, (0..<start).allSatisfy({ bytes[$0] == scheme.utf8Start[$0] }) else {
        return nil
      }
      var end = start
      while end < bytes.count, isPlainHostByte(bytes[end]) { end += 1 }
      guard end > start, end - start <= Authority.longestHost else { return nil }
      var port = 0
      var rest = end
      if rest < bytes.count, bytes[rest] == UInt8(ascii: ":") {
        rest += 1
        while rest < bytes.count, bytes[rest] >= 0x30, bytes[rest] <= 0x39, port <= 65535 {
          port = port * 10 + Int(bytes[rest] - 0x30)
          rest += 1
        }
        guard rest > end + 1, port <= 65535 else { return nil }
      }
      guard rest == bytes.count || bytes[rest] == 0x2F || bytes[rest] == 0x3F else { return nil }
      return Origin(
        plainScheme: isSecure ? "https" : "http",
        host: String(decoding: UnsafeBufferPointer(rebasing: bytes[start..<end]), as: UTF8.self),
        port: rest == end ? (isSecure ? 443 : 80) : port)
    } ?? nil
  }

  private static func isPlainHostByte(_ byte: UInt8) -> Bool {
    (byte >= 0x61 && byte <= 0x7A) || (byte >= 0x30 && byte <= 0x39) || byte == 0x2E || byte == 0x2D
  }
}

/// The text that percent-encoded bytes stand for (RFC 3986 §2.1).
package enum PercentDecoding {
  /// Decodes a percent-encoded text. Invalid escapes are left unchanged; bytes that are not UTF-8 are replaced.
  package static func text(_ encoded: some StringProtocol) -> String {
    String(decoding: bytes(encoded.utf8), as: UTF8.self)
  }

  /// Decodes percent-encoded bytes. Invalid escapes are left unchanged.
  package static func bytes(_ encoded: some Sequence<UInt8>) -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = Array(encoded)[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%"), let high = rest.first.flatMap(Authority.hexValue),
        let low = rest.dropFirst().first.flatMap(Authority.hexValue)
      {
        bytes.append(high << 4 | low)
        rest = rest.dropFirst(2)
      } else {
        bytes.append(byte)
      }
    }
    return bytes
  }
}

/// Scheme, host and port (RFC 6454 §4): two URLs of one origin may see each other's secrets.
package struct Origin: Hashable, Sendable {
  /// Lower case.
  package let scheme: String
  /// Lower case, without the brackets of an IPv6 address. The zone of an address, the name of an interface, stays as it
  /// is.
  package let host: String
  package let port: Int

  package init(scheme: String, host: String, port: Int?) {
    self.scheme = scheme.lowercased()
    let zone = host.utf8.firstIndex(of: UInt8(ascii: "%")) ?? host.endIndex
    self.host = host[..<zone].lowercased() + host[zone...]
    self.port = port ?? (self.scheme == "https" ? 443 : 80)
  }

  /// Makes an origin of parts that are in lower case already.
  init(plainScheme scheme: String, host: String, port: Int) {
    self.scheme = scheme
    self.host = host
    self.port = port
  }
}

extension Origin {
  /// Makes the origin of an absolute http or https URL; `nil` for any other text, and when host or port cannot be
  /// one. User and password do not count.
  package init?(url: String) {
    let bytes = Array(url.utf8)
    guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), colon == 4 || colon == 5,
      bytes[colon...].starts(with: "://".utf8)
    else { return nil }
    let scheme = colon == 4 ? "http" : "https"
    guard zip(bytes, scheme.utf8).allSatisfy({ FieldName.lowercased($0) == $1 }) else { return nil }
    let rest = bytes[(colon + 3)...]
    let end = rest.firstIndex { $0 == 0x2F || $0 == 0x3F || $0 == 0x23 } ?? rest.endIndex
    guard let authority = Authority(bytes: rest[..<end]) else { return nil }
    self.init(scheme: scheme, host: authority.host, port: authority.port)
  }
}
