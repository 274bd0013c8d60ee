import Alamofire

/// A value, or an error.
///
/// This type replaces `Swift.Result` wherever the module is imported.
public enum Result<Value> {
  /// A success, with its value.
  case success(Value)
  /// A failure, with its error.
  case failure(any Error)

  /// Calls a closure, and stores its value or its error.
  public init(value: () throws -> Value) {
    do { self = .success(try value()) } catch { self = .failure(error) }
  }

  /// Whether there is a value.
  public var isSuccess: Bool { if case .success = self { true } else { false } }
  /// Whether there is an error.
  public var isFailure: Bool { !isSuccess }
  /// The value, if there is one.
  public var value: Value? { if case .success(let value) = self { value } else { nil } }
  /// The error, if there is one.
  public var error: (any Error)? { if case .failure(let error) = self { error } else { nil } }

  /// Returns the value, or throws the error.
  public func unwrap() throws -> Value {
    switch self {
    case .success(let value): return value
    case .failure(let error): throw error
    }
  }
}

extension Result: Sendable where Value: Sendable {}

extension Result: CustomStringConvertible, CustomDebugStringConvertible {
  /// `SUCCESS` or `FAILURE`.
  public var description: String { isSuccess ? "SUCCESS" : "FAILURE" }

  /// `SUCCESS` or `FAILURE`, with the value or the error: `SUCCESS: 3`. Secrets are left out of the error.
  public var debugDescription: String {
    switch self {
    case .success(let value): ReadableText.lines("SUCCESS: \(value)")
    case .failure(let error): ReadableText.lines("FAILURE: " + Redaction.standard.urls(in: "\(error)"))
    }
  }
}

extension Result {
  /// Makes another value of the value; an error stays.
  public func map<T>(_ transform: (Value) -> T) -> Result<T> {
    switch self {
    case .success(let value): .success(transform(value))
    case .failure(let error): .failure(error)
    }
  }

  /// Makes another value of the value, or the error that this throws; an error stays.
  public func flatMap<T>(_ transform: (Value) throws -> T) -> Result<T> {
    switch self {
    case .success(let value): Result<T> { try transform(value) }
    case .failure(let error): .failure(error)
    }
  }

  /// Makes another error of the error; a value stays.
  public func mapError<T: Error>(_ transform: (any Error) -> T) -> Result {
    switch self {
    case .success: self
    case .failure(let error): .failure(transform(error))
    }
  }

  /// Transforms the error, or replaces it by the error that the closure throws; a value is unchanged.
  public func flatMapError<T: Error>(_ transform: (any Error) throws -> T) -> Result {
    switch self {
    case .success: return self
    case .failure(let error):
      do { return .failure(try transform(error)) } catch { return .failure(error) }
    }
  }

  /// Calls a closure with the value, if there is one, and returns itself.
  @discardableResult
  public func withValue(_ closure: (Value) throws -> Void) rethrows -> Result {
    if case .success(let value) = self { try closure(value) }
    return self
  }

  /// Calls a closure with the error, if there is one, and returns itself.
  @discardableResult
  public func withError(_ closure: (any Error) throws -> Void) rethrows -> Result {
    if case .failure(let error) = self { try closure(error) }
    return self
  }

  /// Calls a closure if there is a value, and returns itself.
  @discardableResult
  public func ifSuccess(_ closure: () throws -> Void) rethrows -> Result {
    if isSuccess { try closure() }
    return self
  }

  /// Calls a closure if there is an error, and returns itself.
  @discardableResult
  public func ifFailure(_ closure: () throws -> Void) rethrows -> Result {
    if isFailure { try closure() }
    return self
  }
}
