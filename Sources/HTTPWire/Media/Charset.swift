/// The character sets that text is decoded from when a response names them (RFC 9110 §8.3.2).
package enum Charset: Sendable, CaseIterable {
  case utf8
  case isoLatin1
  /// With a byte order mark, or big-endian without one (RFC 2781 §4.3).
  case utf16
  case utf16BigEndian
  case utf16LittleEndian
  case utf32
  case utf32BigEndian
  case utf32LittleEndian

  /// The set of this registered name, without regard to case; `nil` for any other.
  package init?(name: String) {
    switch name.lowercased() {
    case "utf-8": self = .utf8
    case "iso-8859-1": self = .isoLatin1
    case "unicode-1-1", "iso-10646-ucs-2", "utf-16": self = .utf16
    case "utf-16be": self = .utf16BigEndian
    case "utf-16le": self = .utf16LittleEndian
    case "utf-32": self = .utf32
    case "utf-32be": self = .utf32BigEndian
    case "utf-32le": self = .utf32LittleEndian
    default: return nil
    }
  }
}
