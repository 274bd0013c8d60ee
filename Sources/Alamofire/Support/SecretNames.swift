import Foundation

/// The one list of names whose values are secrets. Descriptions, logs, HAR files and `af` read it through
/// ``Redaction``.
///
/// Names are compared without case and punctuation, so that `X-API-Key`, `x_api_key` and `xApiKey` are one name.
enum SecretNames {
  /// Parts of names of header fields, query items, form fields and JSON members.
  private static let parts = [
    "accesskey", "accountkey", "apikey", "authkey", "encryptionkey", "functionskey", "masterkey",
    "privatekey",
    "sharedkey", "signingkey", "subscriptionkey", "assertion", "authorization", "cookie", "credential",
    "csrf",
    "jsessionid", "jwt", "passcode", "passphrase", "passwd", "password", "secret", "sessid", "sessionid",
    "signature", "token", "xsrf",
  ]

  /// Whole names.
  private static let names: Set<String> = [
    "auth", "authenticationinfo", "bearer", "codeverifier", "hmac", "otp", "pass", "pin",
    "proxyauthenticationinfo",
    "pwd", "samlresponse", "session", "sid", "sig", "xauth", "xsession",
  ]

  /// Whole names of query items and form fields that have another meaning elsewhere.
  private static let queryNames: Set<String> = ["code", "key", "pw", "ticket"]

  /// Names that contain a part of the list, and are not secret.
  private static let exceptions: Set<String> = ["accesscontrolallowcredentials", "tokentype"]

  /// Returns the form in which names are compared.
  static func normalized(_ name: some StringProtocol) -> String {
    String(decoding: name.utf8.compactMap(normalized), as: UTF8.self)
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
    guard !names.contains(name) else { return true }
    return !exceptions.contains(name) && parts.contains { Self.has($0, in: name) }
  }

  /// Whether a normalized name is that of a secret in a query or a form.
  static func containsInQuery(_ name: String) -> Bool {
    queryNames.contains(name) || contains(name)
  }

  /// Whether a part occurs. `tokens` is a number more often than a secret, as in `X-RateLimit-Remaining-Tokens`.
  private static func has(_ part: String, in name: String) -> Bool {
    guard let range = name.range(of: part) else { return false }
    return part != "token" || !name[range.upperBound...].hasPrefix("s")
      || name[range.upperBound...].contains(part)
  }
}
