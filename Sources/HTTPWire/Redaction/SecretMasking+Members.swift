extension SecretMasking {
  /// Masks the values of secret members of JSON, and quoted values after a secret name and "=". The text need not be
  /// complete or valid, and may be of another format.
  func members(_ bytes: Bytes) -> [UInt8] {
    guard bytes.contains(where: Self.isQuote) else { return Array(bytes) }
    var scanner = MemberScanner(bytes: Array(bytes), masking: self)
    return scanner.masked()
  }

  static func isQuote(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") }
}

/// Replaces the values of members in a text that has quotation marks.
private struct MemberScanner {
  let bytes: [UInt8]
  let masking: SecretMasking
  private var index = 0
  private var output: [UInt8] = []
  /// The position of the mark that ended the last text with escapes.
  private var lastEnd: Int?

  init(bytes: [UInt8], masking: SecretMasking) {
    self.bytes = bytes
    self.masking = masking
    output.reserveCapacity(bytes.count)
  }

  mutating func masked() -> [UInt8] {
    while index < bytes.count {
      // An escaped apostrophe begins nothing.
      let isEscaped = bytes[index] == UInt8(ascii: "'") && output.last == UInt8(ascii: "\\")
      guard SecretMasking.isQuote(bytes[index]), !isEscaped else {
        output.append(bytes[index])
        index += 1
        continue
      }
      // A text that ends with "=" is no name before a value.
      if lastEnd != index, maskAttribute() { continue }
      if maskMember() || maskEscapedText() { continue }
      // Only the quotation mark is consumed, because it may end a text rather than begin one.
      output.append(bytes[index])
      index += 1
    }
    return output
  }

  /// Masks the text after `name=`.
  private mutating func maskAttribute() -> Bool {
    guard output.last == UInt8(ascii: "=") else { return false }
    let name = output.dropLast().reversed().prefix { !Self.endsName($0) }.reversed()
    guard masking.redaction.isSecret(member: Array(name)[...]) else { return false }
    output += [bytes[index]] + SecretMasking.mask
    // The mark at the end may begin a text rather than end one, too.
    index = string(at: index).content.upperBound
    return true
  }

  private static func endsName(_ byte: UInt8) -> Bool {
    SecretMasking.isBlank(byte) || SecretMasking.isQuote(byte) || "=&;,?#<>({[".utf8.contains(byte)
  }

  /// Masks the value of a member with a secret name.
  private mutating func maskMember() -> Bool {
    let (content, end) = string(at: index)
    guard content.upperBound < end, let value = valueStart(after: end) else { return false }
    let name = JSONEscapes.removed(from: bytes[content]) ?? Array(bytes[content])
    guard masking.redaction.isSecret(member: name[...]) else { return false }
    output += bytes[index..<value]
    output += [UInt8(ascii: "\"")] + SecretMasking.mask + [UInt8(ascii: "\"")]
    index = valueEnd(from: value)
    return true
  }

  /// Masks the secrets in a string with escapes, which may be JSON or a URL with escaped slashes.
  private mutating func maskEscapedText() -> Bool {
    guard bytes[index] == UInt8(ascii: "\"") else { return false }
    let content = string(at: index).content
    guard let plain = JSONEscapes.removed(from: bytes[content]) else { return false }
    output.append(bytes[index])
    if masking.depth > 0 {
      let masked = masking.inner.text(plain[...], .free)
      output += masked == plain ? Array(bytes[content]) : JSONEscapes.added(to: masked)
    } else {
      output += SecretMasking.mask
    }
    index = content.upperBound
    lastEnd = index
    return true
  }

  /// Returns the range of the text between quotation marks, and the position after them.
  private func string(at start: Int) -> (content: Range<Int>, end: Int) {
    var index = start + 1
    while index < bytes.count, bytes[index] != bytes[start] {
      index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
    }
    index = min(index, bytes.count)
    return (start + 1..<index, min(index + 1, bytes.count))
  }

  /// Returns the start of the value after a name; `nil` if the text was not the name of a member.
  private func valueStart(after end: Int) -> Int? {
    var index = end
    while index < bytes.count, SecretMasking.isBlank(bytes[index]) { index += 1 }
    guard index < bytes.count, bytes[index] == UInt8(ascii: ":") else { return nil }
    index += 1
    while index < bytes.count, SecretMasking.isBlank(bytes[index]) { index += 1 }
    return index
  }

  /// Returns the end of a value: the comma, bracket or line break after it.
  private func valueEnd(from start: Int) -> Int {
    var index = start
    var depth = 0
    let mark = start < bytes.count && SecretMasking.isQuote(bytes[start]) ? bytes[start] : UInt8(ascii: "\"")
    while index < bytes.count {
      switch bytes[index] {
      case mark:
        index = string(at: index).end
        continue
      case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        if depth == 0 { return index }
        depth -= 1
      case UInt8(ascii: ","), 0x0A, 0x0D:
        if depth == 0 { return index }
      default: break
      }
      index += 1
    }
    return index
  }
}

/// The escapes of strings of JSON (RFC 8259 §7).
enum JSONEscapes {
  /// Returns the text without escapes; `nil` without any. What is not an escape stays.
  static func removed(from bytes: ArraySlice<UInt8>) -> [UInt8]? {
    guard bytes.contains(UInt8(ascii: "\\")) else { return nil }
    var output: [UInt8] = []
    output.reserveCapacity(bytes.count)
    var rest = bytes
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "\\"), let kind = rest.first else {
        output.append(byte)
        continue
      }
      if let plain = plain(kind) {
        output.append(plain)
        rest = rest.dropFirst()
      } else if kind == UInt8(ascii: "u"), let (scalar, length) = scalar(rest) {
        output += Array(String(scalar).utf8)
        rest = rest.dropFirst(length)
      } else {
        output.append(byte)
      }
    }
    return output
  }

  /// Returns the text with the escapes that a string needs.
  static func added(to bytes: [UInt8]) -> [UInt8] {
    bytes.flatMap { byte -> [UInt8] in
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): [UInt8(ascii: "\\"), byte]
      case 0x0A: Array("\\n".utf8)
      case 0x0D: Array("\\r".utf8)
      case 0x09: Array("\\t".utf8)
      case ..<0x20:
        Array("\\u00".utf8) + [UInt8(ascii: "0") + byte >> 4] + Array(String(byte & 0xF, radix: 16).utf8)
      default: [byte]
      }
    }
  }

  private static func plain(_ kind: UInt8) -> UInt8? {
    switch kind {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "'"): kind
    case UInt8(ascii: "b"): 0x08
    case UInt8(ascii: "f"): 0x0C
    case UInt8(ascii: "n"): 0x0A
    case UInt8(ascii: "r"): 0x0D
    case UInt8(ascii: "t"): 0x09
    default: nil
    }
  }

  /// Reads `u` and four digits, and the second half of a surrogate pair. Returns the number of bytes too.
  private static func scalar(_ bytes: ArraySlice<UInt8>) -> (Unicode.Scalar, Int)? {
    guard let first = unit(bytes) else { return nil }
    if let scalar = Unicode.Scalar(first) { return (scalar, 5) }
    let rest = bytes.dropFirst(5)
    guard UTF16.isLeadSurrogate(first), rest.first == UInt8(ascii: "\\"), let second = unit(rest.dropFirst()),
      UTF16.isTrailSurrogate(second)
    else { return nil }
    let value = 0x10000 + (UInt32(first) & 0x3FF) << 10 + UInt32(second) & 0x3FF
    return Unicode.Scalar(value).map { ($0, 11) }
  }

  private static func unit(_ bytes: ArraySlice<UInt8>) -> UInt16? {
    guard bytes.count >= 5, bytes.first == UInt8(ascii: "u") else { return nil }
    var value: UInt16 = 0
    for byte in bytes.dropFirst().prefix(4) {
      guard let digit = PercentEscapes.digit(byte) else { return nil }
      value = value << 4 | UInt16(digit)
    }
    return value
  }
}
