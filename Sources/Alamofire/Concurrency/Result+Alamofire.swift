/// The result of a request: a value, or an ``AFError``.
public typealias AFResult<Success> = Result<Success, AFError>

extension Result {
  /// Whether there is a value.
  package var isSuccess: Bool {
    guard case .success = self else { return false }
    return true
  }

  /// Whether there is an error.
  package var isFailure: Bool { !isSuccess }

  /// The value, or `nil`.
  package var success: Success? {
    guard case .success(let value) = self else { return nil }
    return value
  }

  /// The error, or `nil`.
  package var failure: Failure? {
    guard case .failure(let error) = self else { return nil }
    return error
  }

  /// Makes a failure if there is an error, otherwise a success.
  package init(value: Success, error: Failure?) {
    if let error {
      self = .failure(error)
    } else {
      self = .success(value)
    }
  }

  /// Returns the transformed value; an error of the closure becomes the failure.
  package func tryMap<NewSuccess>(
    _ transform: (Success) throws -> NewSuccess
  ) -> Result<NewSuccess, any Error> {
    switch self {
    case .success(let value): Result<NewSuccess, any Error> { try transform(value) }
    case .failure(let error): .failure(error)
    }
  }

  /// Returns the transformed error; an error of the closure replaces it.
  package func tryMapError<NewFailure: Error>(
    _ transform: (Failure) throws -> NewFailure
  ) -> Result<Success, any Error> {
    switch self {
    case .success(let value): return .success(value)
    case .failure(let error):
      do {
        return .failure(try transform(error))
      } catch {
        return .failure(error)
      }
    }
  }
}
