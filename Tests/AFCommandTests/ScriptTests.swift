import ChildProcesses
import Foundation
import Testing

/// The scripts, run with a `swift` that does not build anything.
@Suite("Scripts", .timeLimit(.minutes(2))) struct ScriptTests {
  private static let root = HTTPBinServer.packageRoot.standardizedFileURL.path

  private let folder: Folder

  init() throws { folder = try Folder() }

  /// Runs Scripts/install-af with a program `swift`, and returns the run.
  private func install(_ swift: String) async throws -> ChildRun {
    let program = try folder.file("swift", "#!/bin/sh\n\(swift)\n")
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program)
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
    return try await ChildRun(
      ["\(Self.root)/Scripts/install-af", folder.path("prefix")],
      environment: ["PATH": "\(folder.path):\(path)", "HOME": folder.path("home")])
  }

  @Test("What SwiftPM and the compiler write for their user goes below .build") func folders() async throws {
    let run = try await install("env >'\(folder.path("environment"))'; exit 1")
    #expect(run.status != 0)
    let text = try String(contentsOfFile: folder.path("environment"), encoding: .utf8)
    let variables = text.split(separator: "\n").reduce(into: [String: String]()) { variables, line in
      let parts = line.split(separator: "=", maxSplits: 1).map(String.init)
      if parts.count == 2 { variables[parts[0]] = parts[1] }
    }
    for name in ["TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"] {
      let value = try #require(variables[name], "\(name) is not set")
      #expect(value.hasPrefix("\(Self.root)/.build/"), "\(name) is \(value)")
      #expect(FileManager.default.fileExists(atPath: value), "\(name)")
    }
    #expect(!FileManager.default.fileExists(atPath: folder.path("home")))
  }

  @Test("A failed build is shown without its progress") func failedBuild() async throws {
    let run = try await install("echo '[1/2] Compiling a'; echo 'a.swift:1:1: error: wrong'; exit 1")
    #expect(run.status == 1)
    #expect(run.complaints.contains("a.swift:1:1: error: wrong"))
    #expect(!run.complaints.contains("Compiling"))
    #expect(run.output.isEmpty)
  }
}
