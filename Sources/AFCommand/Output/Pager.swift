package import Foundation
import Glibc

/// A program that shows text page by page: `$PAGER`, or less.
package struct Pager: Sendable {
  package var write: @Sendable (Data) -> Bool
  /// Waits until the reader has seen enough.
  package var finish: @Sendable () -> Void

  package init(write: @escaping @Sendable (Data) -> Bool, finish: @escaping @Sendable () -> Void) {
    self.write = write
    self.finish = finish
  }

  static func start(variables: [String: String]) -> Pager? {
    let command = command(variables)
    guard isThere(command, path: variables["PATH"] ?? "") else { return nil }
    // As git does it: colours pass, and a text of less than a page is not paged.
    setenv("LESS", "FRX", 0)
    // The end of the pager is an error of a write, not the end of this process.
    signal(SIGPIPE, SIG_IGN)
    guard let pipe = popen(command, "w") else { return nil }
    // Written by one thread at a time.
    nonisolated(unsafe) let stream = pipe
    return Pager(
      write: { data in
        let count = data.withUnsafeBytes { fwrite($0.baseAddress, 1, $0.count, stream) }
        return count == data.count && fflush(stream) == 0
      },
      finish: { _ = pclose(stream) })
  }
}

extension Pager {
  static func command(_ variables: [String: String]) -> String {
    variables["PAGER"].flatMap { $0.isEmpty ? nil : $0 } ?? "less"
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

/// A question for a secret on the terminal of the process.
enum SecretPrompt {
  /// Returns the answer without its line break; `nil` without a terminal. Nothing of it is shown.
  static func read(_ prompt: String) -> String? {
    let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC)
    guard terminal >= 0 else { return nil }
    defer { close(terminal) }
    var settings = termios()
    guard tcgetattr(terminal, &settings) == 0 else { return nil }
    var silent = settings
    silent.c_lflag &= ~tcflag_t(ECHO)
    tcsetattr(terminal, TCSAFLUSH, &silent)
    defer { tcsetattr(terminal, TCSAFLUSH, &settings) }
    show(prompt, on: terminal)
    defer { show("\n", on: terminal) }
    var answer: [UInt8] = []
    var byte: UInt8 = 0
    while Glibc.read(terminal, &byte, 1) == 1, byte != UInt8(ascii: "\n") { answer.append(byte) }
    return String(decoding: answer, as: UTF8.self)
  }

  private static func show(_ text: String, on terminal: Int32) {
    let bytes = Array(text.utf8)
    _ = Glibc.write(terminal, bytes, bytes.count)
  }
}
