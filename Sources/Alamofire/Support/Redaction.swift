import Foundation
public import HTTPWire

/// The rules by which secrets are left out of descriptions, logs and HAR files.
///
/// Secrets are found by the names of header fields, query items, form fields and JSON members. One list is built in:
/// `Authorization`, cookies, `X-API-Key`, names with `token`, `secret`, `password`, `signature` and similar words, and
/// `key` and `code` in queries. User names and passwords of URLs are always secret. Add the names of your own service:
///
/// ```swift
/// let redaction = Redaction(additionalNames: ["X-Customer", "iban"])
/// print(redaction.url("https://example.com/pay?iban=DE02&amount=5"))
/// ```
///
/// It prints `https://example.com/pay?iban=redacted&amount=5`. A secret under another name, or in text of another
/// format, is not found.
public struct Redaction: Sendable, Hashable {
  /// The built-in names alone.
  public static let standard = Redaction()

  /// The text in place of a secret in a URL or a form.
  static let mask = "redacted"

  private var additional: Set<String>

  /// Makes rules for the built-in names and others.
  ///
  /// - Parameter additionalNames: Names of header fields, query items, form fields and JSON members. Case, hyphens and
  ///   underscores do not count.
  public init(additionalNames: Set<String> = []) {
    additional = Set(additionalNames.map { SecretNames.normalized($0) })
  }

  /// Returns these rules with more names.
  public func adding(_ names: some Sequence<String>) -> Redaction {
    var copy = self
    copy.additional.formUnion(names.map { SecretNames.normalized($0) })
    return copy
  }

  /// Whether the value of a header field is secret.
  public func isSecret(headerField name: String) -> Bool {
    let name = SecretNames.normalized(name)
    return additional.contains(name) || SecretNames.contains(name)
  }

  /// Whether the value of a query item or a form field is secret. The name may be percent-encoded.
  public func isSecret(queryItem name: String) -> Bool {
    let name = SecretNames.normalized(name.removingPercentEncoding ?? name)
    return additional.contains(name) || SecretNames.containsInQuery(name)
  }

  /// Returns the value of a header field, or a mask if it is secret. The scheme of `Authorization` stays, and URLs in
  /// other fields lose their secrets.
  public func value(_ value: String, ofHeaderField name: String) -> String {
    guard isSecret(headerField: name) else {
      return value.contains("?") || value.contains("://") ? urls(in: value) : value
    }
    guard SecretNames.normalized(name).hasSuffix("authorization") else { return "<redacted>" }
    let words = value.split(separator: " ", maxSplits: 1)
    return words.count == 2 ? "\(words[0]) <redacted>" : "<redacted>"
  }

  /// Returns header fields with masked values, in their order.
  public func fields(_ fields: some Sequence<HTTPHeader>) -> [HTTPHeader] {
    fields.map { HTTPHeader(name: $0.name, value: value($0.value, ofHeaderField: $0.name)) }
  }

  /// Returns the text of a URL without its user information and the secrets of its query. The text need not be a valid
  /// URL.
  public func url(_ text: String) -> String {
    withoutSecretItems(withoutUserInformation(text))
  }

  /// Returns a text without the secrets of the URLs in it.
  public func urls(in text: String) -> String {
    var result = ""
    var rest = text[...]
    while !rest.isEmpty {
      let blank = rest.prefix { Self.delimitsURL($0) }
      result += blank
      rest = rest[blank.endIndex...]
      let word = rest.prefix { !Self.delimitsURL($0) }
      let isURL = word.contains("://") || word.contains("?")
      result += isURL ? url(String(word)) : String(word)
      rest = rest[word.endIndex...]
    }
    return result
  }

  private static func delimitsURL(_ character: Character) -> Bool {
    character.isWhitespace || "\"<>".contains(character)
  }

  /// Masks the user name and the password, because many services take a token as the user name. A text without a scheme
  /// is masked too.
  private func withoutUserInformation(_ text: String) -> String {
    // The address of a mail has no authority (RFC 6068).
    guard !text.lowercased().hasPrefix("mailto:") else { return text }
    let scheme = text.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    let isFirst = text[scheme.endIndex...].hasPrefix("//") && (scheme.isEmpty || scheme.hasSuffix(":"))
    let mark = isFirst ? text.range(of: "//") : nil
    let rest = text[(mark?.upperBound ?? text.startIndex)...]
    let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    guard let at = authority.lastIndex(of: "@"), at > authority.startIndex else { return text }
    return "\(text[..<authority.startIndex])\(Self.mask)\(text[at...])"
  }

  /// Masks the items of the query, and those of a fragment, in which OAuth 2.0 sends tokens (RFC 6749 §4.2.2).
  private func withoutSecretItems(_ text: String) -> String {
    guard let start = text.firstIndex(where: { $0 == "?" || $0 == "#" }) else { return text }
    let head = text[...start]
    let parts = text[text.index(after: start)...].split(separator: "#", omittingEmptySubsequences: false)
    return head + parts.map { form(String($0)) }.joined(separator: "#")
  }

  /// Returns a query or a body of the type `application/x-www-form-urlencoded` with masked values.
  func form(_ text: String) -> String {
    guard text.contains("=") else { return text }
    var result = ""
    var rest = text[...]
    while true {
      let item = rest.prefix { $0 != "&" && $0 != ";" }
      if let equals = item.firstIndex(of: "="), isSecret(queryItem: String(item[..<equals])) {
        result += item[...equals] + Self.mask
      } else {
        result += item
      }
      guard item.endIndex < rest.endIndex else { return result }
      result.append(rest[item.endIndex])
      rest = rest[rest.index(after: item.endIndex)...]
    }
  }
}
