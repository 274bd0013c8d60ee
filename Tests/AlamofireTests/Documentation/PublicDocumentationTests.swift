import Foundation
import Testing

/// Every public declaration has a comment. `Scripts/lint` holds most of them by a rule of the formatter; this one
/// sees types, what is `open`, the cases of public enums and the requirements of public protocols as well.
@Suite("Comments of public declarations") struct PublicDocumentationTests {
  private static let sources = PackageFiles.paths(
    in: ["Sources/Alamofire", "Sources/HTTPWire", "Sources/HTTPTestServer"], suffix: ".swift")

  private enum Scope { case publicEnum, publicProtocol, publicExtension, other }

  /// The lines of a file that declare something public without a comment above.
  private static func undocumented(in lines: [Substring]) -> [Int] {
    var scopes: [(indentation: Int, scope: Scope)] = []
    var isDocumented = false
    var inMultilineText = false
    var found: [Int] = []
    for (index, line) in lines.enumerated() {
      let text = line.drop(while: \.isWhitespace)
      let quotes = text.matches(of: /"""/).count
      defer { if !quotes.isMultiple(of: 2) { inMultilineText.toggle() } }
      guard !inMultilineText else { continue }
      if text.hasPrefix("///") { isDocumented = true }
      // An attribute or a condition may stand between the comment and its declaration.
      if text.hasPrefix("//") || text.wholeMatch(of: /@\w+(?:\(.*\))?/) != nil || text.hasPrefix("#") { continue }
      if text.hasPrefix("@available(") && text.hasSuffix(")") { continue }
      let indentation = line.count - text.count
      if !text.isEmpty { scopes.removeAll { $0.indentation >= indentation } }
      defer { isDocumented = false }

      let scope = scopes.last.map { $0.indentation + 2 == indentation ? $0.scope : .other }
      if declares(text, in: scope ?? .other), !isDocumented { found.append(index + 1) }
      if let next = Self.scope(of: text) { scopes.append((indentation, next)) }
    }
    return found
  }

  private static func declares(_ text: Substring, in scope: Scope) -> Bool {
    let declaration = /^(?:@\w+(?:\([^)]*\))? )*(?:(?:public|open|final|static|class|indirect|nonisolated\(nonsending\)|mutating) )*(?:func|var|let|init|subscript|class|struct|enum|protocol|actor|typealias|associatedtype|case)\b/
    guard text.firstMatch(of: declaration) != nil, !text.contains(/\boverride /) else { return false }
    if text.contains(/^(?:@\w+(?:\([^)]*\))? )*(?:[a-z]+(?:\(\w+\))? )*(?:public|open) /) {
      return !text.contains(/\b(?:public|open) import /)
    }
    switch scope {
    case .publicEnum: return text.hasPrefix("case ") || text.hasPrefix("indirect case ")
    case .publicProtocol, .publicExtension: return !text.contains(/\b(?:private|fileprivate|package|internal) /)
    case .other: return false
    }
  }

  private static func scope(of text: Substring) -> Scope? {
    guard let match = text.firstMatch(of: /^(?:[a-z@_]+ )*?(?:(public|open) )?(?:[a-z]+ )*?(class|struct|enum|actor|protocol|extension) [A-Z]/)
    else { return nil }
    guard match.1 != nil else { return .other }
    switch match.2 {
    case "enum": return .publicEnum
    case "protocol": return .publicProtocol
    case "extension": return .publicExtension
    default: return .other
    }
  }

  @Test func everyPublicDeclarationHasAComment() throws {
    for path in Self.sources {
      for line in Self.undocumented(in: try PackageFiles.lines(of: path)) {
        Issue.record("\(path):\(line) is public and has no comment")
      }
    }
  }

  @Test func whatHasNoCommentIsFound() {
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
