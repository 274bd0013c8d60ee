public import Foundation

/// The reason why a request, or a step of it, failed.
///
/// ```
/// AFError
/// ├─ before sending   invalidURL · createURLRequestFailed · createUploadableFailed · parameterEncodingFailed
/// │                   parameterEncoderFailed · multipartEncodingFailed · urlRequestValidationFailed
/// │                   requestAdaptationFailed
/// ├─ on the way       sessionTaskFailed · serverTrustEvaluationFailed · downloadedFileMoveFailed
/// ├─ after it         responseValidationFailed · responseSerializationFailed · requestRetryFailed
/// └─ ended by us      explicitlyCancelled · sessionDeinitialized · sessionInvalidated
/// ```
///
/// The message (`localizedDescription`) is for people and may change; programs read the case and the
/// properties:
///
/// ```swift
/// if let error = response.error {
///   if error.responseCode == 404 { showMissing() }
///   if let failure = error.underlyingError as? URLError { show(failure.code) }
/// }
/// ```
public indirect enum AFError: Error, Sendable {
  /// The body of an upload could not be made.
  case createUploadableFailed(error: any Error)
  /// A `URLRequestConvertible` failed with an error that is not an ``AFError``.
  case createURLRequestFailed(error: any Error)
  /// A downloaded file could not be moved to its destination.
  case downloadedFileMoveFailed(error: any Error, source: URL, destination: URL)
  /// The request was cancelled, by `cancel()` or by a stream whose consumer went away.
  case explicitlyCancelled
  /// A ``URLConvertible`` gave no URL.
  case invalidURL(url: any URLConvertible)
  /// A multipart form could not be encoded.
  case multipartEncodingFailed(reason: MultipartEncodingFailureReason)
  /// A `ParameterEncoding` failed.
  case parameterEncodingFailed(reason: ParameterEncodingFailureReason)
  /// A `ParameterEncoder` failed.
  case parameterEncoderFailed(reason: ParameterEncoderFailureReason)
  /// A request adapter failed, or returned a request that must not be sent.
  case requestAdaptationFailed(error: any Error)
  /// A request retrier answered with an error of its own.
  case requestRetryFailed(retryError: any Error, originalError: any Error)
  /// A validator refused the response.
  case responseValidationFailed(reason: ResponseValidationFailureReason)
  /// The response could not be serialized.
  case responseSerializationFailed(reason: ResponseSerializationFailureReason)
  /// The server's identity was not accepted.
  case serverTrustEvaluationFailed(reason: ServerTrustFailureReason)
  /// The session was released while the request was under way.
  case sessionDeinitialized
  /// The session was invalidated, with the error that it was given, if any.
  case sessionInvalidated(error: (any Error)?)
  /// The transfer failed; the error is a `URLError` for everything that the network did.
  case sessionTaskFailed(error: any Error)
  /// The `URLRequest` may not be sent as it is.
  case urlRequestValidationFailed(reason: URLRequestValidationFailureReason)
}

extension Error {
  /// The error as an ``AFError``, or `nil` when it is another one.
  public var asAFError: AFError? {
    self as? AFError
  }

  /// Returns this error as an ``AFError``; ends the program if it is another one.
  ///
  /// Use it only where every error is an ``AFError``. `Error.asAFError` does not trap.
  ///
  /// - Parameters:
  ///   - message: The message that is printed before the program ends.
  ///   - file:    The file in the message; by default the caller's.
  ///   - line:    The line in the message; by default the caller's.
  public func asAFError(
    orFailWith message: @autoclosure () -> String, file: StaticString = #fileID, line: UInt = #line
  ) -> AFError {
    guard let error = self as? AFError else {
      preconditionFailure(message(), file: file, line: line)
    }
    return error
  }

  /// Returns this error if it is an ``AFError``, otherwise the given one.
  package func asAFError(or other: @autoclosure () -> AFError) -> AFError {
    self as? AFError ?? other()
  }
}

extension AFError {
  /// Makes the error for the caller of an evaluator that threw `error`.
  init(refusal error: any Error) {
    self = error.asAFError(or: .serverTrustEvaluationFailed(reason: .customEvaluationFailed(error: error)))
  }

  /// The error of a task, in Foundation's terms.
  var ofTask: any Error { isExplicitlyCancelledError ? URLError(.cancelled) : underlyingError ?? self }
}
