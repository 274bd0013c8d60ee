import Foundation

/// One run of a program to its end, and what it said.
struct CommandRun {
  let status: Int32
  let output: Data
  let errors: String

  /// Runs `words`, the first of which is looked up in `PATH`. No thread of the pool is held meanwhile.
  init(_ words: [String], environment: [String: String] = [:]) async throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = words
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    let output = Pipe()
    let errors = Pipe()
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = output
    process.standardError = errors
    try process.run()
    async let said = Self.everything(of: output)
    async let complained = Self.everything(of: errors)
    self.output = await said
    self.errors = String(decoding: await complained, as: UTF8.self)
    process.waitUntilExit()
    status = process.terminationStatus
  }

  private static func everything(of pipe: Pipe) async -> Data {
    await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        continuation.resume(returning: (try? pipe.fileHandleForReading.readToEnd()) ?? Data())
      }
    }
  }
}
