import ChildProcesses
import Foundation

/// One run of a program to its end, and what it said.
struct CommandRun {
  let status: Int32
  let output: Data
  let errors: String

  /// Runs `words`, the first of which is looked up in `PATH`. No thread of the pool is held meanwhile.
  init(_ words: [String], environment: [String: String] = [:]) async throws {
    let run = try await ChildRun(words, environment: environment)
    status = run.status
    output = run.output
    errors = run.complaints
  }
}
