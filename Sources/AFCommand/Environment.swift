package import Foundation
import Glibc

/// The inputs and outputs of the command; tests use their own.
package struct Environment: Sendable {
  /// The arguments without the name of the program.
  package var arguments: [String]
  /// The environment variables; `NO_COLOR` and `COLUMNS` are looked at.
  package var variables: [String: String]
  /// Reads the whole standard input.
  package var readInput: @Sendable () throws -> Data
  /// Writes bytes to the standard output.
  package var writeOutput: @Sendable (Data) -> Void
  /// Writes text to the standard error.
  package var writeError: @Sendable (String) -> Void
  /// Whether a person reads the standard output.
  package var isOutputTerminal: Bool
  /// Whether a person reads the standard error.
  package var isErrorTerminal: Bool
  /// The width of the terminal, in columns.
  package var width: Int
  /// Returns the time that paces the line of progress.
  package var now: @Sendable () -> ContinuousClock.Instant

  package init(
    arguments: [String], variables: [String: String] = [:], readInput: @escaping @Sendable () throws -> Data,
    writeOutput: @escaping @Sendable (Data) -> Void, writeError: @escaping @Sendable (String) -> Void,
    isOutputTerminal: Bool, isErrorTerminal: Bool, width: Int,
    now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
  ) {
    self.arguments = arguments
    self.variables = variables
    self.readInput = readInput
    self.writeOutput = writeOutput
    self.writeError = writeError
    self.isOutputTerminal = isOutputTerminal
    self.isErrorTerminal = isErrorTerminal
    self.width = width
    self.now = now
  }

  /// The palette of the standard output.
  var outputPalette: Palette { palette(isTerminal: isOutputTerminal) }
  /// The palette of the standard error.
  var errorPalette: Palette { palette(isTerminal: isErrorTerminal) }

  /// Returns a palette with colours for a terminal, unless `NO_COLOR` (https://no-color.org) or `TERM` disables them.
  private func palette(isTerminal: Bool) -> Palette {
    let isRefused = variables["NO_COLOR"].map { !$0.isEmpty } ?? false
    return Palette(isOn: isTerminal && !isRefused && variables["TERM"] != "dumb")
  }
}

extension Environment {
  /// The environment of this process.
  package static func process() -> Environment {
    let variables = ProcessInfo.processInfo.environment
    return Environment(
      arguments: Array(CommandLine.arguments.dropFirst()), variables: variables,
      readInput: { try FileHandle.standardInput.readToEnd() ?? Data() },
      writeOutput: { write($0, to: STDOUT_FILENO) },
      writeError: { write(Data($0.utf8), to: STDERR_FILENO) },
      isOutputTerminal: isatty(STDOUT_FILENO) == 1, isErrorTerminal: isatty(STDERR_FILENO) == 1,
      width: columns(variables))
  }

  /// Writes all bytes. Errors are ignored, because the reader of a pipe can exit early (`af … | head`).
  private static func write(_ data: Data, to descriptor: Int32) {
    var rest = data[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if errno != EINTR {
        return
      }
    }
  }

  private static func columns(_ variables: [String: String]) -> Int {
    if let columns = variables["COLUMNS"].flatMap({ Int($0) }), columns > 0 { return columns }
    var size = winsize()
    for descriptor in [STDOUT_FILENO, STDERR_FILENO] {
      if ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 { return Int(size.ws_col) }
    }
    return 80
  }
}
