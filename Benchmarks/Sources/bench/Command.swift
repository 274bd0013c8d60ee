import Foundation

/// The failure of a program, described for the user of the benchmarks.
struct CommandFailure: Error, CustomStringConvertible {
  let description: String
}

/// A program with its arguments and environment.
struct Command {
  var words: [String]
  var environment: [String: String] = [:]
  /// The number of the only core that it may use; `nil` for all.
  var core: Int?

  /// Starts the program. The kernel sends it SIGTERM when the thread that started it ends. Therefore only the main
  /// thread may call this.
  func start(output: Any? = nil, errors: Any? = nil) throws -> Process {
    var line = ["setpriv", "--pdeathsig", "TERM"]
    if let core { line += ["taskset", "--cpu-list", String(core)] }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = line + words
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    process.standardInput = FileHandle.nullDevice
    if let output { process.standardOutput = output }
    if let errors { process.standardError = errors }
    try process.run()
    return process
  }

  /// Runs the program to its end and returns its output.
  func run() throws -> Data {
    let output = Pipe()
    let errors = Pipe()
    let process = try start(output: output, errors: errors)
    // The output of our programs fits into a pipe, so that reading one stream after the other cannot block.
    let printed = try output.fileHandleForReading.readToEnd() ?? Data()
    let complaint = try errors.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      let text = String(decoding: complaint, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
      throw CommandFailure(description: "\(words.joined(separator: " ")): \(text)")
    }
    return printed
  }
}
