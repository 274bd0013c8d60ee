import Foundation
import Testing

/// The table of the migration page names the tests of the samples, all of them.
@Suite struct MigrationPageFourTests {
  @Test func theTableNamesTheTests() throws {
    let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    let package = tests.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let page = try String(
      contentsOf: package.appendingPathComponent("Documentation/Generations/From-4.md"), encoding: .utf8)
    let table = try #require(page.range(of: "| sample | test |")).upperBound
    let named = page[table...].split(separator: "\n").filter { $0.hasPrefix("|") }
      .flatMap { $0.matches(of: #/`([a-z]\w*)`/#).map { String($0.1) } }
    var existing: Set<String> = []
    for folder in ["Requests", "Sessions", "Serialization", "Migration"] {
      let files = try FileManager.default.contentsOfDirectory(
        at: tests.appendingPathComponent(folder), includingPropertiesForKeys: nil)
      for file in files {
        let text = try String(contentsOf: file, encoding: .utf8)
        existing.formUnion(text.matches(of: #/@Test(?:\([^)]*\))?\s+func (\w+)\(/#).map { String($0.1) })
      }
    }
    #expect(existing.count > 60)
    #expect(Set(named) == existing)
  }
}
