/// A parsed `Set-Cookie` field (RFC 6265bis §5.6). ``CookieRules`` decides whether the cookie is stored.
package struct SetCookie: Sendable, Equatable {
  package var name: String
  package var value: String
  /// The time at which the cookie expires, by `Expires` alone.
  package var expires: HTTPDate?
  /// For how many seconds it lives; wins over ``expires``. Zero and less is over at once.
  package var maxAge: Int64?
  /// The domain without a dot in front, in lower case; `nil` without a `Domain` attribute. May be empty.
  package var domain: String?
  /// The path of a valid `Path` attribute; an empty text for an invalid one, which means the default.
  package var path: String?
  package var isSecure = false
  package var isHTTPOnly = false
  package var sameSite: Cookie.SameSite?

  /// Takes the value of a field apart.
  ///
  /// - Throws: Why nothing can be made of it.
  package init(_ field: some Collection<UInt8>) throws(CookieRefusal) {
    let bytes = Array(field)
    if bytes.contains(where: { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F }) { throw .controlCharacter }
    let end = bytes.firstIndex(of: UInt8(ascii: ";")) ?? bytes.endIndex
    let pair = bytes[..<end]
    var nameBytes = bytes[..<0]
    var valueBytes = Self.trimmed(pair)
    if let sign = pair.firstIndex(of: UInt8(ascii: "=")) {
      nameBytes = Self.trimmed(pair[..<sign])
      valueBytes = Self.trimmed(pair[(sign + 1)...])
    }
    guard !nameBytes.isEmpty || !valueBytes.isEmpty else { throw .empty }
    guard nameBytes.count + valueBytes.count <= Self.pairLimit else { throw .tooLong }
    guard let name = String(validating: nameBytes, as: UTF8.self),
      let value = String(validating: valueBytes, as: UTF8.self)
    else { throw .notText }
    self.name = name
    self.value = value
    for attribute in bytes[end...].split(separator: UInt8(ascii: ";")) { take(attribute) }
  }

  /// The most bytes that name and value may have together (RFC 6265bis §5.6).
  package static let pairLimit = 4096
  /// The most bytes that the value of an attribute may have (RFC 6265bis §5.6).
  package static let attributeLimit = 1024

  /// Reads an attribute. Of attributes that come twice the last one counts.
  private mutating func take(_ attribute: ArraySlice<UInt8>) {
    let sign = attribute.firstIndex(of: UInt8(ascii: "="))
    let name = Self.trimmed(attribute[..<(sign ?? attribute.endIndex)]).map { FieldName.lowercased($0) }
    let value = Self.trimmed(sign.map { attribute[($0 + 1)...] } ?? [])
    guard value.count <= Self.attributeLimit else { return }
    switch String(decoding: name, as: UTF8.self) {
    case "expires": expires = CookieDate.parse(value) ?? expires
    case "max-age": maxAge = Self.seconds(value) ?? maxAge
    case "domain":
      let text = value.first == UInt8(ascii: ".") ? value.dropFirst() : value
      // Bytes that are no text are no domain either, and are refused as such.
      domain = String(decoding: text.map { FieldName.lowercased($0) }, as: UTF8.self)
    case "path":
      let isPath = value.first == UInt8(ascii: "/")
      path = isPath ? String(validating: value, as: UTF8.self) ?? "" : ""
    case "secure": isSecure = true
    case "httponly": isHTTPOnly = true
    case "samesite": sameSite = Self.sameSite(value)
    default: break
    }
  }

  /// Returns the seconds of `Max-Age` (RFC 6265bis §5.6.2), clamped to the range of the type.
  private static func seconds(_ value: ArraySlice<UInt8>) -> Int64? {
    let isNegative = value.first == UInt8(ascii: "-")
    let digits = isNegative ? value.dropFirst() : value
    guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    if isNegative { return 0 }
    return digits.reduce(Int64(0)) { $0 > 1 << 40 ? $0 : $0 * 10 + Int64($1 - 0x30) }
  }

  private static func sameSite(_ value: ArraySlice<UInt8>) -> Cookie.SameSite? {
    switch String(decoding: value.map { FieldName.lowercased($0) }, as: UTF8.self) {
    case "strict": .strict
    case "lax": .lax
    case "none": Cookie.SameSite.none
    default: nil
    }
  }

  private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
    guard let first = bytes.firstIndex(where: { !isSpace($0) }),
      let last = bytes.lastIndex(where: { !isSpace($0) })
    else { return [] }
    return bytes[first...last]
  }
}
