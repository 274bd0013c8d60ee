import ChildProcesses
import Foundation

/// The programs that tests start.
enum Programs {
  /// SwiftPM builds the command next to the tests. `ALAMOFIRE_AF` names another one, such as an installed one.
  static var af: String {
    if let path = ProcessInfo.processInfo.environment["ALAMOFIRE_AF"] { return path }
    let folder = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
    return folder.appendingPathComponent("af").path
  }

  /// Whether a program is there. If `ALAMOFIRE_REQUIRE_SERVERS` is set, the tests fail without it.
  static func isInstalled(_ name: String) -> Bool {
    let variables = ProcessInfo.processInfo.environment
    if variables["ALAMOFIRE_REQUIRE_SERVERS"] == "1" { return true }
    let folders = variables["PATH"]?.split(separator: ":") ?? []
    return folders.contains { FileManager.default.isExecutableFile(atPath: "\($0)/\(name)") }
  }

  /// Runs a program on a separate terminal, and answers its first question. The output is the terminal's.
  ///
  /// - Parameter encoding: Python's name of the encoding of the answer.
  static func runOnTerminal(
    _ words: [String], answer: String = "", encoding: String = "utf-8", environment: [String: String] = [:]
  ) async throws -> ChildRun {
    try await ChildRun(
      ["/usr/bin/env", "python3", "-c", terminal, answer, encoding] + words, environment: environment)
  }

  private static let terminal = """
    import os, pty, sys
    answer, encoding, words = sys.argv[1], sys.argv[2], sys.argv[3:]
    process, terminal = pty.fork()
    if process == 0:
        os.execvp(words[0], words)
    shown, is_answered = b"", False
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:
            break
        shown += piece
        if not is_answered and shown.endswith(b": "):
            is_answered = True
            os.write(terminal, answer.encode(encoding) + b"\\n")
    status = os.waitpid(process, 0)[1]
    sys.stdout.buffer.write(shown)
    sys.exit(os.waitstatus_to_exitcode(status))
    """
}
