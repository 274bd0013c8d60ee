package import Foundation
import Glibc

/// A program that shows text page by page: `$PAGER`, or less.
package struct Pager: Sendable {
  package var write: @Sendable (Data) -> Bool
  /// Waits until the reader has seen enough. Returns the reason if the pager has failed.
  package var finish: @Sendable () -> String?

  package init(write: @escaping @Sendable (Data) -> Bool, finish: @escaping @Sendable () -> String?) {
    self.write = write
    self.finish = finish
  }

  static func start(variables: [String: String]) -> Pager? {
    let command = command(variables)
    guard isThere(command, path: variables["PATH"] ?? "") else { return nil }
    // As git does it: colours pass, and a text of less than a page is not paged.
    setenv("LESS", "FRX", 0)
    guard let pipe = popen(command, "w") else { return nil }
    // Written by one thread at a time.
    nonisolated(unsafe) let stream = pipe
    return Pager(
      write: { data in
        let count = data.withUnsafeBytes { fwrite($0.baseAddress, 1, $0.count, stream) }
        return count == data.count && fflush(stream) == 0
      },
      finish: { failure(of: command, waitStatus: pclose(stream)) })
  }
}

extension Pager {
  static func command(_ variables: [String: String]) -> String {
    variables["PAGER"].flatMap { $0.isEmpty ? nil : $0 } ?? "less"
  }

  private static func failure(of command: String, waitStatus: Int32) -> String? {
    if waitStatus == 0 { return nil }
    let signal = waitStatus & 0x7F
    let end = signal == 0 ? "failed with exit status \(waitStatus >> 8)" : "was ended by signal \(signal)"
    return "The pager '\(command)' \(end); leave out --pager to see the whole output."
  }

  /// Returns whether the program of a command of the shell exists, because the output would be lost without it. A
  /// command that begins with more than a plain word is left to the shell.
  private static func isThere(_ command: String, path: String) -> Bool {
    let words = command.split(whereSeparator: \.isWhitespace).drop { $0.contains("=") }
    guard let word = words.first, !word.contains(where: { "\"'$`(){}|&;<>~*?[\\".contains($0) }) else {
      return true
    }
    let folders = word.contains("/") ? [""] : path.split(separator: ":").map { $0 + "/" }
    return folders.contains { access($0 + word, X_OK) == 0 }
  }
}
