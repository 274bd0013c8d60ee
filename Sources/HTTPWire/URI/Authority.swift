/// The authority of a URL: `user:password@host:port` (RFC 3986 §3.2), taken apart and validated.
package struct Authority: Equatable, Sendable {
  /// The text before the `@`, as it came; `nil` without one.
  package let userInfo: String?
  /// ASCII, lower case, without the brackets of an IPv6 address. Names in other alphabets are encoded
  /// (RFC 3492), percent-encoding is undone.
  package let host: String
  package let isIPv6: Bool
  /// `nil` when none is named, or an empty one.
  package let port: Int?

  /// Takes an authority apart; `nil` when the host is missing or cannot be one, or when the port is no
  /// number from 0 to 65535.
  package init?(_ text: String) {
    self.init(bytes: Array(text.utf8)[...])
  }

  init?(bytes: ArraySlice<UInt8>) {
    var rest = bytes
    if let at = rest.lastIndex(of: UInt8(ascii: "@")) {
      userInfo = String(decoding: rest[..<at], as: UTF8.self)
      rest = rest[(at + 1)...]
    } else {
      userInfo = nil
    }
    if rest.first == UInt8(ascii: "[") {
      guard let end = rest.firstIndex(of: UInt8(ascii: "]")),
        let address = Self.address(rest[(rest.startIndex + 1)..<end])
      else { return nil }
      host = address
      isIPv6 = true
      rest = rest[(end + 1)...]
    } else {
      let end = rest.firstIndex(of: UInt8(ascii: ":")) ?? rest.endIndex
      guard let name = Self.name(rest[..<end]) else { return nil }
      host = name
      isIPv6 = false
      rest = rest[end...]
    }
    guard rest.isEmpty || rest.first == UInt8(ascii: ":"), let port = Self.port(rest.dropFirst()) else {
      return nil
    }
    self.port = port
  }

  /// The authority with its host as it is sent.
  package var text: String {
    (userInfo.map { $0 + "@" } ?? "") + (isIPv6 ? "[\(host)]" : host) + (port.map { ":\($0)" } ?? "")
  }

  /// Parses a port. An outer `nil` is an invalid port, an inner one a port that is not named.
  private static func port(_ bytes: ArraySlice<UInt8>) -> Int?? {
    guard !bytes.isEmpty else { return .some(nil) }
    var value = 0
    for byte in bytes {
      guard (0x30...0x39).contains(byte) else { return nil }
      value = value * 10 + Int(byte - 0x30)
      guard value <= 65535 else { return nil }
    }
    return value
  }

  /// Returns the text of an IPv6 address, with a zone perhaps (`%25eth0`, RFC 6874). Only the form of the address is
  /// checked.
  private static func address(_ bytes: ArraySlice<UInt8>) -> String? {
    let zone = bytes.firstIndex(of: UInt8(ascii: "%")) ?? bytes.endIndex
    var colons = 0
    for byte in bytes[..<zone] {
      switch FieldName.lowercased(byte) {
      case UInt8(ascii: ":"): colons += 1
      case 0x30...0x39, UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "."): break
      default: return nil
      }
    }
    guard (2...7).contains(colons) else { return nil }
    if zone < bytes.endIndex {
      let name = bytes[zone...].dropFirst(3)
      guard bytes[zone...].starts(with: "%25".utf8), !name.isEmpty, name.allSatisfy(isUnreserved) else {
        return nil
      }
    }
    return String(decoding: bytes.map(FieldName.lowercased), as: UTF8.self)
  }

  private static func name(_ bytes: ArraySlice<UInt8>) -> String? {
    guard !bytes.isEmpty else { return nil }
    if bytes.allSatisfy(isUnreserved) {
      return String(decoding: bytes.map(FieldName.lowercased), as: UTF8.self)
    }
    guard let plain = percentDecoded(bytes), let name = InternationalName.ascii(plain), !name.isEmpty,
      name.utf8.allSatisfy({ isUnreserved($0) || subDelimiters.contains($0) })
    else { return nil }
    return name
  }

  private static let subDelimiters = Array("!$&'()*+,;=".utf8)

  private static func isUnreserved(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x61...0x7A, 0x41...0x5A, 0x30...0x39: true
    case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"): true
    default: false
    }
  }

  /// Decodes percent-encoded UTF-8; `nil` for any other bytes.
  private static func percentDecoded(_ bytes: ArraySlice<UInt8>) -> String? {
    var result: [UInt8] = []
    var rest = bytes
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        result.append(byte)
        continue
      }
      guard let high = rest.popFirst().flatMap(hexValue), let low = rest.popFirst().flatMap(hexValue) else {
        return nil
      }
      result.append(high << 4 | low)
    }
    return String(validating: result, as: UTF8.self)
  }

  private static func hexValue(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x30...0x39: byte - 0x30
    case 0x41...0x46: byte - 0x41 + 10
    case 0x61...0x66: byte - 0x61 + 10
    default: nil
    }
  }
}
