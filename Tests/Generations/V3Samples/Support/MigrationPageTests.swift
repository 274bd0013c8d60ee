import Foundation
import Testing

/// The table of the migration page names all tests of the samples in their order.
@Suite struct MigrationPageTests {
  @Test func tableNamesTheTestsInTheirOrder() throws {
    let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    let package = tests.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let page = try String(
      contentsOf: package.appendingPathComponent("Documentation/Generations/From-3.md"), encoding: .utf8)
    let table = try #require(page.range(of: "| sample | test |")).upperBound
    let named = page[table...].split(separator: "\n").filter { $0.hasPrefix("|") }
      .flatMap { $0.matches(of: #/`(sample\d\d_\w+)`/#).map { String($0.1) } }
    var existing: [String] = []
    for folder in ["Making", "Reading", "Advanced"] {
      let files = try FileManager.default.contentsOfDirectory(
        at: tests.appendingPathComponent(folder), includingPropertiesForKeys: nil)
      for file in files {
        let text = try String(contentsOf: file, encoding: .utf8)
        existing += text.matches(of: #/@Test func (sample\d\d_\w+)\(/#).map { String($0.1) }
      }
    }
    #expect(named.count >= 47)
    #expect(named == named.sorted())
    #expect(Set(named) == Set(existing))
  }
}
