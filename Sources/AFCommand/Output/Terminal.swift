package import Foundation
import Glibc

/// The colours of the output, where there are any: escape sequences of ANSI terminals, from the sixteen
/// colours that a user's own theme defines.
package struct Palette: Equatable, Sendable {
  package enum Style: Sendable {
    case plain, name, string, number, faint, good, notice, bad
  }

  package let isOn: Bool

  package init(isOn: Bool) {
    self.isOn = isOn
  }

  func paint(_ text: String, _ style: Style) -> String {
    guard isOn, let code = Self.code(style), !text.isEmpty else { return text }
    return "\u{1B}[\(code)m\(text)\u{1B}[0m"
  }

  private static func code(_ style: Style) -> String? {
    switch style {
    case .plain: nil
    case .name: "36"
    case .string: "32"
    case .number: "35"
    case .faint: "2"
    case .good: "1;32"
    case .notice: "1;33"
    case .bad: "1;31"
    }
  }
}

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

/// A question for a secret on the terminal of the process.
enum SecretPrompt {
  /// Returns the answer without its line break; `nil` without a terminal. The answer is not shown. Throws if the input
  /// ends before a line does, as with Ctrl-D: an empty answer would be a secret, too.
  static func read(_ prompt: String, _ interruption: Interruption) throws(UsageError) -> String? {
    let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC)
    guard terminal >= 0 else { return nil }
    defer { close(terminal) }
    var settings = termios()
    guard tcgetattr(terminal, &settings) == 0 else { return nil }
    var silent = settings
    silent.c_lflag &= ~tcflag_t(ECHO)
    // A signal ends the process, and the terminal has to echo again before.
    interruption.onSignal { [settings] in
      restore(settings, on: terminal)
      show("\n", on: terminal)
      if let signal = interruption.signal { interruption.end(signal) }
    }
    defer { interruption.questionEnded() }
    tcsetattr(terminal, TCSAFLUSH, &silent)
    defer { restore(settings, on: terminal) }
    show(prompt, on: terminal)
    defer { show("\n", on: terminal) }
    guard let answer = line(of: terminal) else {
      throw UsageError("The input of the terminal ended before an answer; nothing was sent.")
    }
    return answer
  }

  /// Reads a line; `nil` if the input ends or fails before its end.
  private static func line(of terminal: Int32) -> String? {
    var line: [UInt8] = []
    var byte: UInt8 = 0
    while true {
      let count = Glibc.read(terminal, &byte, 1)
      if count < 0, errno == EINTR { continue }
      guard count == 1 else { return nil }
      if byte == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
      line.append(byte)
    }
  }

  private static func restore(_ settings: termios, on terminal: Int32) {
    var settings = settings
    tcsetattr(terminal, TCSAFLUSH, &settings)
  }

  private static func show(_ text: String, on terminal: Int32) {
    let bytes = Array(text.utf8)
    _ = Glibc.write(terminal, bytes, bytes.count)
  }
}
