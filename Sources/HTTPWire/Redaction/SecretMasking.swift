/// Masks the secrets of a text. It works on bytes, so that combining characters cannot hide a separator.
///
/// Its time is linear in the length of the text, and its depth is limited.
struct SecretMasking {
  typealias Bytes = ArraySlice<UInt8>

  /// The kind of a text, which decides how names and user information are recognized.
  enum Context {
    /// The text of a URL, which may lack a scheme: a text before "@" is a user.
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
  func url(_ bytes: Bytes, _ context: Context) -> [UInt8] {
    items(userInformation(members(bytes)[...], context)[...], isQuery: context == .query)
  }

  /// Masks the fields of a form. A text of JSON that is called a form is masked as JSON.
  func form(_ bytes: Bytes) -> [UInt8] {
    let first = bytes.first { !Self.isBlank($0) }
    if first == UInt8(ascii: "{") || first == UInt8(ascii: "[") { return text(bytes, .query) }
    return url(bytes, .query)
  }

  /// Masks the URLs, the forms and the members of JSON in a text.
  func text(_ bytes: Bytes, _ context: Context) -> [UInt8] {
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
        output += self.word(word, context)
        rest = rest[word.endIndex...]
      }
    }
    return output
  }

  private func word(_ word: Bytes, _ context: Context) -> [UInt8] {
    guard Self.canHaveSecrets(word) else { return Array(word) }
    let isAddress = context == .free && word.contains(UInt8(ascii: "?"))
    return items(userInformation(word, isAddress ? .address : context)[...], isQuery: context == .query)
  }

  static func isBlank(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
  }

  static func dividesWords(_ byte: UInt8) -> Bool {
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

  /// Whether a name is secret, as a whole or after the last character that is not part of a name.
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

  private func encodedText(_ bytes: Bytes, _ context: Context) -> [UInt8] {
    guard let decoded = PercentEscapes.once(bytes) else { return Array(bytes) }
    guard depth > 0 else { return Self.mask }
    let masked = inner.text(decoded[...], context)
    return masked == decoded ? Array(bytes) : PercentEscapes.encoded(masked)
  }
}

extension SecretMasking {
  /// Masks the user names and the passwords of all authorities, because many services take a token as the user name.
  ///
  /// The last "@" of an authority ends them. A password may also hold a slash that should have been encoded: the text
  /// after the colon is then not a port.
  func userInformation(_ bytes: Bytes, _ context: Context) -> [UInt8] {
    guard let lastAt = bytes.lastIndex(of: UInt8(ascii: "@")) else { return Array(bytes) }
    var output: [UInt8] = []
    output.reserveCapacity(bytes.count)
    var rest = bytes
    var isQuery = context == .query
    if let start = Self.firstAuthority(rest, context) {
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
      // Browsers accept one slash after a scheme, and more than two.
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
  private static func firstAuthority(_ bytes: Bytes, _ context: Context) -> Int? {
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
    return isColon || context == .address ? bytes.startIndex : nil
  }

  /// Returns the position of the "@" after the user information of an authority; `nil` without one.
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

/// The only list of names that have secret values. Descriptions, logs, HAR files and `af` read it through
/// ``Redaction``.
///
/// Names are compared without case and punctuation, so that `X-API-Key`, `x_api_key` and `xApiKey` are one name.
enum SecretNames {
  /// Parts of names of header fields, query items, form fields and JSON members.
  private static let parts: [[UInt8]] = [
    "accesskey", "accountkey", "apikey", "authkey", "encryptionkey", "functionskey", "masterkey",
    "privatekey", "sessionkey",
    "sharedkey", "signingkey", "subscriptionkey", "assertion", "authorization", "cookie", "credential",
    "csrf",
    "jsessionid", "jwt", "passcode", "passkey", "passphrase", "passwd", "password", "pwd", "secret", "sessid",
    "sessionid",
    "signature", "xsrf",
  ].map { Array($0.utf8) }

  private static let token = Array("token".utf8)

  /// Whole names.
  private static let names: Set<String> = [
    "auth", "authenticationinfo", "bearer", "codeverifier", "hmac", "oauthverifier", "otp", "pass", "pin",
    "proxyauthenticationinfo",
    "samlresponse", "session", "sid", "sig", "totp", "xauth", "xsession",
  ]

  /// Whole names of query items and form fields that have another meaning elsewhere.
  private static let queryNames: Set<String> = ["code", "key", "pw", "ticket"]

  /// Names that contain a part of the list, and are not secret.
  private static let exceptions: Set<String> = ["accesscontrolallowcredentials", "tokentype"]

  /// Returns the form in which names are compared.
  static func normalized(_ name: some Sequence<UInt8>) -> String {
    String(decoding: name.compactMap(normalized), as: UTF8.self)
  }

  private static func normalized(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x41...0x5A: byte + 0x20
    case 0x61...0x7A, 0x30...0x39, 0x80...: byte
    default: nil
    }
  }

  /// Whether a normalized name denotes a secret anywhere.
  static func contains(_ name: String) -> Bool {
    // No name of the lists is shorter.
    guard name.utf8.count > 2 else { return false }
    if names.contains(name) { return true }
    if exceptions.contains(name) { return false }
    let bytes = Array(name.utf8)
    return parts.contains { position(of: $0, in: bytes[...]) != nil } || hasToken(bytes)
  }

  /// Whether a normalized name denotes a secret only in a query or a form.
  static func isQueryName(_ name: String) -> Bool { queryNames.contains(name) }

  /// Whether `token` occurs. `tokens` is a number more often than a secret, as in `X-RateLimit-Remaining-Tokens`.
  private static func hasToken(_ name: [UInt8]) -> Bool {
    var rest = name[...]
    while let start = position(of: token, in: rest) {
      rest = rest[(start + token.count)...]
      if rest.first != UInt8(ascii: "s") { return true }
    }
    return false
  }

  private static func position(of part: [UInt8], in name: ArraySlice<UInt8>) -> Int? {
    guard name.count >= part.count else { return nil }
    return (name.startIndex...(name.endIndex - part.count)).first { name[$0...].starts(with: part) }
  }
}

/// The percent-encoding of text that need not be valid: what is not an escape stays.
enum PercentEscapes {
  /// The levels of encoding that are followed.
  static let depth = 6

  /// Returns the bytes without one level of escapes; `nil` without any.
  static func once(_ bytes: ArraySlice<UInt8>) -> [UInt8]? {
    guard bytes.contains(UInt8(ascii: "%")) else { return nil }
    var decoded: [UInt8] = []
    decoded.reserveCapacity(bytes.count)
    var index = bytes.startIndex
    var isChanged = false
    while index < bytes.endIndex {
      if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.endIndex,
        let high = digit(bytes[index + 1]), let low = digit(bytes[index + 2])
      {
        decoded.append(high << 4 | low)
        index += 3
        isChanged = true
      } else {
        decoded.append(bytes[index])
        index += 1
      }
    }
    return isChanged ? decoded : nil
  }

  /// Returns the bytes without all levels of escapes, up to ``depth``.
  static func all(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var bytes = bytes
    for _ in 0..<depth {
      guard let decoded = once(bytes) else { break }
      bytes = decoded[...]
    }
    return bytes
  }

  /// Returns the bytes with escapes for all but the unreserved characters of RFC 3986 §2.3.
  static func encoded(_ bytes: [UInt8]) -> [UInt8] {
    let digits = Array("0123456789ABCDEF".utf8)
    return bytes.flatMap { byte -> [UInt8] in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "~"), UInt8(ascii: "+"):
        [byte]
      default: [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 0xF)]]
      }
    }
  }

  static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
