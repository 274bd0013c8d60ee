import AFCommand
import Foundation
import Synchronization

/// The result of a run of the command.
struct Run {
  let status: ExitCode
  let bytes: Data
  let error: String

  var output: String { String(decoding: bytes, as: UTF8.self) }
}

/// Runs the command in the test process with a simulated environment.
struct Terminal: Sendable {
  var isOutputTerminal = true
  var isErrorTerminal = false
  var hasColours = false
  var width = 80
  var input = ""
  /// The bytes of an input that is not text, in place of `input`.
  var inputBytes: [UInt8]?
  var isInputRedirected = false
  /// The time between two readings of the clock.
  var tick = Duration.zero
  /// The answer to a question for a secret; `nil` without a terminal.
  var secret: String?
  var variables: [String: String] = [:]
  /// The folder of downloads without a name.
  var folder = "."
  var fileCalls = FileCalls()
  /// The signals that cancel a request; `nil` if the test sends none.
  var interruption: Interruption?
  /// The error of writes to the output, such as `EPIPE` if its reader is gone; `nil` if they succeed.
  var outputFailure: Int32?
  /// Called after each write to the standard error.
  var onError: @Sendable () -> Void = {}
  /// Called with each text for the standard error.
  var onErrorText: @Sendable (String) -> Void = { _ in }
  /// Called after each write to the standard output.
  var onOutput: @Sendable (Data) -> Void = { _ in }
  /// Called before each read of the standard input.
  var onInput: @Sendable () -> Void = {}

  /// The error of reads of the standard input after its last byte; `nil` if the input ends there.
  var inputFailure: UsageError?
  /// Called before the answer to each question for a secret.
  var onQuestion: @Sendable () -> Void = {}
  /// Called when the pager is started.
  var onPager: @Sendable () -> Void = {}
  /// The pager of `--pager`; `nil` if there is none.
  var pager: Pager?
  /// Returns the error of one write to the output.
  var failureOfOutput: @Sendable (Data) -> Int32? = { _ in nil }

  /// A terminal whose output is a pipe.
  static let pipe = Terminal(isOutputTerminal: false)

  func run(_ arguments: String...) async -> Run { await run(arguments) }

  func run(_ arguments: [String]) async -> Run {
    let record = Record()
    let secret = secret
    let (tick, onOutput, onError, outputFailure) = (tick, onOutput, onError, outputFailure)
    let (onErrorText, onInput, failureOfOutput) = (onErrorText, onInput, failureOfOutput)
    let (inputFailure, pager) = (inputFailure, pager)
    let (onQuestion, onPager) = (onQuestion, onPager)
    let input = Mutex(Data(inputBytes ?? Array(self.input.utf8)))
    let clock = Mutex(ContinuousClock.now)
    var environment = Environment(
      arguments: arguments, variables: variables.merging(hasColours ? [:] : ["NO_COLOR": "1"]) { $1 },
      readInput: { room in
        onInput()
        return try input.withLock { input in
          if input.isEmpty, let inputFailure { throw inputFailure }
          let count = input.copyBytes(to: room)
          input = Data(input.dropFirst(count))
          return count
        }
      },
      writeOutput: { (data) throws(OutputFailure) in
        onOutput(data)
        if let code = outputFailure ?? failureOfOutput(data) { throw OutputFailure(code: code) }
        record.output.withLock { $0 += data }
      },
      writeError: { text in
        record.error.withLock { $0 += text }
        onError()
        onErrorText(text)
      },
      isInputRedirected: isInputRedirected, isOutputTerminal: isOutputTerminal,
      isErrorTerminal: isErrorTerminal, width: width,
      readSecret: { _ in
        onQuestion()
        return secret
      },
      startPager: {
        onPager()
        return pager
      }, interruption: interruption ?? Interruption(),
      folder: folder,
      now: {
        clock.withLock { time in
          defer { time += tick }
          return time
        }
      })
    environment.hasUnreadInput = { input.withLock { !$0.isEmpty } }
    environment.fileCalls = fileCalls
    let status = await Command.run(in: environment)
    return Run(status: status, bytes: record.output.withLock { $0 }, error: record.error.withLock { $0 })
  }

  private final class Record: Sendable {
    let output = Mutex(Data())
    let error = Mutex("")
  }
}
