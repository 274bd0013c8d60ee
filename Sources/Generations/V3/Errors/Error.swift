import Alamofire
public import Foundation
import FoundationNetworking

extension Alamofire {
  /// The errors of Alamofire itself. They arrive as `NSError`, with ``Domain`` and the raw value of a ``Code``.
  ///
  /// ```swift
  /// let error = Alamofire.Error.errorWithCode(.DataSerializationFailed, failureReason: "There was no data.")
  /// ```
  public struct Error: Sendable {
    /// The domain of these errors.
    public static let Domain = "com.alamofire.error"

    /// The operation that failed.
    public enum Code: Int, Sendable {
      /// A stream or a file could not be read while a form was encoded.
      case InputStreamReadFailed = -6000
      /// An encoded form could not be written.
      case OutputStreamWriteFailed = -6001
      /// The type of the response is not one of the acceptable ones.
      case ContentTypeValidationFailed = -6002
      /// The status of the response is not one of the acceptable ones.
      case StatusCodeValidationFailed = -6003
      /// A response without data.
      case DataSerializationFailed = -6004
      /// A body without text, or with text in another encoding.
      case StringSerializationFailed = -6005
      /// A response without JSON.
      case JSONSerializationFailed = -6006
      /// A response without a property list.
      case PropertyListSerializationFailed = -6007
    }

    /// Keys of the `userInfo` of validation errors.
    public struct UserInfoKeys: Sendable {
      /// The content type of the response without its parameters, a `String`; empty when there is none.
      public static let ContentType = "ContentType"
      /// The status code of the response, an `Int`.
      public static let StatusCode = "StatusCode"
    }

    /// Returns an error of ``Domain``.
    ///
    /// - Parameters:
    ///   - code: The code of the failure.
    ///   - failureReason: The message, under `NSLocalizedFailureReasonErrorKey`.
    public static func errorWithCode(_ code: Code, failureReason: String) -> NSError {
      error(code: code, failureReason: failureReason)
    }

    /// Makes an error of ``Domain`` with any number.
    public static func errorWithCode(_ code: Int, failureReason: String) -> NSError {
      error(code: code, failureReason: failureReason)
    }

    /// Makes an error of any domain, by default ``Domain``.
    public static func error(
      domain: String = Error.Domain, code: Code, failureReason: String
    ) -> NSError {
      error(domain: domain, code: code.rawValue, failureReason: failureReason)
    }

    /// Makes an error of any domain, by default ``Domain``, with any number.
    public static func error(domain: String = Error.Domain, code: Int, failureReason: String) -> NSError {
      error(domain: domain, code: code, failureReason: failureReason, info: [:])
    }

    /// Makes an error with more entries in the `userInfo`. The reason is also its `localizedDescription`.
    static func error(
      domain: String = Error.Domain, code: Int, failureReason: String, info: [String: Any]
    ) -> NSError {
      var info = info
      info[NSLocalizedFailureReasonErrorKey] = failureReason
      info[NSLocalizedDescriptionKey] = failureReason
      return NSError(domain: domain, code: code, userInfo: info)
    }
  }
}

/// Converts an error of the current generation to one of the third.
///
/// ```
/// AFError                       NSError
/// createUploadableFailed        the error inside
/// createURLRequestFailed        the error inside
/// downloadedFileMoveFailed      the error of the file system inside
/// explicitlyCancelled           NSURLErrorDomain, cancelled
/// invalidURL                    NSURLErrorDomain, bad URL
/// multipartEncodingFailed       InputStreamReadFailed · OutputStreamWriteFailed · NSURLErrorDomain for files
/// parameterEncodingFailed       the error inside · NSURLErrorDomain, bad URL
/// parameterEncoderFailed        the error inside · NSURLErrorDomain, bad URL
/// requestAdaptationFailed       the error inside
/// requestRetryFailed            the domain and code of the first failure
/// responseValidationFailed      ContentTypeValidationFailed · StatusCodeValidationFailed · the error inside
/// responseSerializationFailed   Data-, String-, JSONSerializationFailed · the error inside
/// serverTrustEvaluationFailed   NSURLErrorDomain, cancelled; why is the underlying error
/// sessionDeinitialized          NSURLErrorDomain, cancelled
/// sessionInvalidated            NSURLErrorDomain, cancelled; why is the underlying error
/// sessionTaskFailed             NSURLErrorDomain, the code of the URLError inside
/// urlRequestValidationFailed    NSURLErrorDomain, too much data: does not happen, a GET may have a body
/// ```
func generationThreeError(_ error: any Swift.Error) -> NSError {
  guard let error = error as? AFError else { return error as NSError }
  switch error {
  case .createUploadableFailed(let inner), .createURLRequestFailed(let inner),
    .downloadedFileMoveFailed(let inner, _, _), .requestAdaptationFailed(let inner),
    .requestRetryFailed(_, let inner), .sessionTaskFailed(let inner):
    return generationThreeError(inner)
  case .explicitlyCancelled, .sessionDeinitialized, .sessionInvalidated(nil):
    return transportError(NSURLErrorCancelled, error)
  case .serverTrustEvaluationFailed, .sessionInvalidated:
    return transportError(NSURLErrorCancelled, error, underlying: error.underlyingError ?? error)
  case .invalidURL: return transportError(NSURLErrorBadURL, error)
  case .urlRequestValidationFailed: return transportError(NSURLErrorDataLengthExceedsMaximum, error)
  case .multipartEncodingFailed(let reason): return multipartError(reason, error)
  case .parameterEncodingFailed, .parameterEncoderFailed:
    return error.underlyingError.map(generationThreeError) ?? transportError(NSURLErrorBadURL, error)
  case .responseValidationFailed(let reason): return validationError(reason, error)
  case .responseSerializationFailed(let reason): return serializationError(reason, error)
  }
}

/// Makes an error of Foundation's domain for transfers.
func transportError(_ code: Int, _ error: AFError, underlying: (any Swift.Error)? = nil) -> NSError {
  Alamofire.Error.error(
    domain: NSURLErrorDomain, code: code, failureReason: error.localizedDescription,
    info: underlying.map { [NSUnderlyingErrorKey: $0] } ?? [:])
}

private func multipartError(_ reason: AFError.MultipartEncodingFailureReason, _ error: AFError) -> NSError {
  switch reason {
  case .inputStreamReadFailed(let inner): return ownError(.InputStreamReadFailed, error, inner)
  case .outputStreamWriteFailed(let inner): return ownError(.OutputStreamWriteFailed, error, inner)
  case .bodyPartInputStreamCreationFailed, .outputStreamCreationFailed:
    return transportError(NSURLErrorCannotOpenFile, error)
  case .bodyPartURLInvalid, .bodyPartFilenameInvalid, .bodyPartFileNotReachable,
    .bodyPartFileNotReachableWithError, .bodyPartFileIsDirectory, .bodyPartFileSizeNotAvailable,
    .bodyPartFileSizeQueryFailedWithError, .outputStreamFileAlreadyExists, .outputStreamURLInvalid:
    return transportError(NSURLErrorBadURL, error, underlying: error.underlyingError)
  }
}

private func validationError(_ reason: AFError.ResponseValidationFailureReason, _ error: AFError) -> NSError {
  switch reason {
  case .unacceptableStatusCode(let code): return .unacceptable(status: code)
  case .unacceptableContentType(_, let type): return .unacceptable(contentType: type)
  case .missingContentType: return .unacceptable(contentType: nil)
  case .dataFileNil, .dataFileReadFailed: return ownError(.InputStreamReadFailed, error, nil)
  case .customValidationFailed(let inner): return generationThreeError(inner)
  }
}

private func serializationError(
  _ reason: AFError.ResponseSerializationFailureReason, _ error: AFError
) -> NSError {
  switch reason {
  case .inputDataNilOrZeroLength, .inputFileNil, .inputFileReadFailed, .invalidEmptyResponse:
    return ownError(.DataSerializationFailed, error, nil)
  case .stringSerializationFailed: return ownError(.StringSerializationFailed, error, nil)
  case .jsonSerializationFailed(let inner): return ownError(.JSONSerializationFailed, error, inner)
  case .decodingFailed(let inner), .customSerializationFailed(let inner): return generationThreeError(inner)
  }
}

private func ownError(
  _ code: Alamofire.Error.Code, _ error: AFError, _ inner: (any Swift.Error)?
) -> NSError {
  Alamofire.Error.error(
    code: code.rawValue, failureReason: error.localizedDescription,
    info: inner.map { [NSUnderlyingErrorKey: $0] } ?? [:])
}

extension NSError {
  /// Makes the error of a validator of status codes.
  static func unacceptable(status: Int) -> NSError {
    Alamofire.Error.error(
      code: Alamofire.Error.Code.StatusCodeValidationFailed.rawValue,
      failureReason: "Response status code was unacceptable: \(status)",
      info: [Alamofire.Error.UserInfoKeys.StatusCode: status])
  }

  /// Makes the error of a validator of content types. Its `userInfo` contains the type without parameters.
  static func unacceptable(contentType: String?) -> NSError {
    let type = contentType?.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased() ?? ""
    return Alamofire.Error.error(
      code: Alamofire.Error.Code.ContentTypeValidationFailed.rawValue,
      failureReason: type.isEmpty
        ? "Response content type was missing." : "Response content type was unacceptable: \(type)",
      info: [Alamofire.Error.UserInfoKeys.ContentType: type])
  }
}
