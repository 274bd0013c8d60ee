extension SecretMasking {
  /// Masks the user names and the passwords of all authorities, because many services take a token as the user name.
  ///
  /// The last "@" of an authority ends them. A password may also hold a slash that should have been encoded: what
  /// stands behind the colon is then not a port.
  func userInformation(_ bytes: Bytes, _ place: Place) -> [UInt8] {
    guard let lastAt = bytes.lastIndex(of: UInt8(ascii: "@")) else { return Array(bytes) }
    var output: [UInt8] = []
    output.reserveCapacity(bytes.count)
    var rest = bytes
    var isQuery = place == .query
    if let start = Self.firstAuthority(rest, place) {
      output += rest[..<start]
      rest = rest[start...]
      if let end = Self.userEnd(rest, lastAt, isQuery: isQuery) {
        output += Self.mask
        rest = rest[end...]
      }
    }
    while let byte = rest.first {
      guard Self.isSlash(byte) else {
        output.append(byte)
        rest = rest.dropFirst()
        if byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#") { isQuery = true }
        continue
      }
      // Browsers accept one slash behind a scheme, and more than two.
      let slashes = rest.prefix(while: Self.isSlash)
      let isAuthority = slashes.count > 1 || output.last == UInt8(ascii: ":")
      output += slashes
      rest = rest[slashes.endIndex...]
      if isAuthority, let end = Self.userEnd(rest, lastAt, isQuery: isQuery) {
        output += Self.mask
        rest = rest[end...]
      }
    }
    return output
  }

  /// Returns the start of an authority without a scheme; `nil` if the text begins otherwise.
  private static func firstAuthority(_ bytes: Bytes, _ place: Place) -> Int? {
    let slashes = bytes.prefix(while: isSlash)
    if !slashes.isEmpty { return slashes.count > 1 ? slashes.endIndex : nil }
    let end = bytes.firstIndex { $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "@") || endsAuthority($0) }
    guard let end, !endsAuthority(bytes[end]) else { return nil }
    let isColon = bytes[end] == UInt8(ascii: ":")
    if isColon, end + 1 < bytes.endIndex, isSlash(bytes[end + 1]) { return nil }
    // An address of mail or of an account has a scheme, or no password.
    if isColon, addressSchemes.contains(String(decoding: bytes[..<end], as: UTF8.self).lowercased()) {
      return nil
    }
    return isColon || place == .address ? bytes.startIndex : nil
  }

  /// Returns the position of the "@" behind the user information of an authority; `nil` without one.
  ///
  /// - Parameter lastAt: The position of the last "@" of the text.
  private static func userEnd(_ bytes: Bytes, _ lastAt: Int, isQuery: Bool) -> Int? {
    let authority = bytes.prefix { !endsAuthority($0) && !(isQuery && $0 == UInt8(ascii: "&")) }
    if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
      return at > authority.startIndex ? at : nil
    }
    guard let colon = authority.firstIndex(of: UInt8(ascii: ":")), authority.first != UInt8(ascii: "["),
      authority[(colon + 1)...].contains(where: { !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
    else { return nil }
    return lastAt > colon ? lastAt : nil
  }

  private static let addressSchemes: Set = [
    "acct", "cid", "data", "im", "mailto", "mid", "pres", "sip", "sips", "tag", "urn", "xmpp",
  ]

  private static func isSlash(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "/") || byte == UInt8(ascii: "\\")
  }

  private static func endsAuthority(_ byte: UInt8) -> Bool {
    isSlash(byte) || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#")
  }
}
