/// Masks the secrets of a text. It works on bytes, so that no combining character hides a separator.
///
/// Its time is linear in the length of the text, and its depth is limited.
struct SecretMasking {
  typealias Bytes = ArraySlice<UInt8>

  /// The kind of a text, which decides how names and user information are recognized.
  enum Place {
    /// The text of a URL, which may lack a scheme: a text in front of "@" is a user.
    case address
    /// Any text: a user without a scheme has a password, as addresses of mail have none.
    case free
    /// A query, a form, or a value of one.
    case query
  }

  static let mask = Array(Redaction.mask.utf8)

  let redaction: Redaction
  /// The levels of encoding that are followed further.
  let depth: Int

  init(_ redaction: Redaction, depth: Int = PercentEscapes.depth) {
    self.redaction = redaction
    self.depth = depth
  }

  var inner: SecretMasking { SecretMasking(redaction, depth: depth - 1) }

  /// Whether a text has one of the characters that stand beside a secret.
  static func canHaveSecrets(_ bytes: some Sequence<UInt8>) -> Bool {
    bytes.contains { byte in
      switch byte {
      case UInt8(ascii: "="), UInt8(ascii: "@"), UInt8(ascii: "%"), UInt8(ascii: "\""), UInt8(ascii: "'"),
        UInt8(ascii: "\\"):
        true
      default: false
      }
    }
  }

  // MARK: Texts

  /// Masks a URL as a whole.
  func url(_ bytes: Bytes, _ place: Place) -> [UInt8] {
    items(userInformation(members(bytes)[...], place)[...], isQuery: place == .query)
  }

  /// Masks the fields of a form. A text of JSON that is called a form is masked as JSON.
  func form(_ bytes: Bytes) -> [UInt8] {
    let first = bytes.first { !Self.isBlank($0) }
    if first == UInt8(ascii: "{") || first == UInt8(ascii: "[") { return text(bytes, .query) }
    return url(bytes, .query)
  }

  /// Masks the URLs, the forms and the members of JSON in a text.
  func text(_ bytes: Bytes, _ place: Place) -> [UInt8] {
    let bytes = members(bytes)
    var output: [UInt8] = []
    output.reserveCapacity(bytes.count)
    var rest = bytes[...]
    while let first = rest.first {
      if Self.dividesWords(first) {
        output.append(first)
        rest = rest.dropFirst()
      } else {
        let word = rest.prefix { !Self.dividesWords($0) }
        output += self.word(word, place)
        rest = rest[word.endIndex...]
      }
    }
    return output
  }

  private func word(_ word: Bytes, _ place: Place) -> [UInt8] {
    guard Self.canHaveSecrets(word) else { return Array(word) }
    let isAddress = place == .free && word.contains(UInt8(ascii: "?"))
    return items(userInformation(word, isAddress ? .address : place)[...], isQuery: place == .query)
  }

  static func isBlank(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
  }

  private static func dividesWords(_ byte: UInt8) -> Bool {
    isBlank(byte) || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "<") || byte == UInt8(ascii: ">")
  }

  // MARK: Items

  /// Masks the items of queries, fragments and forms, and the parameters of paths. OAuth 2.0 sends tokens in a fragment
  /// (RFC 6749 §4.2.2).
  private func items(_ bytes: Bytes, isQuery: Bool) -> [UInt8] {
    var isQuery = isQuery
    var output: [UInt8] = []
    output.reserveCapacity(bytes.count)
    var rest = bytes
    while true {
      let item = rest.prefix { !Self.dividesItems($0) }
      rest = rest[item.endIndex...]
      if let start = secretStart(item, isQuery: isQuery) {
        output += encoded(item[..<start.name], isQuery: isQuery) + item[start.name..<start.value] + Self.mask
        // A question mark may be a part of a value.
        if isQuery { rest = rest.drop { !Self.dividesItems($0) || $0 == UInt8(ascii: "?") } }
      } else {
        output += self.item(item, isQuery: isQuery)
      }
      guard let divider = rest.popFirst() else { return output }
      output.append(divider)
      if divider == UInt8(ascii: "?") || divider == UInt8(ascii: "#") { isQuery = true }
    }
  }

  private static func dividesItems(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "&"), UInt8(ascii: ";"), UInt8(ascii: "?"), UInt8(ascii: "#"): true
    default: false
    }
  }

  /// Returns the start of the first secret name of an item and the start of its value; `nil` without one. A value may
  /// have names too, as in `a=1,token=2`.
  private func secretStart(_ item: Bytes, isQuery: Bool) -> (name: Int, value: Int)? {
    guard let first = item.firstIndex(of: UInt8(ascii: "=")) else { return nil }
    // Base64 ends with signs that divide nothing.
    let end = (item.lastIndex { $0 != UInt8(ascii: "=") } ?? first) + 1
    var start = item.startIndex
    var next: Int? = first
    while let equals = next, equals == first || equals < end {
      if isSecret(item[start..<equals], isQuery: isQuery) { return (start, equals + 1) }
      start = equals + 1
      next = item[start...].firstIndex(of: UInt8(ascii: "="))
    }
    return nil
  }

  /// Masks the secrets inside the name and the value of an item.
  private func item(_ item: Bytes, isQuery: Bool) -> [UInt8] {
    guard let first = item.firstIndex(of: UInt8(ascii: "=")) else { return encoded(item, isQuery: isQuery) }
    let value = userInformation(item[(first + 1)...], isQuery ? .query : .free)
    return encoded(item[..<first], isQuery: isQuery) + [item[first]] + encoded(value[...], isQuery: isQuery)
  }

  /// Whether a name is secret, as a whole or behind the last character that is not part of a name.
  private func isSecret(_ text: Bytes, isQuery: Bool) -> Bool {
    let isSecret = { (name: Bytes) in
      isQuery ? redaction.isSecret(queryItem: name) : redaction.isSecret(member: name)
    }
    let last = text.lastIndex(where: Self.endsName).map { text[($0 + 1)...] }
    return isQuery && isSecret(text) || isSecret(last ?? text)
  }

  private static func endsName(_ byte: UInt8) -> Bool {
    isBlank(byte) || "/\\,|({'\"<>".utf8.contains(byte)
  }

  /// Masks the secrets of a percent-encoded text, which may be a URL, a form or JSON. Each segment of a path is a text.
  private func encoded(_ bytes: Bytes, isQuery: Bool) -> [UInt8] {
    guard bytes.contains(UInt8(ascii: "%")) else { return Array(bytes) }
    guard !isQuery else { return encodedText(bytes, .query) }
    let segments = bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    return Array(segments.map { encodedText($0, .free) }.joined(separator: [UInt8(ascii: "/")]))
  }

  private func encodedText(_ bytes: Bytes, _ place: Place) -> [UInt8] {
    guard let decoded = PercentEscapes.once(bytes) else { return Array(bytes) }
    guard depth > 0 else { return Self.mask }
    let masked = inner.text(decoded[...], place)
    return masked == decoded ? Array(bytes) : PercentEscapes.encoded(masked)
  }
}
