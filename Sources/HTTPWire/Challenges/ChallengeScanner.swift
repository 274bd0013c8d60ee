/// Reads challenges and parameters (RFC 9110 §11.2, §11.6.1) from left to right, each byte a bounded number of
/// times. Whatever is no grammar is stepped over.
struct ChallengeScanner {
  private let bytes: [UInt8]
  private var position = 0

  init(_ text: String) {
    bytes = Array(text.utf8)
  }

  /// Reads the next scheme with all that belongs to it; `nil` at the end.
  mutating func nextChallenge() -> Challenge? {
    while true {
      skipSeparators()
      guard position < bytes.count else { return nil }
      // A parameter or bytes without a scheme before them.
      guard let name = word() else {
        skipOne()
        continue
      }
      if value() != nil { continue }
      return challenge(name)
    }
  }

  /// Reads parameters alone, as in `Authentication-Info` (RFC 7615 §3).
  mutating func parameters() -> [Challenge.Parameter] {
    var parameters: [Challenge.Parameter] = []
    while parameters.count < Self.mostParameters {
      skipSeparators()
      guard position < bytes.count else { break }
      guard let name = word() else {
        skipOne()
        continue
      }
      if let value = value() { parameters.append(.init(name: name.lowercased(), value: value)) }
    }
    return parameters
  }

  /// More than any scheme has.
  private static let mostParameters = 64

  private mutating func challenge(_ scheme: String) -> Challenge {
    let token = token68()
    var parameters: [Challenge.Parameter] = []
    while true {
      let start = position
      skipSeparators()
      guard let name = word() else {
        guard position < bytes.count else { break }
        skipOne()
        continue
      }
      guard let value = value() else {
        // The next scheme.
        position = start
        break
      }
      if parameters.count < Self.mostParameters {
        parameters.append(.init(name: name.lowercased(), value: value))
      }
    }
    return Challenge(scheme: scheme, token: token, parameters: parameters)
  }

  /// Reads the token68 behind a scheme, which is neither a parameter nor another scheme: base64 characters up to a
  /// comma.
  private mutating func token68() -> String? {
    var start = position
    while start < bytes.count, Self.isSpace(bytes[start]) { start += 1 }
    guard start > position else { return nil }
    var end = start
    while end < bytes.count, Self.isToken68(bytes[end]) { end += 1 }
    guard end > start else { return nil }
    while end < bytes.count, bytes[end] == UInt8(ascii: "=") { end += 1 }
    var rest = end
    while rest < bytes.count, Self.isSpace(bytes[rest]) { rest += 1 }
    guard rest == bytes.count || bytes[rest] == UInt8(ascii: ",") else { return nil }
    position = rest
    return String(decoding: bytes[start..<end], as: UTF8.self)
  }

  /// Reads a token (RFC 9110 §5.6.2); `nil` when there is none here.
  private mutating func word() -> String? {
    let start = position
    while position < bytes.count, HeaderFieldRules.isTokenByte(bytes[position]) { position += 1 }
    return position > start ? String(decoding: bytes[start..<position], as: UTF8.self) : nil
  }

  /// Reads the value behind an equals sign, which may have spaces around it; `nil` without such a sign.
  private mutating func value() -> String? {
    var next = position
    while next < bytes.count, Self.isSpace(bytes[next]) { next += 1 }
    guard next < bytes.count, bytes[next] == UInt8(ascii: "=") else { return nil }
    next += 1
    while next < bytes.count, Self.isSpace(bytes[next]) { next += 1 }
    position = next
    if next < bytes.count, bytes[next] == UInt8(ascii: "\"") { return quoted() }
    // Servers omit quotation marks, so the value ends at a comma or a space.
    while position < bytes.count, bytes[position] != UInt8(ascii: ","), !Self.isSpace(bytes[position]) {
      position += 1
    }
    return String(decoding: bytes[next..<position], as: UTF8.self)
  }

  /// Reads a quoted string (RFC 9110 §5.6.4); one without an end goes to the end of the field.
  private mutating func quoted() -> String {
    var content: [UInt8] = []
    position += 1
    while position < bytes.count {
      var byte = bytes[position]
      position += 1
      if byte == UInt8(ascii: "\"") { break }
      if byte == UInt8(ascii: "\\"), position < bytes.count {
        byte = bytes[position]
        position += 1
      }
      content.append(byte)
    }
    return String(decoding: content, as: UTF8.self)
  }

  /// Skips an invalid byte, or a whole quoted string.
  private mutating func skipOne() {
    guard bytes[position] == UInt8(ascii: "\"") else {
      position += 1
      return
    }
    _ = quoted()
  }

  private mutating func skipSeparators() {
    while position < bytes.count, Self.isSpace(bytes[position]) || bytes[position] == UInt8(ascii: ",") {
      position += 1
    }
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

  private static func isToken68(_ byte: UInt8) -> Bool {
    isAlphanumeric(byte) || "-._~+/".utf8.contains(byte)
  }

  private static func isAlphanumeric(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    default: false
    }
  }
}
