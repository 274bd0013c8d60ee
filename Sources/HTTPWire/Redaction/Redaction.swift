/// The rules by which secrets are left out of descriptions, logs and HAR files.
///
/// Secrets are found by the names of header fields, query items, form fields, path parameters and JSON members. One
/// list is built in: `Authorization`, cookies, `X-API-Key`, names with `token`, `secret`, `password`, `signature` and
/// similar words, and `key` and `code` in queries. User names and passwords of URLs are always secret, and so are the
/// values of cookies. A URL, a form or JSON inside a value is searched too, also if it is percent-encoded. Add the
/// names of your own service:
///
/// ```swift
/// let redaction = Redaction(additionalNames: ["X-Customer", "iban"])
/// print(redaction.url("https://example.com/pay?iban=DE02&amount=5"))
/// ```
///
/// It prints `https://example.com/pay?iban=redacted&amount=5`. A secret under another name, in a part of a path, or in
/// text of another format, is not found.
public struct Redaction: Sendable, Hashable {
  /// The built-in names alone.
  public static let standard = Redaction()

  /// The text that replaces a secret in a URL, a form or JSON.
  package static let mask = "redacted"
  /// The text that replaces a secret in a header field.
  static let fieldMask = "<redacted>"

  private var additional: Set<String>

  /// Makes rules for the built-in names and others.
  ///
  /// - Parameter additionalNames: Names of header fields, query items, form fields and JSON members. Case, hyphens and
  ///   underscores do not count.
  public init(additionalNames: Set<String> = []) {
    additional = Set(additionalNames.map { SecretNames.normalized($0.utf8) })
  }

  /// Returns these rules with more names.
  public func adding(_ names: some Sequence<String>) -> Redaction {
    var copy = self
    copy.additional.formUnion(names.map { SecretNames.normalized($0.utf8) })
    return copy
  }

  // MARK: Names

  /// Whether the value of a header field is secret.
  public func isSecret(headerField name: String) -> Bool {
    isSecret(normalized: SecretNames.normalized(name.utf8))
  }

  /// Whether the value of a query item or a form field is secret. The name may be percent-encoded.
  public func isSecret(queryItem name: String) -> Bool {
    isSecret(queryItem: Array(name.utf8)[...])
  }

  func isSecret(queryItem name: ArraySlice<UInt8>) -> Bool {
    let name = SecretNames.normalized(PercentEscapes.all(name))
    return isSecret(normalized: name) || SecretNames.isQueryName(name)
  }

  func isSecret(member name: ArraySlice<UInt8>) -> Bool {
    isSecret(normalized: SecretNames.normalized(PercentEscapes.all(name)))
  }

  private func isSecret(normalized name: String) -> Bool {
    additional.contains(name) || SecretNames.contains(name)
  }

  // MARK: Texts

  /// Returns the text of a URL without its user information, and without the secrets of its query, its fragment and its
  /// path parameters. The text need not be a valid URL.
  public func url(_ text: String) -> String {
    masked(text) { $0.url($1, .address) }
  }

  /// Returns a text without the secrets of the URLs, the forms and the JSON in it.
  public func urls(in text: String) -> String {
    masked(text) { $0.text($1, .free) }
  }

  /// Returns the text of a body without its secrets.
  ///
  /// The values of secret members of JSON and of secret fields of a form are masked, also in a text that was cut off.
  /// The form may be URL-encoded or multipart. All texts lose the secrets of the URLs and the JSON in them.
  ///
  /// - Parameters:
  ///   - text:        The body, or its beginning.
  ///   - contentType: The value of `Content-Type`, if it is known.
  public func body(_ text: String, contentType: String? = nil) -> String {
    let type = contentType?.lowercased() ?? ""
    if type.contains("x-www-form-urlencoded") { return masked(text) { $0.form($1) } }
    if type.hasPrefix("multipart/"), let contentType, let masked = multipart(text, contentType: contentType) {
      return masked
    }
    return urls(in: text)
  }

  /// Returns the beginning of a body without its secrets, and without its last word. What ends a secret may have been
  /// cut off, such as the "@" after a password.
  ///
  /// - Parameters:
  ///   - text:        The beginning of the body.
  ///   - contentType: The value of `Content-Type`, if it is known.
  ///   - longest:     The number of bytes that are removed at most, because a secret is not longer.
  package func beginning(ofBody text: String, contentType: String?, longest: Int) -> [UInt8] {
    let masked = Array(body(text, contentType: contentType).utf8)
    let first = masked.first { !SecretMasking.isBlank($0) }
    let isForm =
      contentType?.lowercased().contains("x-www-form-urlencoded") == true
      && first != UInt8(ascii: "{") && first != UInt8(ascii: "[")
    let word = masked.reversed().prefix { byte in
      isForm ? byte != UInt8(ascii: "&") : !SecretMasking.dividesWords(byte)
    }
    return masked.dropLast(min(word.count, max(0, longest)))
  }

  private func masked(_ text: String, _ mask: (SecretMasking, ArraySlice<UInt8>) -> [UInt8]) -> String {
    guard SecretMasking.canHaveSecrets(text.utf8) else { return text }
    return String(decoding: mask(SecretMasking(self), Array(text.utf8)[...]), as: UTF8.self)
  }
}

extension Redaction {
  /// Returns the value of a header field without its secrets.
  ///
  /// Shown are the scheme of `Authorization` if it is known, the names of cookies, and the attributes with which a
  /// server sets them. URLs in other fields lose their secrets.
  public func value(_ value: String, ofHeaderField name: String) -> String {
    let normalized = SecretNames.normalized(name.utf8)
    guard isSecret(headerField: name) else {
      return Self.urlFields.contains(normalized) ? location(value) : urls(in: value)
    }
    switch normalized {
    case "cookie", "cookie2": return cookies(value)
    case "setcookie", "setcookie2": return setCookie(value)
    case let name where name.hasSuffix("authorization"):
      let words = value.split(separator: " ", maxSplits: 1)
      guard words.count == 2, Self.schemes.contains(words[0].lowercased()) else { return Self.fieldMask }
      return "\(words[0]) \(Self.fieldMask)"
    default: return Self.fieldMask
    }
  }

  /// Returns header fields with masked values, in their order.
  public func fields(_ fields: some Sequence<HTTPHeader>) -> [HTTPHeader] {
    fields.map { HTTPHeader(name: $0.name, value: value($0.value, ofHeaderField: $0.name)) }
  }

  /// Returns the names of the cookies of a field; empty for one without a name.
  package static func cookieNames(_ value: String, isSet: Bool) -> [String] {
    let pairs = value.unicodeScalars.split(separator: ";")
    return (isSet ? pairs.prefix(1) : pairs[...]).map { trimmed(name(ofPair: Substring($0)) ?? "") }
  }

  /// Fields with a value that is a URL, or ends with one, and may contain spaces.
  private static let urlFields: Set = ["location", "contentlocation", "referer", "refresh"]

  /// The schemes of the registry of IANA and others in use. Another first word may be a part of the secret.
  private static let schemes: Set = [
    "basic", "bearer", "concealed", "digest", "dpop", "gnap", "hoba", "mutual", "negotiate", "ntlm", "oauth",
    "privatetoken", "scram-sha-1", "scram-sha-256", "vapid",
    "apikey", "aws", "aws4-ecdsa-p256-sha256", "aws4-hmac-sha256", "bot", "hawk", "jwt", "kerberos", "mac",
    "sharedkey", "sharedkeylite", "signature", "token",
  ]

  private func location(_ value: String) -> String {
    guard SecretMasking.canHaveSecrets(value.utf8) else { return value }
    return String(decoding: SecretMasking(self).url(Array(value.utf8)[...], .free), as: UTF8.self)
  }

  // MARK: Cookies

  private func cookies(_ value: String) -> String {
    parts(of: value).map(Self.maskedPair).joined(separator: ";")
  }

  private func setCookie(_ value: String) -> String {
    parts(of: value).enumerated().map { index, part in
      index > 0 && Self.isAttribute(part) ? String(part) : Self.maskedPair(part)
    }.joined(separator: ";")
  }

  /// Returns the parts between semicolons, by scalars, because a server may put a combining mark after any of them.
  private func parts(of value: String) -> [Substring] {
    value.unicodeScalars.split(separator: ";", omittingEmptySubsequences: false).map { Substring($0) }
  }

  /// Returns a pair without its value. A cookie without a name is a value alone (RFC 6265bis §5.6).
  private static func maskedPair(_ pair: Substring) -> String {
    guard !trimmed(pair).isEmpty else { return String(pair) }
    if let name = name(ofPair: pair) { return "\(name)=\(fieldMask)" }
    return String(pair.unicodeScalars.prefix { $0.properties.isWhitespace }) + fieldMask
  }

  /// Returns the name with the white space around it; `nil` without one.
  private static func name(ofPair pair: Substring) -> Substring? {
    guard let equals = pair.utf8.firstIndex(of: UInt8(ascii: "=")) else { return nil }
    return trimmed(pair[..<equals]).isEmpty ? nil : pair[..<equals]
  }

  private static func trimmed(_ text: Substring) -> String {
    var text = text.unicodeScalars
    while text.first?.properties.isWhitespace == true { text.removeFirst() }
    while text.last?.properties.isWhitespace == true { text.removeLast() }
    return String(text)
  }

  /// Whether a part of `Set-Cookie` is an attribute without room for a secret. Foundation joins several fields by
  /// commas, so that another cookie may follow in a value.
  private static func isAttribute(_ part: Substring) -> Bool {
    guard let name = name(ofPair: part) else {
      return ["secure", "httponly", "partitioned"].contains(trimmed(part).lowercased())
    }
    let value = part.unicodeScalars[name.endIndex...].dropFirst()
    switch trimmed(name).lowercased() {
    case "expires":
      return value.split { " ,-:".unicodeScalars.contains($0) }.allSatisfy { word in
        word.allSatisfy { ("0"..."9").contains($0) } && word.count <= 4
          || dateWords.contains { $0 == String(word).lowercased() }
      }
    case "path", "domain", "max-age", "samesite", "priority":
      return !value.contains { "=,?".unicodeScalars.contains($0) }
    default: return false
    }
  }

  private static let dateWords: Set = [
    "gmt", "utc", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", "mon",
    "tue", "wed", "thu", "fri", "sat", "sun", "monday", "tuesday", "wednesday", "thursday", "friday",
    "saturday", "sunday",
  ]
}

extension Redaction {
  /// Returns a body of a `multipart` type without the contents of its secret fields; `nil` if the type has no boundary.
  func multipart(_ text: String, contentType: String) -> String? {
    guard let boundary = MediaType(contentType)?.parameter("boundary"), !boundary.isEmpty else { return nil }
    var masking = MultipartMasking(delimiter: Array("--\(boundary)".utf8), redaction: self)
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let end = rest.firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? rest.endIndex
      masking.add(rest[..<end])
      rest = rest[end...]
    }
    return masking.finish()
  }
}

/// Masks the parts of a multipart body line by line, so that the body need not be complete.
private struct MultipartMasking {
  let delimiter: [UInt8]
  let redaction: Redaction
  private var output = ""
  private var content: [UInt8] = []
  private var isHead = false
  /// The header field that is being read, with the lines that continue it.
  private var field: [UInt8] = []
  /// The name of that field; `nil` without one.
  private var fieldName: String?
  /// Whether the name is so long that comparing it for each line would take time. Such a field is masked.
  private var hasLongName = false
  private var isSecret = false
  private var contentType: String?

  private static let longestName = 256

  init(delimiter: [UInt8], redaction: Redaction) {
    self.delimiter = delimiter
    self.redaction = redaction
  }

  mutating func add(_ line: ArraySlice<UInt8>) {
    if isDelimiter(line) {
      endPart()
      output += String(decoding: line, as: UTF8.self)
      (isHead, isSecret, contentType) = (true, false, nil)
    } else if isHead {
      addToHead(line)
    } else {
      content += line
    }
  }

  private mutating func addToHead(_ line: ArraySlice<UInt8>) {
    let isEmpty = line.allSatisfy(Self.isLineBreak)
    // A line that begins with white space continues the field before (RFC 5322 §2.2.3).
    if isEmpty || line.first.map(SecretMasking.isBlank) != true {
      endField()
      let colon = line.firstIndex(of: UInt8(ascii: ":"))
      hasLongName = colon.map { $0 - line.startIndex > Self.longestName } ?? false
      fieldName = colon.map { String(decoding: line[..<$0].prefix(Self.longestName), as: UTF8.self) }
    }
    output += maskedField(String(decoding: line, as: UTF8.self))
    field += line.dropLast(line.reversed().prefix(while: Self.isLineBreak).count)
    if isEmpty { isHead = false }
  }

  /// Reads the field whose lines are complete.
  private mutating func endField() {
    if !field.isEmpty { readField(String(decoding: field, as: UTF8.self)) }
    field = []
  }

  /// Appends the content of a part.
  private mutating func endPart() {
    output += maskedContent
    content = []
    field = []
  }

  /// Returns a line of the head of a part without the secrets of its field.
  private func maskedField(_ line: String) -> String {
    let end = line.utf8.reversed().prefix(while: Self.isLineBreak).count
    let text = line.utf8.dropLast(end)
    let (isContinuation, lineEnd) = (text.first.map(SecretMasking.isBlank) == true, line.utf8.suffix(end))
    let colon = text.firstIndex(of: UInt8(ascii: ":"))
    let start = isContinuation ? text.startIndex : colon.map { text.index(after: $0) }
    guard let start, let name = fieldName else { return redaction.urls(in: line) }
    let value = Substring(text[start...])
    let blank = Substring(value.unicodeScalars.prefix { $0 == " " || $0 == "\t" })
    let plain = String(value[blank.endIndex...])
    let masked = hasLongName ? Redaction.fieldMask : redaction.value(plain, ofHeaderField: name)
    return "\(Substring(text[..<start]))\(blank)\(masked)\(String(Substring(lineEnd)))"
  }

  /// Returns the text, which is complete.
  mutating func finish() -> String {
    endPart()
    return output
  }

  /// The content of a part without its secrets.
  private var maskedContent: String {
    guard !content.isEmpty else { return "" }
    guard isSecret else {
      return redaction.body(String(decoding: content, as: UTF8.self), contentType: contentType)
    }
    let end = content.reversed().prefix(while: Self.isLineBreak).reversed()
    return Redaction.mask + String(decoding: end, as: UTF8.self)
  }

  /// Whether a line begins a part or ends the last one (RFC 2046 §5.1.1). A longer word is content.
  private func isDelimiter(_ line: ArraySlice<UInt8>) -> Bool {
    guard line.starts(with: delimiter) else { return false }
    let rest = line.dropFirst(delimiter.count)
    let padding = rest.starts(with: Array("--".utf8)) ? rest.dropFirst(2) : rest
    return padding.allSatisfy { Self.isLineBreak($0) || $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
  }

  private mutating func readField(_ line: String) {
    let parts = line.unicodeScalars.split(separator: ":", maxSplits: 1)
    guard parts.count == 2 else { return }
    let value = Substring(parts[1].drop(while: \.properties.isWhitespace))
    switch String(parts[0]).lowercased() {
    case "content-disposition":
      let semicolon = value.utf8.firstIndex(of: UInt8(ascii: ";"))
      let name = semicolon.flatMap { MediaType.parameter("name", in: value[$0...]) }
      isSecret = name.map { redaction.isSecret(queryItem: $0) } ?? false
    case "content-type":
      // A part is not divided again, because nothing would limit the depth.
      contentType = value.lowercased().hasPrefix("multipart/") ? nil : String(value)
    default: break
    }
  }

  private static func isLineBreak(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "\r") || byte == UInt8(ascii: "\n")
  }
}
