/// Percent-encoding (RFC 3986 §2.1) with a set of allowed ASCII bytes. All other bytes become `%` and two uppercase
/// hexadecimal digits.
package struct PercentEncoding: Sendable, Equatable {
  /// The allowed characters 0 to 63 and 64 to 127, a bit each.
  private var low: UInt64 = 0
  private var high: UInt64 = 0

  /// Allows the bytes for which the predicate is true; it is called once for each ASCII byte.
  package init(allowing isAllowed: (UInt8) -> Bool) {
    for byte in UInt8(0)..<128 where isAllowed(byte) { insert(byte) }
  }

  /// For the names and values of a query: the unreserved characters (RFC 3986 §2.3), `/` and `?`
  /// (§3.4). The separators of a form, `&`, `=` and `+`, are not among them.
  package static let queryComponent = PercentEncoding { byte in
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    default: "-._~/?".utf8.contains(byte)
    }
  }

  /// For a whole query: all characters of RFC 3986 §3.4 except `%`.
  package static let query = PercentEncoding { byte in
    queryComponent.allows(byte) || "!$&'()*+,;=:@".utf8.contains(byte)
  }

  /// For a whole path: all characters of RFC 3986 §3.3 except `%`, and the slash.
  package static let path = PercentEncoding { byte in
    query.allows(byte) && byte != UInt8(ascii: "?")
  }

  /// Whether a byte is allowed.
  @inline(__always)
  package func allows(_ byte: UInt8) -> Bool {
    if byte < 64 { return low & (1 << UInt64(byte)) != 0 }
    return byte < 128 && high & (1 << UInt64(byte & 63)) != 0
  }

  private mutating func insert(_ byte: UInt8) {
    if byte < 64 {
      low |= 1 << UInt64(byte)
    } else {
      high |= 1 << UInt64(byte & 63)
    }
  }

  /// Encodes a text.
  ///
  /// - Parameters:
  ///   - text:          The text. One without a byte to encode is returned unchanged.
  ///   - spacesAsPluses: Whether a space becomes `+`, as in forms, even when it is allowed.
  package func encode(_ text: String, spacesAsPluses: Bool = false) -> String {
    var text = text
    return text.withUTF8 { bytes in
      var escapes = 0
      var spaces = 0
      for byte in bytes {
        if spacesAsPluses, byte == 0x20 {
          spaces += 1
        } else if !allows(byte) {
          escapes += 1
        }
      }
      guard escapes + spaces > 0 else { return nil }
      return String(unsafeUninitializedCapacity: bytes.count + 2 * escapes) { buffer in
        var end = 0
        for byte in bytes {
          if spacesAsPluses, byte == 0x20 {
            buffer[end] = UInt8(ascii: "+")
            end += 1
          } else if allows(byte) {
            buffer[end] = byte
            end += 1
          } else {
            Self.writeEscape(of: byte, to: buffer, at: &end)
          }
        }
        return end
      }
    } ?? text
  }

  /// Returns a component of a URL in which the bytes that are not allowed are encoded, and so is a `%` that begins no
  /// escape. A valid component is returned unchanged.
  package func repair(_ text: String) -> String {
    var text = text
    return text.withUTF8 { bytes in
      let broken = bytes.indices.filter { !isValid(bytes, at: $0) }
      guard !broken.isEmpty else { return nil }
      return String(unsafeUninitializedCapacity: bytes.count + 2 * broken.count) { buffer in
        var end = 0
        for index in bytes.indices {
          if isValid(bytes, at: index) {
            buffer[end] = bytes[index]
            end += 1
          } else {
            Self.writeEscape(of: bytes[index], to: buffer, at: &end)
          }
        }
        return end
      }
    } ?? text
  }

  private func isValid(_ bytes: UnsafeBufferPointer<UInt8>, at index: Int) -> Bool {
    guard bytes[index] == UInt8(ascii: "%") else { return allows(bytes[index]) }
    return index + 2 < bytes.count && Self.isHexadecimal(bytes[index + 1])
      && Self.isHexadecimal(bytes[index + 2])
  }

  private static func isHexadecimal(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x46, 0x61...0x66: true
    default: false
    }
  }

  @inline(__always)
  private static func writeEscape(
    of byte: UInt8, to buffer: UnsafeMutableBufferPointer<UInt8>, at end: inout Int
  ) {
    buffer[end] = UInt8(ascii: "%")
    buffer[end + 1] = digit(byte >> 4)
    buffer[end + 2] = digit(byte & 0xF)
    end += 3
  }

  @inline(__always)
  private static func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
  }
}
