import Foundation

extension URL {
  /// The text without the password, which descriptions and errors do not show.
  var shownText: String { Self.shown(absoluteString) }

  /// Returns a text without its password; the text need not be a URL.
  static func shown(_ text: String) -> String {
    guard let mark = text.range(of: "://") else { return text }
    let rest = text[mark.upperBound...]
    let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    guard let at = authority.lastIndex(of: "@"), let colon = authority[..<at].firstIndex(of: ":") else {
      return text
    }
    return "\(text[...colon])redacted\(text[at...])"
  }

  /// A text that is no URL, without what may be a password: passwords that were not percent-encoded are a common reason
  /// why texts are none. So everything between the first colon and the last `@` counts as one.
  static func shown(invalid text: String) -> String {
    let rest = text[(text.range(of: "://")?.upperBound ?? text.startIndex)...]
    guard let at = rest.lastIndex(of: "@"), let colon = rest[..<at].firstIndex(of: ":") else { return text }
    return "\(text[...colon])redacted\(text[at...])"
  }

  /// A text in which URLs stand, without their passwords.
  static func shown(in text: String) -> String {
    var result = ""
    var rest = text[...]
    while let mark = rest.range(of: "://") {
      let url = rest[mark.lowerBound...].prefix { !$0.isWhitespace && !"\"<>".contains($0) }
      result += rest[..<mark.lowerBound] + shown(String(url))
      rest = rest[url.endIndex...]
    }
    return result + rest
  }
}
