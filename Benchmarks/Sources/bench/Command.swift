import Foundation

/// A program that ended badly, in words for the one who runs the benchmarks.
struct CommandFailure: Error, CustomStringConvertible {
  let description: String
}

/// A program, its arguments, and what surrounds it while it runs.
struct Command {
  var words: [String]
  var environment: [String: String] = [:]
  /// The one core that it may use; `nil` for all.
  var core: Int?

  /// Starts it. It gets a SIGTERM when this process dies, however that comes; the kernel looks at the
  /// thread that started it, so this is called from the main thread alone.
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

  /// Runs it to its end and returns what it printed.
  func run() throws -> Data {
    let output = Pipe()
    let errors = Pipe()
    let process = try start(output: output, errors: errors)
    // What our programs print fits into a pipe, so that reading one after the other cannot block.
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
