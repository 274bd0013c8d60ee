import Foundation
package import Glibc
import Synchronization

/// A program that runs beside the tests. Foundation's `Process` is not used: when it looks for open descriptors it
/// reads past the end of a directory entry, which ended one run of the tests in sixty.
package final class ChildProgram: Sendable {
  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  package enum End: Sendable, Equatable {
    case exited(Int32)
    case killed(signal: Int32)
  }

  private struct State {
    var end: End?
    var waiters: [CheckedContinuation<End, Never>] = []
  }

  package let identifier: pid_t
  private let state: ChildState

  private final class ChildState: Sendable {
    let lock = Mutex(State())
  }

  /// Starts the program. It inherits no other descriptors.
  ///
  /// - Parameters:
  ///   - words: The program, by its path or by a name in `PATH`, then its arguments.
  ///   - environment: Variables that are added to the tests' environment or replace them.
  ///   - input: The standard input; `nil` is empty.
  ///   - output: The standard output; `nil` drops it.
  ///   - complaints: The standard error; `nil` drops it.
  package init(
    _ words: [String], environment: [String: String] = [:], input: Int32? = nil, output: Int32? = nil,
    complaints: Int32? = nil
  ) throws {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    // Moved first, because one descriptor may have the number that another one gets. Three of six numbers are always
    // free for that; a fixed number would one day be one of the descriptors themselves.
    let descriptors = [input, output, complaints]
    let aside = (Int32(3)..<9).filter { !descriptors.contains($0) }
    for (target, descriptor) in zip(aside, descriptors) {
      if let descriptor {
        posix_spawn_file_actions_adddup2(&actions, descriptor, target)
      } else {
        posix_spawn_file_actions_addopen(&actions, target, "/dev/null", O_RDWR, 0)
      }
    }
    for (place, target) in zip(Int32(0)..<3, aside) {
      posix_spawn_file_actions_adddup2(&actions, target, place)
    }
    _ = addCloseFrom(&actions, 3)

    // The threads of the engine and others block signals; a child must not inherit that.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))

    // The default options of the user who runs the tests are not read.
    let variables = ProcessInfo.processInfo.environment.merging(["AF_CONFIG": ""]) { $1 }
      .merging(environment) { $1 }
    var process: pid_t = 0
    let code = Self.withStrings(words) { arguments in
      Self.withStrings(variables.map { "\($0.key)=\($0.value)" }) { environment in
        posix_spawnp(&process, words.first ?? "", &actions, &attributes, arguments, environment)
      }
    }
    guard code == 0 else {
      throw Failure(description: "\(words.first ?? "") cannot be started: \(String(cString: strerror(code)))")
    }
    identifier = process
    state = ChildState()
    Thread.detachNewThread { [state, process] in Self.watch(process, state) }
  }

  /// Sends the program a signal, unless it has ended.
  package func send(_ signal: Int32) {
    state.lock.withLock { state in
      if state.end == nil { kill(identifier, signal) }
    }
  }

  /// Waits for the end of the program, with or without ``send(_:)``.
  package func end() async -> End {
    await withCheckedContinuation { continuation in
      let end = state.lock.withLock { state in
        if state.end == nil { state.waiters.append(continuation) }
        return state.end
      }
      if let end { continuation.resume(returning: end) }
    }
  }

  private static func watch(_ process: pid_t, _ state: ChildState) {
    // Waits without reaping, so that the process id cannot be reused while a signal is sent under the lock.
    var information = siginfo_t()
    while waitid(P_PID, id_t(process), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
    let (end, waiters) = state.lock.withLock { state in
      var status: Int32 = 0
      while waitpid(process, &status, 0) < 0, errno == EINTR {}
      let end = status & 0x7F == 0 ? End.exited((status >> 8) & 0xFF) : .killed(signal: status & 0x7F)
      state.end = end
      defer { state.waiters = [] }
      return (end, state.waiters)
    }
    for waiter in waiters { waiter.resume(returning: end) }
  }

  private static func withStrings<Result>(
    _ strings: [String], _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Result
  ) -> Result {
    var pointers = strings.map { strdup($0) } + [nil]
    defer { for pointer in pointers { free(pointer) } }
    return pointers.withUnsafeMutableBufferPointer { buffer in
      guard let base = buffer.baseAddress else { preconditionFailure("there is one nil at least") }
      return body(base)
    }
  }
}

/// The Glibc module does not declare it.
@_silgen_name("posix_spawn_file_actions_addclosefrom_np")
private func addCloseFrom(_ actions: UnsafeMutablePointer<posix_spawn_file_actions_t>, _ first: Int32)
  -> Int32
