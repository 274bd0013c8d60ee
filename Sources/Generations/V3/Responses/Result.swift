import Alamofire

/// A value, or the error that prevented it.
public enum Result<Value, Error: Swift.Error> {
  /// A success, with its value.
  case Success(Value)
  /// A failure, with its error.
  case Failure(Error)

  /// Whether there is a value.
  public var isSuccess: Bool {
    if case .Success = self { true } else { false }
  }

  /// Whether there is an error.
  public var isFailure: Bool { !isSuccess }

  /// The value; `nil` after a failure.
  public var value: Value? {
    if case .Success(let value) = self { value } else { nil }
  }

  /// The error; `nil` after a success.
  public var error: Error? {
    if case .Failure(let error) = self { error } else { nil }
  }
}

extension Result: Sendable where Value: Sendable {}

extension Result: CustomStringConvertible, CustomDebugStringConvertible {
  /// `SUCCESS` or `FAILURE`.
  public var description: String { isSuccess ? "SUCCESS" : "FAILURE" }

  /// `SUCCESS` or `FAILURE`, with the value or the error. Secrets are left out of the error.
  public var debugDescription: String {
    switch self {
    case .Success(let value): ReadableText.lines("SUCCESS: \(value)")
    case .Failure(let error): ReadableText.lines("FAILURE: " + Redaction.standard.urls(in: "\(error)"))
    }
  }
}
