/// The exit status of the command.
package enum ExitCode: Int32, Sendable {
  /// A response that is none of those below, or nothing was to be sent.
  case success = 0
  /// No response came, or it could not be read to its end.
  case failure = 1
  /// The arguments are wrong.
  case usage = 2
  /// A redirect that was not followed.
  case redirect = 3
  /// The server refused the request (4xx).
  case clientError = 4
  /// The server failed (5xx).
  case serverError = 5
  /// The standard output could not be written, as with curl. A reader that has seen enough is no such failure.
  case output = 23
  /// SIGINT has ended the request.
  case interrupted = 130
  /// SIGTERM has ended the request.
  case terminated = 143

  /// Makes the exit code for the class of a status code (RFC 9110 §15).
  package init(statusCode: Int) {
    self =
      switch statusCode {
      case 300..<400: .redirect
      case 400..<500: .clientError
      case 500..<600: .serverError
      default: .success
      }
  }
}
