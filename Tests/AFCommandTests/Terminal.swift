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
  /// The time between two readings of the clock.
  var tick = Duration.zero
  /// Called after each write to the standard error.
  var onError: @Sendable () -> Void = {}
  /// Called after each write to the standard output.
  var onOutput: @Sendable (Data) -> Void = { _ in }

  /// A terminal whose output is a pipe.
  static let pipe = Terminal(isOutputTerminal: false)

  func run(_ arguments: String...) async -> Run {
    let record = Record()
    let (input, tick, onOutput, onError) = (input, tick, onOutput, onError)
    let clock = Mutex(ContinuousClock.now)
    let environment = Environment(
      arguments: arguments, variables: hasColours ? [:] : ["NO_COLOR": "1"], readInput: { Data(input.utf8) },
      writeOutput: { data in
        record.output.withLock { $0 += data }
        onOutput(data)
      },
      writeError: { text in
        record.error.withLock { $0 += text }
        onError()
      },
      isOutputTerminal: isOutputTerminal, isErrorTerminal: isErrorTerminal, width: width,
      now: {
        clock.withLock { time in
          defer { time += tick }
          return time
        }
      })
    let status = await Command.run(in: environment)
    return Run(status: status, bytes: record.output.withLock { $0 }, error: record.error.withLock { $0 })
  }

  private final class Record: Sendable {
    let output = Mutex(Data())
    let error = Mutex("")
  }
}
