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
  init(_ name: String, on root: URL = Self.packageRoot) throws {
    let process = Process()
    process.executableURL = Self.packageRoot.appendingPathComponent("Scripts/\(name)")
    process.arguments = [root.path]
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = pipe
    try process.run()
    let said = try pipe.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    status = process.terminationStatus
    output = String(decoding: said, as: UTF8.self)
  }
}
