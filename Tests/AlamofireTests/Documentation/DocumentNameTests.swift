import Foundation
import Testing

/// The files, links and paths that documents name exist.
@Suite("Names in documents") struct DocumentNameTests {
  private static let documents = PackageFiles.paths(
    in: [
      "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Documentation", "Sources", "Examples/README.md",
      "Benchmarks/README.md",
    ], suffix: ".md")

  @Test("The links of the documents have existing targets") func links() throws {
    for path in Self.documents {
      let folder = PackageFiles.root.appendingPathComponent(path).deletingLastPathComponent()
      for match in try PackageFiles.text(of: path).matches(of: /\]\(([^):#\s]+)(?:#[^)]*)?\)/) {
        let target = folder.appendingPathComponent(String(match.1)).standardizedFileURL
        #expect(FileManager.default.fileExists(atPath: target.path), "\(path) links to \(match.1)")
      }
    }
  }

  @Test("The files that documents name exist") func files() throws {
    let names = Set(
      PackageFiles.paths(in: ["Sources", "Tests"], suffix: ".swift").compactMap {
        $0.split(separator: "/").last
      })
    for path in PackageFiles.paths(in: ["Documentation"], suffix: ".md") {
      for match in try PackageFiles.text(of: path).matches(of: /[A-Z][\w+]*\.swift/) {
        #expect(names.contains(match.0), "\(path) names \(match.0)")
      }
    }
  }

  @Test("The paths in CONTRIBUTING.md exist, relative to the package or to Sources")
  func pathsOfContributing() throws {
    let text = try PackageFiles.text(of: "CONTRIBUTING.md")
    let paths = text.matches(of: /`((?:\.\.?\/)?[\w.+]+(?:\/[\w.+]+)+)\/?`/).map { String($0.1) }
    #expect(paths.count > 40)
    for path in paths {
      let exists = [PackageFiles.root, PackageFiles.root.appendingPathComponent("Sources")].contains {
        FileManager.default.fileExists(atPath: $0.appendingPathComponent(path).standardizedFileURL.path)
      }
      #expect(exists, "CONTRIBUTING.md names \(path)")
    }
  }
}
