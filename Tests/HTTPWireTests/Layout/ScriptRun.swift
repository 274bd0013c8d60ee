import ChildProcesses
import Foundation

/// One run of a script of the package, and what it said.
struct ScriptRun {
  let status: Int32
  let output: String

  /// The folder that holds `Package.swift`.
  static let packageRoot = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()

  /// Runs `Scripts/<name>` on the package in `root` and waits for its end.
  init(_ name: String, on root: URL = Self.packageRoot) async throws {
    let script = Self.packageRoot.appendingPathComponent("Scripts/\(name)")
    let run = try await ChildRun([script.path, root.path], isJoined: true)
    status = run.status
    output = String(decoding: run.output, as: UTF8.self)
  }
}
