import Alamofire
package import Foundation
import Glibc

/// The reason why bytes were not written to the standard output.
package struct OutputFailure: Error, Equatable, Sendable {
  /// The value of `errno`.
  package let code: Int32

  package init(code: Int32) { self.code = code }
}

/// The standard output up to the first write that fails, so that no output follows a gap.
final class StandardOutput: Sendable {
  private let output: @Sendable (Data) throws(OutputFailure) -> Void
  /// The first failure of a write, for the queues of the output and the main thread.
  private let firstFailure = Mutex<OutputFailure?>(nil)

  init(_ output: @escaping @Sendable (Data) throws(OutputFailure) -> Void) { self.output = output }

  /// Returns whether all bytes were written.
  func write(_ data: Data) -> Bool {
    guard firstFailure.withLock({ $0 == nil }) else { return false }
    do throws(OutputFailure) {
      try output(data)
      return true
    } catch {
      firstFailure.withLock { $0 = $0 ?? error }
      return false
    }
  }

  /// The sentence for an output that was not written. `nil` if all was written, and if the reader of a pipe has seen
  /// enough (`af … | head`).
  var failure: String? {
    guard let failure = firstFailure.withLock({ $0 }), failure.code != EPIPE else { return nil }
    return "The output cannot be written: \(String(cString: strerror(failure.code)))."
  }
}

/// The descriptors 0, 1 and 2 of a process.
enum StandardDescriptors {
  /// Opens the descriptors that are closed. Otherwise a socket or a file could get the number of the standard output,
  /// and bodies would be written into it. They are opened so that a read or a write fails as on a closed one.
  ///
  /// - Returns: Those that the runtime of Swift has opened for itself before, and that must not be used.
  static func reserve() -> Set<Int32> {
    var taken: Set<Int32> = []
    for (descriptor, mode) in [
      (STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_RDONLY),
    ] {
      if fcntl(descriptor, F_GETFD) >= 0 {
        if isOfRuntime(descriptor) { taken.insert(descriptor) }
        continue
      }
      let opened = open("/dev/null", mode)
      guard opened >= 0, opened != descriptor else { continue }
      dup2(opened, descriptor)
      close(opened)
    }
    return taken
  }

  /// Whether a descriptor is an event source, which no program has as its input or output.
  private static func isOfRuntime(_ descriptor: Int32) -> Bool {
    var target = [CChar](repeating: 0, count: 64)
    let count = readlink("/proc/self/fd/\(descriptor)", &target, target.count)
    return count > 0 && target.map { UInt8(bitPattern: $0) }.starts(with: "anon_inode:".utf8)
  }
}

/// The file of `--har`: an HTTP archive of the requests that were sent.
final class ArchiveFile: Sendable {
  let recorder = RequestRecorder()
  private let path: String

  /// Checks the path, so that one that cannot be written is found before a request is sent; `nil` without the option.
  /// An earlier archive stays until the new one is complete.
  init?(_ invocation: Invocation) throws(UsageError) {
    guard let path = invocation.archive else { return nil }
    self.path = path
    var isFolder: ObjCBool = false
    let exists = FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
    if isFolder.boolValue { throw UsageError(SavedFile.Failure(path, code: EISDIR).sentence) }
    guard access(exists ? path : Self.folder(path), W_OK) == 0 else {
      throw UsageError(SavedFile.Failure(path).sentence)
    }
  }

  private static func folder(_ path: String) -> String {
    URL(fileURLWithPath: path).deletingLastPathComponent().path
  }

  /// Writes the requests that have ended. Returns the reason if they cannot be written.
  func write() -> String? {
    recorder.queue.sync {}
    do {
      let archive = try recorder.har()
      // A new archive is accessible only to its owner, because not all secrets can be recognized.
      try PrivateFile.write(archive, to: path, keepsMode: true)
      return nil
    } catch let failure as PrivateFile.Failure {
      return SavedFile.Failure(path, code: failure.code).sentence
    } catch {
      return error.localizedDescription
    }
  }
}

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
  /// ends before a line does, as with Ctrl-D: an empty answer would be a secret, too. Throws also for an answer that is
  /// not UTF-8, of which a text would have other bytes.
  static func read(_ prompt: String, _ interruption: Interruption) throws(UsageError) -> String? {
    guard let terminal = OpenTerminal("/dev/tty") else { return nil }
    var settings = termios()
    guard tcgetattr(terminal.descriptor, &settings) == 0 else { return nil }
    var silent = settings
    silent.c_lflag &= ~tcflag_t(ECHO)
    // A signal ends the process, and the terminal has to echo again before.
    interruption.onSignal { [settings] in
      terminal.restore(settings)
      terminal.show("\n")
      if let signal = interruption.signal { interruption.end(signal) }
    }
    defer { interruption.questionEnded() }
    tcsetattr(terminal.descriptor, TCSAFLUSH, &silent)
    defer { terminal.restore(settings) }
    terminal.show(prompt)
    defer { terminal.show("\n") }
    guard let line = terminal.line() else {
      throw UsageError("The input of the terminal ended before an answer; nothing was sent.")
    }
    guard let answer = String(validating: line, as: UTF8.self) else {
      throw UsageError("The answer is not text in UTF-8; nothing was sent.")
    }
    return answer
  }
}

/// A terminal that is closed when it is released. The closure for a signal retains it, because that can still run when
/// the question is over, and the next file would get the number of a closed descriptor.
final class OpenTerminal: Sendable {
  let descriptor: Int32

  init?(_ path: String) {
    let opened = open(path, O_RDWR | O_CLOEXEC)
    guard opened >= 0 else { return nil }
    descriptor = opened
  }

  deinit { close(descriptor) }

  /// Reads a line; `nil` if the input ends or fails before its end.
  func line() -> [UInt8]? {
    var line: [UInt8] = []
    var byte: UInt8 = 0
    while true {
      let count = Glibc.read(descriptor, &byte, 1)
      if count < 0, errno == EINTR { continue }
      guard count == 1 else { return nil }
      if byte == UInt8(ascii: "\n") { return line }
      line.append(byte)
    }
  }

  func restore(_ settings: termios) {
    var settings = settings
    tcsetattr(descriptor, TCSAFLUSH, &settings)
  }

  func show(_ text: String) {
    let bytes = Array(text.utf8)
    _ = Glibc.write(descriptor, bytes, bytes.count)
  }
}
