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
    // First, before anything opens a file.
    let unusable = StandardDescriptors.reserve()
    // A pipe that is closed is an error of the write, so that sessions, cookies and archives are still stored.
    signal(SIGPIPE, SIG_IGN)
    let environment = Environment.process(without: unusable)
    SecretArguments.hide(environment.arguments)
    let code = await run(in: environment)
    if let signal = environment.interruption.signal { environment.interruption.end(signal) }
    exit(code.rawValue)
  }

  /// Runs in an environment.
  package static func run(in environment: Environment) async -> ExitCode {
    let code = await result(in: environment)
    guard let failure = environment.output.failure, environment.interruption.signal == nil else {
      return code
    }
    complain(failure, in: environment)
    return .output
  }

  private static func result(in environment: Environment) async -> ExitCode {
    do {
      if let unreadable = environment.unreadable { throw unreadable }
      let outcome = try ArgumentParser.parse(environment.arguments) { () throws(UsageError) in
        try DefaultOption.read(environment.variables)
      }
      switch outcome {
      case .print(let text):
        _ = environment.writeOutput(Data(Self.text(text).utf8))
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

  private static func text(_ text: ArgumentParser.Text) -> String {
    switch text {
    case .help: Help.text
    case .version: Help.version
    case .manual: ManualPage.text
    case .completions(let shell): Completions.text(for: shell)
    }
  }

  private static func run(_ typed: Invocation, in environment: Environment) async throws -> ExitCode {
    let kept = try KeptState(typed, variables: environment.variables)
    var invocation = try kept.applied(
      to: try typed.withHeaderFiles().withInput(isRedirected: environment.isInputRedirected))
    try ArgumentParser.checkContinuation(invocation)
    try ArgumentParser.checkSegments(invocation)
    if let user = invocation.credentials?.user, invocation.credentials?.password == nil {
      invocation.credentials?.password = try environment.askPassword("Password of \(user): ")
    }
    // The curl command has the body unchanged.
    let isCompressed = invocation.isCompressed
    if invocation.printsCurl { invocation.isCompressed = false }
    let outgoing = try request(invocation, environment)
    if invocation.printsCurl {
      let cookies = outgoing.request.isTrace ? [] : kept.sessionCookies(for: outgoing.request.url)
      printCurl(outgoing, cookies, invocation, environment)
      if isCompressed {
        complain("curl cannot compress a body; the command sends it as it is.", in: environment)
      }
      return .success
    }
    if invocation.isOffline {
      try Delivery(environment: environment, invocation: invocation, outgoing: outgoing).showRequest(kept)
      return .success
    }
    try kept.checkFiles()
    let archive = try ArchiveFile(invocation)
    let ended = try await exchange(outgoing, kept, invocation, environment, archive)
    noteUnsentInput(invocation, environment)
    let code = environment.interruption.exitCode ?? ended
    let failures = [kept.failure, archive?.write()].compactMap { $0 }
    for failure in failures { complain(failure, in: environment) }
    return code == .success && !failures.isEmpty ? .failure : code
  }

  /// Writes the command of curl. A server has chosen the cookies, so that a terminal gets none of those that have
  /// control characters.
  private static func printCurl(
    _ outgoing: OutgoingRequest, _ cookies: [HTTPCookie], _ invocation: Invocation, _ environment: Environment
  ) {
    let shown = cookies.filter { cookie in
      let text = "\(cookie.name)=\(cookie.value)"
      return !environment.showsReadableText(of: invocation)
        || ReadableText.line(text).utf8.elementsEqual(text.utf8)
    }
    let command = CurlCommand(
      invocation, request: outgoing.request, headers: Session.headers(invocation), cookies: shown)
    _ = environment.writeOutput(Data(command.text.utf8))
    for note in command.notes { complain(note, in: environment) }
    if shown.count < cookies.count {
      complain(
        "The command lacks cookies with control characters; a file or a pipe gets them.", in: environment)
    }
  }

  private static func exchange(
    _ outgoing: OutgoingRequest, _ kept: KeptState, _ invocation: Invocation, _ environment: Environment,
    _ archive: ArchiveFile?
  ) async throws -> ExitCode {
    defer { environment.interruption.requestEnded() }
    let request = outgoing.request
    var environment = environment
    // With --status, nothing but the status is left to be written.
    if invocation.isQuiet, !invocation.showsStatus { environment.writeOutput = { _ in true } }
    if invocation.isOutputPlain { environment.isOutputTerminal = false }
    switch invocation.action {
    case .webSocket:
      return try await WebSocketExchange(
        environment: environment, invocation: invocation, request: request, archive: archive
      ).run(kept)
    case .events:
      return try await EventExchange(
        environment: environment, invocation: invocation, request: outgoing.requestWithBody(),
        archive: archive
      ).run(kept)
    case .imageInfo, .imageResize:
      return try await ImageExchange(
        environment: environment, invocation: invocation, outgoing: outgoing, archive: archive
      ).run(kept)
    case .request: break
    }
    if let output = invocation.output, invocation.usesSegments {
      return try await SegmentedExchange(
        environment: environment, invocation: invocation, request: request, archive: archive
      ).run(kept, output)
    }
    return try await show(outgoing, kept, invocation, environment, archive)
  }

  /// Sends a request and shows its response, page by page if that was asked for.
  private static func show(
    _ outgoing: OutgoingRequest, _ kept: KeptState, _ invocation: Invocation, _ environment: Environment,
    _ archive: ArchiveFile?
  ) async throws(UsageError) -> ExitCode {
    let delivery = Delivery(
      environment: environment, invocation: invocation, outgoing: outgoing, archive: archive)
    let outcome = try await delivery.result(kept)
    let code = finish(outcome, invocation, environment)
    guard let failure = outcome.pagerFailure, environment.interruption.signal == nil else { return code }
    complain(failure, in: environment)
    return code == .success ? .failure : code
  }

  /// Reports that the standard input has bytes that were not sent.
  private static func noteUnsentInput(_ invocation: Invocation, _ environment: Environment) {
    guard environment.isInputRedirected, !invocation.ignoresInput, !invocation.isQuiet,
      invocation.action != .webSocket, invocation.rawBody != .standardInput, environment.hasUnreadInput()
    else { return }
    let reason =
      invocation.hasBody
      ? "the request has another body."
      : "a \(invocation.effectiveMethod) does not read it. Write POST before the URL, or @- as the body."
    complain("The standard input was not sent: \(reason) -I leaves this line out.", in: environment)
  }

  private static func request(_ invocation: Invocation, _ environment: Environment) throws -> OutgoingRequest
  {
    let builder = RequestBuilder(invocation) {
      // A command is printed without its input, which curl will read on its own.
      if invocation.printsCurl { return .data(Data()) }
      return try InputBody.read(isChunked: invocation.isChunked, environment.readInput)
    }
    return try builder.outgoing()
  }

  /// Writes the timing and the failure to the standard error and returns the exit status.
  private static func finish(
    _ outcome: Delivery.DeliveryOutcome, _ invocation: Invocation, _ environment: Environment
  ) -> ExitCode {
    if invocation.showsTiming, let metrics = outcome.metrics {
      let table = TimingTable(metrics).text(width: environment.width, palette: environment.errorPalette)
      environment.writeError(environment.isOutputTerminal ? "\n" + table : table)
    }
    // What the user has interrupted has not failed.
    if environment.interruption.signal != nil { return .failure }
    if let failure = outcome.failure {
      let hint = outcome.response == nil ? hint(invocation) : nil
      complain([failure, hint].compactMap { $0 }.joined(separator: " "), in: environment)
      return .failure
    }
    if invocation.showsStatus, let code = outcome.response?.statusCode {
      _ = environment.writeOutput(Data("\(code)\n".utf8))
    }
    guard !outcome.isComplete, let code = outcome.response?.statusCode else { return .success }
    let status = invocation.checksStatus ? ExitCode(statusCode: code) : .success
    if outcome.isUnsaved {
      complain("\(ReasonPhrase.sentence(code)) Nothing was saved.", in: environment)
    } else if status != .success, !invocation.showsStatus,
      // On a terminal the status line has said it.
      !environment.isOutputTerminal || invocation.output != nil || invocation.isQuiet
    {
      complain(ReasonPhrase.sentence(code), in: environment)
    }
    return status
  }

  /// Returns what to change if no response was received because of an option; `nil` without such an option.
  private static func hint(_ invocation: Invocation) -> String? {
    if invocation.usesHTTP2, invocation.url.hasPrefix("http:") {
      return "Without --http2, the request uses HTTP/1.1."
    }
    return switch invocation.addressFamily {
    case .any: nil
    case .ipv4: "With -4, only IPv4 addresses are used."
    case .ipv6: "With -6, only IPv6 addresses are used."
    }
  }

  /// Writes a message without secrets of URLs, which a person has typed or a server has sent.
  static func complain(_ message: String, in environment: Environment) {
    let text = ReadableText.lines(Redaction.standard.urls(in: message))
    environment.writeError(
      "\(environment.errorPalette.paint("af:", .bad)) \(text)\n")
  }
}

/// The exit status of the command.
package enum ExitCode: Int32, Sendable {
  /// Any response other than the ones below, or there was nothing to send.
  case success = 0
  /// No response was received, or it could not be read to its end.
  case failure = 1
  /// The arguments are wrong.
  case usage = 2
  /// A redirect that was not followed.
  case redirect = 3
  /// The server refused the request (4xx).
  case clientError = 4
  /// The server failed (5xx), or answered with a status of no known class.
  case serverError = 5
  /// The standard output could not be written, as with curl. A reader that has seen enough is not such a failure.
  case output = 23
  /// SIGINT has ended the request.
  case interrupted = 130
  /// SIGTERM has ended the request.
  case terminated = 143

  /// Makes the exit code for the class of a status code. One beyond 599 is treated as 5xx (RFC 9110 §15).
  package init(statusCode: Int) {
    self =
      switch statusCode {
      case 300..<400: .redirect
      case 400..<500: .clientError
      case 500...: .serverError
      default: .success
      }
  }
}
