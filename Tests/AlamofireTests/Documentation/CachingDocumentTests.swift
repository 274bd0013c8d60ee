import Foundation
import Testing

/// Each row of the table of RFC 9111 names a test that exists.
@Suite("Caching document") struct CachingDocumentTests {
  @Test("Each requirement names its test") func requirements() throws {
    let tests = try PackageFiles.paths(
      in: ["Tests/HTTPWireTests/Caching", "Tests/HTTPWireTests/Flow", "Tests/AlamofireTests/Caching"],
      suffix: "Tests.swift"
    ).map { try PackageFiles.text(of: $0) }.joined()
    var count = 0
    for line in try PackageFiles.lines(of: "Documentation/HTTPCaching.md") where line.hasPrefix("| §") {
      let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
      let names = cells.last.map { $0.matches(of: /`(\w+)`/).map { String($0.1) } } ?? []
      #expect(cells.count == 3 && (!names.isEmpty || cells.last?.hasPrefix("not here: ") == true), "\(line)")
      for name in names { #expect(tests.contains("func \(name)("), "\(name) is no test") }
      count += 1
    }
    #expect(count > 40)
  }

  /// Checks that the table names each test of a requirement.
  @Test("Each test of a requirement is named") func requirementTests() throws {
    let document = try PackageFiles.text(of: "Documentation/HTTPCaching.md")
    for path in PackageFiles.paths(in: ["Tests/HTTPWireTests/Caching"], suffix: "RequirementTests.swift") {
      for match in try PackageFiles.text(of: path).matches(of: /@Test(?:\([^\n]*\))?\s+func (\w+)\(/) {
        #expect(document.contains("`\(match.1)`"), "\(match.1) of \(path) is not in the table")
      }
    }
  }
}
