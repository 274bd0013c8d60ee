import Testing

@Suite struct ImportTableTests {
  @Test("No file of the package imports across a module boundary") func package() async throws {
    let run = try await ScriptRun("imports")
    #expect(run.output == "")
    #expect(run.status == 0)
  }

  @Test(
    "A forbidden import is reported with its line",
    arguments: [
      ("Sources/HTTPWire/A.swift", "import Foundation", "HTTPWire must not import Foundation"),
      ("Sources/HTTPSystem/A.swift", "import HTTPEngine", "HTTPSystem must not import HTTPEngine"),
      ("Sources/HTTPSystem/A.swift", "import CNghttp2", "HTTPSystem must not import CNghttp2"),
      ("Sources/HTTPEngine/A.swift", "import Alamofire", "HTTPEngine must not import Alamofire"),
      ("Sources/HTTPEngine/A.swift", "import CZlib", "HTTPEngine must not import CZlib"),
      ("Sources/Alamofire/Attempt/A.swift", "import HTTPEngine", "Alamofire must not import HTTPEngine"),
      ("Sources/Alamofire/Engine/A.swift", "import CLinux", "Alamofire/Engine must not import CLinux"),
      ("Sources/HTTPTestServer/A.swift", "import HTTPEngine", "HTTPTestServer must not import HTTPEngine"),
      ("Sources/HTTPTestServer/A.swift", "import HTTPSystem", "HTTPTestServer must not import HTTPSystem"),
      ("Sources/Generations/V4/A.swift", "import HTTPWire", "Generations must not import HTTPWire"),
      ("Sources/Generations/Shared/A.swift", "import AlamofireV4", "Generations must not import AlamofireV4"),
      ("Sources/af/main.swift", "import HTTPEngine", "af must not import HTTPEngine"),
    ])
  func forbiddenImports(file: String, line: String, complaint: String) async throws {
    let tree = try SourceTree([file: "// first line\n\(line)\n"])
    let run = try await ScriptRun("imports", on: tree.root)
    #expect(run.output == "\(file):2: \(complaint)\n")
    #expect(run.status == 1)
  }

  @Test(
    "Every spelling of an import is found",
    arguments: [
      "package import Foundation", "@preconcurrency import Foundation", "  import struct Foundation.URL",
      "@_spi(Inner) public import Foundation", "import Synchronization; import Foundation",
      "@_exported public import class Foundation.Process",
    ])
  func spellings(line: String) async throws {
    let tree = try SourceTree(["Sources/HTTPWire/A.swift": line])
    let run = try await ScriptRun("imports", on: tree.root)
    #expect(run.output == "Sources/HTTPWire/A.swift:1: HTTPWire must not import Foundation\n")
    #expect(run.status == 1)
  }

  @Test("Allowed imports, and imports in text, are accepted") func acceptedImports() async throws {
    let tree = try SourceTree([
      "Sources/Alamofire/Engine/A.swift": "import HTTPEngine\npackage import HTTPWire\n",
      "Sources/Alamofire/Exports.swift": "@_exported public import struct HTTPWire.HTTPMethod\n",
      "Sources/HTTPWire/A.swift": """
      // import Foundation
      /* a sample:
      import Foundation
      */
      let sample = \"""
        import Foundation
        \"""
      let important = "import Foundation"
      """,
    ])
    let run = try await ScriptRun("imports", on: tree.root)
    #expect(run.output == "")
    #expect(run.status == 0)
  }

  @Test("A folder without a row is an error") func missingRow() async throws {
    let tree = try SourceTree(["Sources/Unknown/A.swift": "import Foundation\n"])
    let run = try await ScriptRun("imports", on: tree.root)
    #expect(run.output.hasPrefix("Sources/Unknown/A.swift:1: this folder has no row"))
    #expect(run.status == 1)
  }
}
