/// The error of the test server.
public enum ServerError: Error, Sendable, Equatable, CustomStringConvertible {
  /// A system call failed; `code` is the value of `errno`.
  case system(call: String, code: Int32)
  /// OpenSSL refused an operation; the text names it, followed by OpenSSL's message.
  case tls(String)
  /// A ``TestIdentity/Specification`` cannot be made into a certificate; the text says why.
  case invalidSpecification(String)
  /// No request came within the time that ``HTTPTestServer/takeRequest(timeout:)`` was given.
  case timedOut(after: Duration)
  /// The server was stopped, and every request that it had recorded has been taken.
  case stopped
  /// The task that waited was cancelled.
  case cancelled

  /// One sentence for the log of a test.
  public var description: String {
    switch self {
    case .system(let call, let code):
      "\(call) failed with errno \(code) (\(SystemMessage.text(of: code)))"
    case .tls(let text): "TLS: \(text)"
    case .invalidSpecification(let text): "the certificate cannot be made: \(text)"
    case .timedOut(let duration): "no request came within \(duration)"
    case .stopped: "the test server is stopped and has no further request"
    case .cancelled: "the task that waited for a request was cancelled"
    }
  }
}
