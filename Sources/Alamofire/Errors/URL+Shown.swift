import Foundation

extension URL {
  /// The text without the password, which descriptions and errors do not show.
  var shownText: String { Self.shown(absoluteString) }

  /// The same for a text that need not be a URL.
  static func shown(_ text: String) -> String {
    guard let mark = text.range(of: "://") else { return text }
    let rest = text[mark.upperBound...]
    let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    guard let at = authority.lastIndex(of: "@"), let colon = authority[..<at].firstIndex(of: ":") else {
      return text
    }
    return "\(text[...colon])redacted\(text[at...])"
  }
}
