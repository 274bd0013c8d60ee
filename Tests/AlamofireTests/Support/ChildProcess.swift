import ChildProcesses
import Foundation

/// A run of SoakClient, which SwiftPM builds next to the tests.
struct ChildProcess {
  private static let program = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
    .deletingLastPathComponent().appendingPathComponent("SoakClient")

  enum End: Equatable { case exited(Int32), killed }

  private let program: ChildProgram
  private let complaints: URL

  /// Starts the program.
  ///
  /// - Parameters:
  ///   - folder: Its temporary folder, and the home of Foundation's files.
  ///   - complaints: The file for its standard error.
  init(_ words: [String], folder: URL, complaints: URL) throws {
    self.complaints = complaints
    try Data().write(to: complaints)
    let file = try FileHandle(forWritingTo: complaints)
    program = try ChildProgram(
      [Self.program.path] + words, environment: ["TMPDIR": folder.path, "XDG_DATA_HOME": folder.path],
      complaints: file.fileDescriptor)
  }

  /// The text of its standard error.
  var said: String { (try? String(contentsOf: complaints, encoding: .utf8)) ?? "" }

  /// Kills the process by SIGKILL.
  func kill() { program.send(SIGKILL) }

  /// Waits for the end of the process.
  func end() async -> End {
    switch await program.end() {
    case .exited(let status): .exited(status)
    case .killed: .killed
    }
  }
}
