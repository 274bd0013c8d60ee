import Alamofire
import Foundation
import Glibc

/// The command `af`: an HTTP client for the terminal, which uses only the public API of `Alamofire`.
///
/// Arguments become an ``Invocation``, the invocation a `URLRequest`, and the response is printed; each of the three
/// steps can be tested separately.
package enum Command {
  /// Runs with the arguments of the process and ends it.
  package static func main() async -> Never {
    exit(await run(in: .process()).rawValue)
  }

  /// Runs in an environment.
  package static func run(in environment: Environment) async -> ExitCode {
    do {
      switch try ArgumentParser.parse(environment.arguments) {
      case .help:
        environment.writeOutput(Data(Help.text.utf8))
        return .success
      case .version:
        environment.writeOutput(Data(Help.version.utf8))
        return .success
      case .send(let invocation):
        return try await run(invocation, in: environment)
      }
    } catch let error as UsageError {
      complain("\(error.message)\nTry 'af --help'.", in: environment)
      return .usage
    } catch {
      complain(error.localizedDescription, in: environment)
      return .failure
    }
  }

  private static func run(_ invocation: Invocation, in environment: Environment) async throws -> ExitCode {
    let builder = RequestBuilder(invocation) {
      // A command is printed without its input, which curl will read by itself.
      invocation.isCurlWanted ? Data() : try environment.readInput()
    }
    let request = try builder.request()
    if invocation.isCurlWanted {
      let command = CurlCommand(invocation, request: request, headers: Session.headers)
      environment.writeOutput(Data(command.text.utf8))
      return .success
    }
    let delivery = Delivery(environment: environment, invocation: invocation, request: request)
    let outcome = try await delivery.result()
    if !outcome.isWritten {
      ResponsePrinter(environment: environment, invocation: invocation)
        .write(outcome.response, request: request, isComplete: outcome.failure == nil)
    }
    return finish(outcome.response, outcome.failure, invocation, environment)
  }

  /// Writes the timing and the failure to the standard error and returns the exit status.
  private static func finish(
    _ response: AFDataResponse<Data>, _ failure: AFError?, _ invocation: Invocation,
    _ environment: Environment
  ) -> ExitCode {
    if invocation.showsTiming, let metrics = response.metrics {
      let table = TimingTable(metrics).text(width: environment.width, palette: environment.errorPalette)
      environment.writeError(environment.isOutputTerminal ? "\n" + table : table)
    }
    if let failure {
      complain(FailureMessage.text(failure, isVerbose: invocation.shown == .everything), in: environment)
      return .failure
    }
    guard invocation.checksStatus, let code = response.response?.statusCode else { return .success }
    let status = ExitCode(statusCode: code)
    // On a terminal the status line has said it.
    if status != .success, !environment.isOutputTerminal {
      let phrase = ReasonPhrase.of(code).map { " \($0)" } ?? ""
      complain("The server answered \(code)\(phrase).", in: environment)
    }
    return status
  }

  private static func complain(_ message: String, in environment: Environment) {
    environment.writeError("\(environment.errorPalette.paint("af:", .bad)) \(message)\n")
  }
}
