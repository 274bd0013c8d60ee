import COpenSSL
import Glibc

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

/// The C library's description of an error number.
enum SystemMessage {
  static func text(of code: Int32) -> String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
      guard let base = buffer.baseAddress, strerror_r(code, base, buffer.count) == 0 else {
        return "unknown error"
      }
      return String(cString: base)
    }
  }
}

extension ServerError {
  /// Returns the errors in OpenSSL's queue of this thread as one error, and empties the queue.
  static func openSSL(_ attempt: String) -> ServerError {
    var messages: [String] = []
    var code = ERR_get_error()
    while code != 0 {
      messages.append(
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
          guard let base = buffer.baseAddress else { return "" }
          ERR_error_string_n(code, base, buffer.count)
          return String(cString: base)
        })
      code = ERR_get_error()
    }
    return .tls(messages.isEmpty ? attempt : "\(attempt): \(messages.joined(separator: "; "))")
  }
}
