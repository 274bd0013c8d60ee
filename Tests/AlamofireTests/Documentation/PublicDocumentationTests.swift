import Foundation
import Testing

/// Every public declaration has a comment. A rule of the formatter in `Scripts/lint` covers most of them. This test
/// also covers types, `open` members, the cases of public enums and the requirements of public protocols.
@Suite("Comments of public declarations") struct PublicDocumentationTests {
  private static let sources = PackageFiles.paths(
    in: ["Sources/Alamofire", "Sources/HTTPWire", "Sources/HTTPTestServer"], suffix: ".swift")

  private static let modifiers: Set<Substring> = [
    "public", "open", "package", "internal", "fileprivate", "private", "final", "static", "class", "indirect",
    "nonisolated", "mutating", "override", "convenience", "required", "weak", "unowned", "lazy",
  ]
  private static let kinds: Set<Substring> = [
    "func", "var", "let", "init", "subscript", "class", "struct", "enum", "protocol", "actor", "extension",
    "typealias", "associatedtype", "case",
  ]

  private struct Declaration {
    var modifiers: Set<Substring> = []
    var kind: Substring = ""

    /// Reads the declaration at the beginning of a line, after its attributes.
    init?(_ line: Substring) {
      var rest = line
      while true {
        let isAttribute = rest.first == "@"
        if isAttribute { rest.removeFirst() }
        let word = rest.prefix { $0.isLetter || $0 == "_" }
        rest = rest.dropFirst(word.count)
        let isModifier = PublicDocumentationTests.isModifier(word, before: rest)
        guard isAttribute || isModifier else {
          guard PublicDocumentationTests.kinds.contains(word) else { return nil }
          kind = word
          return
        }
        if isModifier { modifiers.insert(word) }
        if rest.first == "(" { rest = rest.drop { $0 != ")" }.dropFirst() }
        rest = rest.drop(while: \.isWhitespace)
      }
    }
  }

  /// Returns whether a word is a modifier. `class` is a modifier only before a member.
  private static func isModifier(_ word: Substring, before rest: Substring) -> Bool {
    guard word == "class" else { return modifiers.contains(word) }
    return rest.hasPrefix(" func ") || rest.hasPrefix(" var ")
  }

  /// A public type whose members are public without a modifier.
  private enum Scope { case publicEnum, publicProtocol, publicExtension, other }

  /// Returns the lines of a file with a public declaration and no comment above it.
  private static func undocumented(in lines: [Substring]) -> [Int] {
    var scopes: [(indentation: Int, scope: Scope)] = []
    var isDocumented = false
    var isText = false
    var found: [Int] = []
    for (index, line) in lines.enumerated() {
      let text = line.drop(while: \.isWhitespace)
      let wasText = isText
      if !text.matches(of: /"""/).count.isMultiple(of: 2) { isText.toggle() }
      guard !wasText, !text.isEmpty else { continue }
      if text.hasPrefix("///") { isDocumented = true }
      if text.hasPrefix("//") || text.hasPrefix("#") { continue }
      let indentation = line.count - text.count
      scopes.removeAll { $0.indentation >= indentation }
      guard let declaration = Declaration(text) else {
        // Attributes may stand between the comment and the declaration.
        if !text.hasPrefix("@") { isDocumented = false }
        continue
      }
      let scope = scopes.last { $0.indentation + 2 == indentation }?.scope ?? .other
      if isPublic(declaration, in: scope), !isDocumented { found.append(index + 1) }
      isDocumented = false
      if let inner = Self.scope(of: declaration) { scopes.append((indentation, inner)) }
    }
    return found
  }

  private static func isPublic(_ declaration: Declaration, in scope: Scope) -> Bool {
    let modifiers = declaration.modifiers
    guard declaration.kind != "extension", !modifiers.contains("override") else { return false }
    if !modifiers.isDisjoint(with: ["public", "open"]) { return true }
    switch scope {
    case .publicEnum: return declaration.kind == "case"
    case .publicProtocol: return true
    case .publicExtension:
      return modifiers.isDisjoint(with: ["package", "internal", "fileprivate", "private"])
    case .other: return false
    }
  }

  private static func scope(of declaration: Declaration) -> Scope? {
    let isPublic = !declaration.modifiers.isDisjoint(with: ["public", "open"])
    switch declaration.kind {
    case "enum": return isPublic ? .publicEnum : .other
    case "protocol": return isPublic ? .publicProtocol : .other
    case "extension": return isPublic ? .publicExtension : .other
    case "class", "struct", "actor": return .other
    default: return nil
    }
  }

  @Test("Each public declaration has a comment") func comments() throws {
    for path in Self.sources {
      for line in Self.undocumented(in: try PackageFiles.lines(of: path)) {
        Issue.record("\(path):\(line) is public and has no comment")
      }
    }
  }

  @Test("A declaration without a comment is found") func missingComment() {
    let text = """
      public import Foundation
      /// With a comment.
      @available(*, deprecated)
      public enum Kind {
        case first
        /// With a comment.
        case second
        func inner() {
          switch self { case .first, .second: break }
        }
      }
      public protocol Seam: Sendable {
        func send()
      }
      open class Base {
        open func act() {}
        func own() {}
        package let core: Int
      }
      package enum Hidden {
        case one
      }
      extension Base {
        public static func make() {}
      }
      """
    let found = Self.undocumented(in: text.split(separator: "\n", omittingEmptySubsequences: false))
    #expect(found == [5, 12, 13, 15, 16, 24])
  }
}
