import Alamofire
import Foundation
import Testing

/// Documentation/README.md leads to every document, and every link leads to a section that exists.
@Suite("Index of the documents") struct DocumentIndexTests {
  private static let documents = PackageFiles.paths(
    in: [
      "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Documentation", "Examples/README.md",
      "Benchmarks/README.md",
    ], suffix: ".md")

  /// Returns the links of a document to other files or to sections: the path of the file, and the name of the section.
  private static func links(of path: String) throws -> [(target: String, section: String?)] {
    let folder = PackageFiles.root.appendingPathComponent(path).deletingLastPathComponent()
    let root = PackageFiles.root.standardizedFileURL.path + "/"
    return try PackageFiles.text(of: path).matches(of: /\]\(([^):#\s]*)(?:#([^)\s]*))?\)/).map { match in
      let name = String(match.1)
      let target = name.isEmpty ? path : folder.appendingPathComponent(name).standardizedFileURL.path
      return (target.replacing(root, with: ""), match.2.map(String.init))
    }
  }

  /// Returns the names under which links reach the sections of a document.
  private static func sections(of text: String) -> Set<String> {
    var isCode = false
    var sections: Set<String> = []
    for line in text.split(separator: "\n") {
      if line.hasPrefix("```") { isCode.toggle() }
      guard !isCode, line.hasPrefix("#") else { continue }
      let title = line.drop { $0 == "#" }.drop { $0 == " " }.lowercased()
      sections.insert(
        String(title.compactMap { $0 == " " ? "-" : $0.isLetter || $0.isNumber || $0 == "-" ? $0 : nil }))
    }
    return sections
  }

  @Test("The list of changes begins with the version of the library") func version() throws {
    let changes = try PackageFiles.text(of: "CHANGELOG.md")
    let title = try #require(changes.split(separator: "\n").first { $0.hasPrefix("## ") })
    #expect(title.dropFirst(3).prefix { $0 != "," } == AFInfo.version)
  }

  @Test("Every document is in the index") func documentsInIndex() throws {
    let listed = Set(try Self.links(of: "Documentation/README.md").map(\.target))
    let documents = PackageFiles.paths(in: ["Documentation"], suffix: ".md").filter {
      $0 != "Documentation/README.md" && !$0.contains("/Proposals/")
    }
    #expect(documents.count > 30)
    for path in documents { #expect(listed.contains(path), "\(path) is not in Documentation/README.md") }
    #expect(try Self.links(of: "README.md").contains { $0.target == "Documentation/README.md" })
  }

  @Test("The sections that links name exist") func sectionsOfLinks() throws {
    var count = 0
    for path in Self.documents {
      for case let (target, section?) in try Self.links(of: path) where target.hasSuffix(".md") {
        count += 1
        let sections = Self.sections(of: try PackageFiles.text(of: target))
        #expect(sections.contains(section), "\(path) links to \(target)#\(section)")
      }
    }
    #expect(count > 30)
  }

  @Test("Titles of sections become names of links") func names() {
    let text = "# One\n## Getting JSON, fast\n```sh\n# comment\n```\n### `Cache`-Control\n"
    #expect(Self.sections(of: text) == ["one", "getting-json-fast", "cache-control"])
  }
}
