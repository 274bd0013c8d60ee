import Foundation
import Testing

/// Documentation/Concurrency.md lists all state that threads share.
@Suite("Concurrency document") struct ConcurrencyDocumentTests {
  private static let sources = PackageFiles.paths(in: ["Sources"], suffix: ".swift")

  /// Texts, at least one of which is in every file with shared state.
  private static let marks = ["Mutex", "Atomic", "(unsafe)", "@unchecked"]

  /// Returns the types of a file that hold a lock, an atomic or a value that the compiler does not check.
  private static func holders(in lines: [Substring]) -> [String] {
    var enclosing: [(indentation: Int, name: String)] = []
    var holders: [String] = []
    for line in lines {
      let text = line.drop(while: \.isWhitespace)
      guard !text.isEmpty, !text.hasPrefix("//") else { continue }
      let indentation = line.count - text.count
      enclosing.removeAll { $0.indentation >= indentation }
      if let match = text.firstMatch(of: /^(?:[a-z@_()]+ )*(?:class|struct|enum|actor|extension) ([A-Z]\w*)/)
      {
        enclosing.append((indentation, String(match.1)))
      }
      let holds =
        /\b(?:Tracked)?Mutex(?:<[^=]*>)?\(|: (?:Tracked)?Mutex<|\bAtomic<|nonisolated\(unsafe\)|unowned\(unsafe\)|@unchecked Sendable/
      if text.contains(holds) { holders.append(enclosing.last?.name ?? "a global") }
    }
    return holders
  }

  @Test("Each type with a lock is named in the document") func namedTypes() throws {
    let document = try PackageFiles.text(of: "Documentation/Concurrency.md")
    var count = 0
    for path in Self.sources {
      // Most files have no shared state, and searching each of their lines takes seconds.
      let text = try PackageFiles.text(of: path)
      guard Self.marks.contains(where: text.contains) else { continue }
      for holder in Self.holders(in: text.split(separator: "\n")) {
        count += 1
        // As code, with or without one of its members.
        #expect(
          document.contains("`\(holder)`") || document.contains("`\(holder)."),
          "\(holder) in \(path) is not in Documentation/Concurrency.md")
      }
    }
    #expect(count > 20)
  }

  @Test("Each queue with a label is named in the document") func namedQueues() throws {
    let document = try PackageFiles.text(of: "Documentation/Concurrency.md")
    var count = 0
    for path in Self.sources {
      let text = try PackageFiles.text(of: path)
      guard text.contains("DispatchQueue(label") else { continue }
      for line in text.split(separator: "\n") where !line.contains("///") {
        guard let match = line.firstMatch(of: /DispatchQueue\(label: "([^"]+)"/) else { continue }
        count += 1
        // A label that begins with that of another queue is written by its last part.
        let end = match.1.split(separator: ".").last ?? match.1
        #expect(
          document.contains("`\(match.1)`") || document.contains("….\(end)`"), "\(match.1) in \(path)")
      }
    }
    #expect(count > 15)
  }

  @Test("Types with locks are found") func foundTypes() {
    let text = """
      final class Outer: Sendable {
        private struct State {}
        private let state = Mutex(State())
        let other: Mutex<Int?>
      }
      open class Base: @unchecked Sendable {}
      final class Sub<Value: Sendable>: Base, @unchecked Sendable {
        // Mutex(State())
        let flag = Atomic<Bool>(false)
        let answer = Mutex<Int?>(nil)
      }
      """
    let found = Self.holders(in: text.split(separator: "\n", omittingEmptySubsequences: false))
    #expect(found == ["Outer", "Outer", "Base", "Sub", "Sub", "Sub"])
  }
}
