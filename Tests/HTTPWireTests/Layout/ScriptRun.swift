import ChildProcesses
import Foundation

/// One run of a script of the package, with its output.
struct ScriptRun {
  let status: Int32
  let output: String

  /// The folder with `Package.swift`.
  static let packageRoot = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()

  /// Runs `Scripts/<name>` on the package in `root`, with further arguments, and waits for its end.
  init(_ name: String, on root: URL = Self.packageRoot, _ arguments: [String] = []) async throws {
    let script = Self.packageRoot.appendingPathComponent("Scripts/\(name)")
    let run = try await ChildRun([script.path, root.path] + arguments, isJoined: true)
    status = run.status
    output = String(decoding: run.output, as: UTF8.self)
  }
}
