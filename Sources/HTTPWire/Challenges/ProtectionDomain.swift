/// For which targets of an origin a credential is sent unasked.
package enum ProtectionDomain {
  /// Returns the protection space of a challenged target: all targets in the folder of its path (RFC 7617 §2.2).
  package static func ofBasic(target: String) -> String {
    let path = target.prefix { $0 != "?" }
    guard let slash = path.lastIndex(of: "/") else { return "/" }
    return String(path[...slash])
  }

  /// Returns the `domain` of a Digest challenge as prefixes of targets (RFC 7616 §3.3); without one it is all of the
  /// origin. URIs of other origins are left out, because those have to send challenges of their own.
  package static func ofDigest(_ domain: String?, origin: Origin) -> [String] {
    let words = (domain ?? "").split { $0 == " " || $0 == "\t" }
    guard !words.isEmpty else { return ["/"] }
    return words.prefix(64).compactMap { word in
      if word.hasPrefix("/"), !word.hasPrefix("//") { return String(word) }
      guard Origin(url: String(word)) == origin else { return nil }
      return target(of: String(word))
    }
  }

  /// Returns path and query of an absolute URL, as in a request line (RFC 9112 §3.2.1).
  package static func target(of url: String) -> String {
    let bytes = Array(url.utf8)
    guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else { return "/" }
    var start = colon + 1
    if bytes[start...].starts(with: "//".utf8) {
      start += 2
      while start < bytes.count, !Self.endsAuthority(bytes[start]) { start += 1 }
    }
    let end = bytes[start...].firstIndex(of: UInt8(ascii: "#")) ?? bytes.count
    let target = String(decoding: bytes[start..<end], as: UTF8.self)
    return target.hasPrefix("/") ? target : "/" + target
  }

  private static func endsAuthority(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#")
  }
}
