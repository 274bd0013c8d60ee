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

  /// The text in place of a secret in a URL, a form or JSON.
  package static let mask = "redacted"
  /// The text in place of a secret in a header field.
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

  private func masked(_ text: String, _ mask: (SecretMasking, ArraySlice<UInt8>) -> [UInt8]) -> String {
    guard SecretMasking.canHaveSecrets(text.utf8) else { return text }
    return String(decoding: mask(SecretMasking(self), Array(text.utf8)[...]), as: UTF8.self)
  }
}
