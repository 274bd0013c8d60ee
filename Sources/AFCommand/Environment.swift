import Alamofire
package import Foundation
import Glibc

/// The inputs and outputs of the command; tests use their own.
package struct Environment: Sendable {
  /// The arguments without the name of the program.
  package var arguments: [String]
  /// The environment variables in ``variableNames``.
  package var variables: [String: String]
  /// The reason why the arguments or the variables of the process cannot be used; `nil` if they can.
  var unreadable: UsageError?
  /// Waits for bytes of the standard input, reads them and returns their number; 0 at the end of the input.
  package var readInput: @Sendable (UnsafeMutableRawBufferPointer) throws -> Int
  /// Returns whether the standard input has bytes that were not read. It does not wait for any.
  package var hasUnreadInput: @Sendable () -> Bool = { false }
  /// Writes bytes to the standard output. Returns whether they were written.
  package var writeOutput: @Sendable (Data) -> Bool
  /// The standard output of the process, also if ``writeOutput`` leads elsewhere.
  let output: StandardOutput
  /// Writes text to the standard error.
  package var writeError: @Sendable (String) -> Void
  /// Whether the standard input is a file or a pipe.
  package var isInputRedirected: Bool
  /// Whether a person reads the standard output.
  package var isOutputTerminal: Bool
  /// Whether the standard output is a terminal. With `-o -` it may be one although ``isOutputTerminal`` is `false`.
  let hasOutputTerminal: Bool
  /// Whether a person reads the standard error.
  package var isErrorTerminal: Bool
  /// The width of the terminal, in columns.
  package var width: Int
  /// Asks for a secret on the terminal, without showing it; `nil` if there is no terminal. Throws without an answer.
  package var readSecret: @Sendable (_ prompt: String) throws(UsageError) -> String?
  /// Makes an output that a person reads page by page; `nil` if there is no pager.
  package var startPager: @Sendable () -> Pager?
  /// The signals that cancel a request.
  package var interruption: Interruption
  /// The folder of downloads without a name.
  package var folder: String
  /// The calls by which saved files reach the disk.
  package var fileCalls = FileCalls()
  /// Returns the time that paces the line of progress.
  package var now: @Sendable () -> ContinuousClock.Instant

  package init(
    arguments: [String], variables: [String: String] = [:],
    readInput: @escaping @Sendable (UnsafeMutableRawBufferPointer) throws -> Int,
    writeOutput: @escaping @Sendable (Data) throws(OutputFailure) -> Void,
    writeError: @escaping @Sendable (String) -> Void,
    isInputRedirected: Bool = false, isOutputTerminal: Bool, isErrorTerminal: Bool, width: Int,
    readSecret: @escaping @Sendable (_ prompt: String) throws(UsageError) -> String? = { _ in nil },
    startPager: @escaping @Sendable () -> Pager? = { nil }, interruption: Interruption = Interruption(),
    folder: String = ".",
    now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
  ) {
    self.arguments = arguments
    self.variables = variables
    self.readInput = readInput
    let output = StandardOutput(writeOutput)
    self.output = output
    self.writeOutput = { output.write($0) }
    self.writeError = writeError
    self.isInputRedirected = isInputRedirected
    self.isOutputTerminal = isOutputTerminal
    hasOutputTerminal = isOutputTerminal
    self.isErrorTerminal = isErrorTerminal
    self.width = width
    self.readSecret = readSecret
    self.startPager = startPager
    self.interruption = interruption
    self.folder = folder
    self.now = now
  }

  /// Asks for a password.
  func askPassword(_ prompt: String) throws(UsageError) -> String {
    guard let password = try readSecret(ReadableText.line(prompt)) else {
      throw UsageError("There is no terminal to ask for the password; write --auth USER:PASS.")
    }
    return password
  }

  /// Asks for the passphrase of a key.
  func askPassphrase(_ prompt: String) throws(UsageError) -> String {
    guard let passphrase = try readSecret(ReadableText.line(prompt)) else {
      throw UsageError("There is no terminal to ask for the passphrase; write --cert-key-pass PASS.")
    }
    return passphrase
  }

  /// Returns the palette of the standard output.
  func palette(of invocation: Invocation) -> Palette {
    guard invocation.hasColours else { return Palette(isOn: false) }
    return switch invocation.prettiness {
    case .all, .colors: Palette(isOn: true)
    case .format, .plain: Palette(isOn: false)
    case nil: palette(isTerminal: isOutputTerminal)
    }
  }

  /// Whether control characters of bodies are replaced on the standard output.
  func showsReadableText(of invocation: Invocation) -> Bool {
    isOutputTerminal && !invocation.passesControlCodes
  }

  /// Whether a line on the standard error can be replaced. A terminal that `TERM` calls dumb cannot do that.
  var replacesErrorLines: Bool { isErrorTerminal && !isDumb }

  private var isDumb: Bool { variables["TERM"] == "dumb" }

  /// The palette of the standard error.
  var errorPalette: Palette { palette(isTerminal: isErrorTerminal) }

  /// Returns a palette with colours for a terminal, unless `NO_COLOR` (https://no-color.org) or `TERM` disables them.
  private func palette(isTerminal: Bool) -> Palette {
    let isRefused = variables["NO_COLOR"].map { !$0.isEmpty } ?? false
    return Palette(isOn: isTerminal && !isRefused && !isDumb)
  }
}

extension Environment {
  /// The environment variables that the command itself reads.
  static let variableNames = [
    "AF_CONFIG", "COLUMNS", "HOME", "NO_COLOR", "PAGER", "PATH", "TERM", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
  ]

  /// The variables with the paths of folders and files.
  private static let pathVariables = ["AF_CONFIG", "HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"]

  /// Returns the reason if an argument or the path in a variable is not UTF-8. A `String` has U+FFFD in place of the
  /// other bytes, so that it would name another file.
  private static func findUnreadable() -> UsageError? {
    for index in 1..<max(1, Int(CommandLine.argc)) {
      guard let bytes = CommandLine.unsafeArgv[index], String(validatingCString: bytes) == nil else {
        continue
      }
      return UsageError("Argument \(index) is not UTF-8, so that it cannot be used; nothing was sent.")
    }
    for name in pathVariables {
      guard let bytes = getenv(name), String(validatingCString: bytes) == nil else { continue }
      return UsageError("The path in the variable \(name) is not UTF-8; set another one.")
    }
    return nil
  }

  /// Returns the environment of this process.
  ///
  /// - Parameter unusable: The standard descriptors that belong to others.
  static func process(without unusable: Set<Int32>) -> Environment {
    // One by one, because Foundation's dictionary of all of them takes longer than the rest of this function.
    let variables = Dictionary(
      uniqueKeysWithValues: variableNames.compactMap { name in
        getenv(name).map { (name, String(cString: $0)) }
      })
    let interruption = Interruption(isProcess: true)
    var environment = Environment(
      arguments: Array(CommandLine.arguments.dropFirst()), variables: variables,
      readInput: { room in
        if unusable.contains(STDIN_FILENO) { throw inputFailure(EBADF) }
        return try readInput(into: room)
      },
      writeOutput: { (data) throws(OutputFailure) in
        if unusable.contains(STDOUT_FILENO) { throw OutputFailure(code: EBADF) }
        try write(data, to: STDOUT_FILENO)
      },
      writeError: { text in
        if !unusable.contains(STDERR_FILENO) { try? write(Data(text.utf8), to: STDERR_FILENO) }
      }, isInputRedirected: isInputRedirected,
      isOutputTerminal: isatty(STDOUT_FILENO) == 1, isErrorTerminal: isatty(STDERR_FILENO) == 1,
      width: columns(variables),
      readSecret: { (prompt) throws(UsageError) in try SecretPrompt.read(prompt, interruption) },
      startPager: { Pager.start(variables: variables) }, interruption: interruption)
    environment.unreadable = findUnreadable()
    environment.hasUnreadInput = {
      var count: Int32 = 0
      return ioctl(STDIN_FILENO, UInt(FIONREAD), &count) == 0 && count > 0
    }
    return environment
  }

  private static func readInput(into room: UnsafeMutableRawBufferPointer) throws -> Int {
    while true {
      let count = Glibc.read(STDIN_FILENO, room.baseAddress, room.count)
      if count >= 0 { return count }
      if !canRepeat(on: STDIN_FILENO, POLLIN) {
        throw inputFailure(errno)
      }
    }
  }

  private static func inputFailure(_ code: Int32) -> UsageError {
    UsageError("Standard input cannot be read: \(String(cString: strerror(code))).")
  }

  private static var isInputRedirected: Bool {
    var information = stat()
    guard fstat(STDIN_FILENO, &information) == 0 else { return false }
    let type = information.st_mode & S_IFMT
    return type == S_IFREG || type == S_IFIFO || type == S_IFSOCK
  }

  private static func write(_ data: Data, to descriptor: Int32) throws(OutputFailure) {
    var rest = data[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if count == 0 {
        throw OutputFailure(code: ENOSPC)
      } else if !canRepeat(on: descriptor, POLLOUT) {
        throw OutputFailure(code: errno)
      }
    }
  }

  /// Returns whether a failed read or write can be repeated. If another process has made the descriptor non-blocking,
  /// it waits until the descriptor is ready.
  private static func canRepeat(on descriptor: Int32, _ events: Int32) -> Bool {
    if errno == EINTR { return true }
    guard errno == EAGAIN else { return false }
    var entry = pollfd(fd: descriptor, events: Int16(events), revents: 0)
    return poll(&entry, 1, -1) > 0 || errno == EINTR
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

/// SIGINT and SIGTERM while a request is sent. The first one cancels the request, so that what was received is saved:
/// sessions, cookies and the HTTP archive. A second one ends the process at once.
package final class Interruption: Sendable {
  private struct State {
    var sources: [any DispatchSourceSignal] = []
    var cancel: (@Sendable () -> Void)?
    var signal: Int32?
    /// Whether a request has ended, after which files are still to be written.
    var isAfterRequest = false
    /// Whether a pager has the terminal.
    var isPaging = false
  }

  private let isProcess: Bool
  /// The received signals, and what a signal cancels. Queues of signals and the main thread use it.
  private let state = Mutex(State())

  /// Makes an observer.
  ///
  /// - Parameter isProcess: Whether the signals of this process are observed; tests call ``interrupt(_:)``.
  package init(isProcess: Bool = false) { self.isProcess = isProcess }

  /// The signal that has ended the request.
  package var signal: Int32? { state.withLock { $0.signal } }

  /// The exit status of a request that a signal has ended.
  var exitCode: ExitCode? {
    switch signal {
    case nil: nil
    case SIGTERM: .terminated
    default: .interrupted
    }
  }

  /// Observes the signals from now on.
  func onSignal(cancel: @escaping @Sendable () -> Void) {
    let isLate = state.withLock { state in
      state.cancel = cancel
      if isProcess, state.sources.isEmpty { state.sources = [SIGINT, SIGTERM].compactMap { source($0) } }
      return state.signal != nil
    }
    if isLate { cancel() }
  }

  /// Called when the request has ended. Its session is released with it.
  func requestEnded() {
    state.withLock { state in
      state.cancel = nil
      state.isAfterRequest = true
    }
  }

  /// Waits until the reader of a pager has seen enough. Ctrl-C is meant for the pager until then, as in `git` and
  /// `man`. Returns the reason if the pager has failed.
  func wait(for pager: Pager) -> String? {
    requestEnded()
    state.withLock { $0.isPaging = true }
    defer { state.withLock { $0.isPaging = false } }
    return pager.finish()
  }

  /// Called when a question was answered. Until the request begins, a signal ends the process at once.
  func questionEnded() { state.withLock { $0.cancel = nil } }

  /// Makes the source of a signal. A signal that is ignored, as in a background job, stays ignored.
  private func source(_ number: Int32) -> (any DispatchSourceSignal)? {
    var action = sigaction()
    sigaction(number, nil, &action)
    if unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == Self.ignored { return nil }
    Glibc.signal(number, SIG_IGN)
    // A separate queue, because the main queue waits for the response.
    let source = DispatchSource.makeSignalSource(signal: number, queue: DispatchQueue(label: "af.signals"))
    source.setEventHandler { [weak self] in self?.interrupt(number) }
    let isRegistered = DispatchSemaphore(value: 0)
    source.setRegistrationHandler { isRegistered.signal() }
    source.resume()
    // Until then a signal would be ignored.
    isRegistered.wait()
    return source
  }

  private static let ignored = unsafeBitCast(SIG_IGN, to: Int.self)

  /// Cancels the request as a signal does.
  package func interrupt(_ number: Int32) {
    let (isLast, cancel): (Bool, (@Sendable () -> Void)?) = state.withLock { state in
      if state.isPaging, number == SIGINT { return (false, nil) }
      defer { state.signal = state.signal ?? number }
      let hasNothing = isProcess && state.cancel == nil && !state.isAfterRequest
      return (state.signal != nil || hasNothing, state.cancel)
    }
    if isLast { return end(number) }
    cancel?()
  }

  /// Ends the process by the signal, as shells expect it: a loop ends with the program that Ctrl-C has ended.
  package func end(_ number: Int32) {
    Glibc.signal(number, SIG_DFL)
    // Sent to this thread, so that it ends here. Sent to the process, the signal may be delivered to another thread,
    // and this one could end the process with a status first.
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, number)
    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    raise(number)
  }
}
