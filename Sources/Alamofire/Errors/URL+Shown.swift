import Foundation

extension URL {
  /// The text without user information and secret query items, for descriptions and errors.
  var shownText: String { ReadableText.line(Redaction.standard.url(absoluteString)) }

  /// Returns an invalid URL without the text in front of the last `@` if that text has a colon. It may be a password,
  /// because a password without percent-encoding often makes a URL invalid.
  static func shown(invalid text: String) -> String {
    let rest = text[(text.range(of: "://")?.upperBound ?? text.startIndex)...]
    guard let at = rest.lastIndex(of: "@"), rest[..<at].contains(":") else {
      return Redaction.standard.url(text)
    }
    return Redaction.standard.url("\(text[..<rest.startIndex])\(Redaction.mask)\(text[at...])")
  }

  /// Returns the sentences about a text that is not a URL.
  static func remedy(ofInvalid text: String) -> String {
    guard text.contains(where: { !$0.isWhitespace }) else {
      return "This is not a valid URL: the text is empty. Begin it with https:// and a host."
    }
    let shown = shown(invalid: text)
    let fault = "This is not a valid URL: \(shown)."
    if text.contains(where: \.isWhitespace) {
      return "\(fault) It contains white space, which must be percent-encoded (%20) or removed."
    }
    if let port = portText(of: shown), !port.allSatisfy({ $0.isASCII && $0.isNumber }) {
      return "\(fault) Its port is not a number; ports are 1 to 65535."
    }
    return "\(fault) Characters that have no place in a URL must be percent-encoded."
  }

  /// Returns the text between the host and the path; `nil` without a colon behind the host, or with user information,
  /// which may be a password.
  static func portText(of text: String) -> Substring? {
    guard let mark = text.range(of: "://") else { return nil }
    let authority = text[mark.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    guard !authority.contains("@"), let colon = authority.lastIndex(of: ":") else { return nil }
    let port = authority[authority.index(after: colon)...]
    return port.isEmpty || port.contains("]") ? nil : port
  }
}
