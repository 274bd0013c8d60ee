import Foundation
import Glibc

/// A question for a secret on the terminal of the process.
enum SecretPrompt {
  /// Returns the answer without its line break; `nil` without a terminal. Nothing of it is shown.
  static func read(_ prompt: String, _ interruption: Interruption) -> String? {
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
    defer { interruption.requestEnded() }
    tcsetattr(terminal, TCSAFLUSH, &silent)
    defer { restore(settings, on: terminal) }
    show(prompt, on: terminal)
    defer { show("\n", on: terminal) }
    var answer: [UInt8] = []
    var byte: UInt8 = 0
    while true {
      let count = Glibc.read(terminal, &byte, 1)
      if count < 0, errno == EINTR { continue }
      guard count == 1, byte != UInt8(ascii: "\n") else { break }
      answer.append(byte)
    }
    return String(decoding: answer, as: UTF8.self)
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
