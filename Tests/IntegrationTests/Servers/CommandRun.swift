import ChildProcesses
import Foundation

/// One run of a program to its end, with its output.
struct CommandRun {
  let status: Int32
  let output: Data
  let errors: String

  /// Runs `words`, the first of which is a path or a name in `PATH`. It blocks no thread of the pool.
  init(_ words: [String], environment: [String: String] = [:]) async throws {
    let run = try await ChildRun(words, environment: environment)
    status = run.status
    output = run.output
    errors = run.complaints
  }
}
