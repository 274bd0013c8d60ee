/// The one list of names whose values are secrets. Descriptions, logs, HAR files and `af` read it through
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

  /// Whether a normalized name is that of a secret anywhere.
  static func contains(_ name: String) -> Bool {
    // No name of the lists is shorter.
    guard name.utf8.count > 2 else { return false }
    if names.contains(name) { return true }
    if exceptions.contains(name) { return false }
    let bytes = Array(name.utf8)
    return parts.contains { position(of: $0, in: bytes[...]) != nil } || hasToken(bytes)
  }

  /// Whether a normalized name is that of a secret in a query or a form alone.
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
