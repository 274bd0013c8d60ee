/// The request target of a URL (RFC 9112 §3.2), for URLs whose target libcurl does not keep as it is.
package enum RequestTarget {
  /// The form of a target.
  package enum Form: Sendable, Equatable {
    /// Path and query, for an origin server or a tunnel (RFC 9112 §3.2.1).
    case origin
    /// The URL without its fragment, for a proxy that forwards the request (RFC 9112 §3.2.2).
    case absolute
  }

  /// Returns the target that has to be named to libcurl, or `nil` when libcurl takes the same one from `url`.
  ///
  /// libcurl 8 leaves out the question mark of an empty query, and libcurl 8.15 writes percent-encoded bytes in upper
  /// case. `url` is an absolute http or https URL of ASCII characters without user and password.
  package static func verbatim(of url: String, _ form: Form, at origin: Origin) -> String? {
    guard mayBeChanged(url) else { return nil }
    let end = url.utf8.firstIndex(of: UInt8(ascii: "#")) ?? url.utf8.endIndex
    let text = url.utf8[..<end]
    guard
      text.contains(UInt8(ascii: "%"))
        || text.last == UInt8(ascii: "?") && text.firstIndex(of: UInt8(ascii: "?")) == text.indices.last
    else { return nil }
    guard let colon = text.firstIndex(of: UInt8(ascii: ":")) else { return nil }
    let rest = text[colon...].dropFirst(3)
    let start = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.endIndex
    let target = String(Substring(rest[start...]))
    let path = target.hasPrefix("/") ? target : "/" + target
    switch form {
    case .origin: return path
    case .absolute:
      let host = origin.host.contains(":") ? "[\(origin.host)]" : origin.host
      let isUsual = origin.port == (origin.scheme == "https" ? 443 : 80)
      return "\(origin.scheme)://\(host)\(isUsual ? "" : ":\(origin.port)")\(path)"
    }
  }

  /// Passes over most URLs at once.
  private static func mayBeChanged(_ url: String) -> Bool {
    url.utf8.withContiguousStorageIfAvailable { bytes in
      bytes.last == UInt8(ascii: "?")
        || bytes.contains { $0 == UInt8(ascii: "%") || $0 == UInt8(ascii: "#") }
    } ?? true
  }
}
