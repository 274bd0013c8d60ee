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
    let pairs = value.split(separator: ";")
    return (isSet ? pairs.prefix(1) : pairs[...]).map { trimmed(name(ofPair: $0) ?? "") }
  }

  /// Fields whose whole value is a URL, or ends with one, and may contain spaces.
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
    value.split(separator: ";", omittingEmptySubsequences: false).map(Self.maskedPair)
      .joined(separator: ";")
  }

  private func setCookie(_ value: String) -> String {
    let parts = value.split(separator: ";", omittingEmptySubsequences: false)
    return parts.enumerated().map { index, part in
      index > 0 && Self.isAttribute(part) ? String(part) : Self.maskedPair(part)
    }.joined(separator: ";")
  }

  /// Returns a pair without its value. A cookie without a name is a value alone (RFC 6265bis §5.6).
  private static func maskedPair(_ pair: Substring) -> String {
    guard !trimmed(pair).isEmpty else { return String(pair) }
    if let name = name(ofPair: pair) { return "\(name)=\(fieldMask)" }
    return pair.prefix { $0.isWhitespace } + fieldMask
  }

  /// Returns the name with the white space around it; `nil` without one.
  private static func name(ofPair pair: Substring) -> Substring? {
    guard let equals = pair.firstIndex(of: "=") else { return nil }
    return trimmed(pair[..<equals]).isEmpty ? nil : pair[..<equals]
  }

  private static func trimmed(_ text: Substring) -> String {
    var text = text
    while text.first?.isWhitespace == true { text.removeFirst() }
    while text.last?.isWhitespace == true { text.removeLast() }
    return String(text)
  }

  /// Whether a part of `Set-Cookie` is an attribute without room for a secret. Foundation joins several fields by
  /// commas, so that another cookie may follow in a value.
  private static func isAttribute(_ part: Substring) -> Bool {
    guard let name = name(ofPair: part) else {
      return ["secure", "httponly", "partitioned"].contains(trimmed(part).lowercased())
    }
    let value = part[part.index(after: name.endIndex)...]
    switch trimmed(name).lowercased() {
    case "expires":
      return value.split { " ,-:".contains($0) }.allSatisfy { word in
        word.allSatisfy { $0.isASCII && $0.isNumber } && word.count <= 4
          || dateWords.contains { $0 == word.lowercased() }
      }
    case "path", "domain", "max-age", "samesite", "priority":
      return !value.contains { "=,?".contains($0) }
    default: return false
    }
  }

  private static let dateWords: Set = [
    "gmt", "utc", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", "mon",
    "tue", "wed", "thu", "fri", "sat", "sun", "monday", "tuesday", "wednesday", "thursday", "friday",
    "saturday", "sunday",
  ]
}
