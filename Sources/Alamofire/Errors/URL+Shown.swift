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

  /// Returns an invalid URL without the text between the first colon and the last `@`. That text may be a password,
  /// because a password without percent-encoding often makes a URL invalid.
  static func shown(invalid text: String) -> String {
    let rest = text[(text.range(of: "://")?.upperBound ?? text.startIndex)...]
    guard let at = rest.lastIndex(of: "@"), let colon = rest[..<at].firstIndex(of: ":") else { return text }
    return "\(text[...colon])redacted\(text[at...])"
  }

  /// Returns a text without the passwords of the URLs in it.
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
