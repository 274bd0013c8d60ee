import Foundation
import Testing

/// A fenced block of Swift in a document or in a comment.
private struct Sample: Sendable, CustomTestStringConvertible {
  let path: String
  let line: Int
  let text: String

  var testDescription: String { "\(path):\(line)" }

  /// The text without white space and without imports, which are at the top of the file.
  var normalized: String {
    let lines = text.split(separator: "\n").filter { !$0.hasPrefix("import ") }
    return Self.normalized(lines.joined(separator: "\n"))
  }

  static func normalized(_ text: String) -> String {
    text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
  }

  /// Returns the blocks of a file. Those of Swift source files are in `///` comments.
  static func all(in path: String) throws -> [Sample] {
    let prefix = path.hasSuffix(".swift") ? "///" : ""
    var samples: [Sample] = []
    var block: (line: Int, lines: [Substring])?
    for (index, line) in try PackageFiles.lines(of: path).enumerated() {
      let trimmed = line.drop(while: \.isWhitespace)
      let isOutside = !trimmed.hasPrefix(prefix)
      let text = prefix.isEmpty ? line : trimmed.dropFirst(prefix.count)
      if let open = block {
        if isOutside || text.drop(while: \.isWhitespace).hasPrefix("```") {
          samples.append(Sample(path: path, line: open.line, text: open.lines.joined(separator: "\n")))
          block = nil
        } else {
          block?.lines.append(text)
        }
      } else if !isOutside, text.drop(while: \.isWhitespace).hasPrefix("```swift") {
        block = (index + 1, [])
      }
    }
    return samples
  }
}

/// Each sample is equal to the text of a test file, where it is compiled. The file is in this folder or in that of an
/// older generation.
@Suite("Samples") struct SampleTests {
  private static let documents = PackageFiles.paths(
    in: [
      "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Documentation", "Sources", "Examples/README.md",
      "Benchmarks/README.md",
    ], suffix: ".md")
  private static let sources = PackageFiles.paths(
    in: [
      "Sources/Alamofire", "Sources/Generations", "Sources/HTTPWire", "Sources/HTTPTestServer",
    ], suffix: ".swift")

  private static func samples(in paths: [String]) throws -> [Sample] {
    try paths.flatMap { try Sample.all(in: $0) }
  }

  private let compiled: String

  init() throws {
    let files = PackageFiles.paths(
      in: [
        "Tests/AlamofireTests/Documentation", "Tests/Generations/V4Samples/Documentation",
        "Tests/Generations/V3Samples/Documentation",
      ], suffix: "Samples.swift")
    compiled = try files.map { Sample.normalized(try PackageFiles.text(of: $0)) }.joined(separator: " \n ")
  }

  @Test("Each sample of a document is compiled") func samplesOfDocuments() throws {
    let samples = try Self.samples(in: Self.documents)
    #expect(samples.contains { $0.path == "README.md" })
    #expect(samples.contains { $0.path.hasSuffix("GettingStarted.md") })
    for sample in samples {
      let isCompiled = compiled.contains(sample.normalized)
      #expect(isCompiled, "\(sample.testDescription) is not compiled as it stands")
    }
  }

  @Test("Each sample of a comment is compiled") func samplesOfComments() throws {
    let samples = try Self.samples(in: Self.sources)
    #expect(samples.count > 30)
    for sample in samples {
      let isCompiled = compiled.contains(sample.normalized)
      #expect(isCompiled, "\(sample.testDescription) is not compiled as it stands")
    }
  }

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
