public import Foundation
import FoundationNetworking

extension AFError {
  /// Whether the session was released while the request was under way.
  public var isSessionDeinitializedError: Bool {
    if case .sessionDeinitialized = self { true } else { false }
  }

  /// Whether the session was invalidated.
  public var isSessionInvalidatedError: Bool {
    if case .sessionInvalidated = self { true } else { false }
  }

  /// Whether the request was cancelled.
  public var isExplicitlyCancelledError: Bool {
    if case .explicitlyCancelled = self { true } else { false }
  }

  /// Whether something could not be converted to a URL.
  public var isInvalidURLError: Bool {
    if case .invalidURL = self { true } else { false }
  }

  /// Whether a `ParameterEncoding` failed.
  public var isParameterEncodingError: Bool {
    if case .parameterEncodingFailed = self { true } else { false }
  }

  /// Whether a `ParameterEncoder` failed.
  public var isParameterEncoderError: Bool {
    if case .parameterEncoderFailed = self { true } else { false }
  }

  /// Whether a multipart form could not be encoded.
  public var isMultipartEncodingError: Bool {
    if case .multipartEncodingFailed = self { true } else { false }
  }

  /// Whether a request adapter failed.
  public var isRequestAdaptationError: Bool {
    if case .requestAdaptationFailed = self { true } else { false }
  }

  /// Whether a validator refused the response.
  public var isResponseValidationError: Bool {
    if case .responseValidationFailed = self { true } else { false }
  }

  /// Whether the response could not be turned into a value.
  public var isResponseSerializationError: Bool {
    if case .responseSerializationFailed = self { true } else { false }
  }

  /// Whether the server's identity was not accepted.
  public var isServerTrustEvaluationError: Bool {
    if case .serverTrustEvaluationFailed = self { true } else { false }
  }

  /// Whether a request retrier answered with an error.
  public var isRequestRetryError: Bool {
    if case .requestRetryFailed = self { true } else { false }
  }

  /// Whether the body of an upload could not be created.
  public var isCreateUploadableError: Bool {
    if case .createUploadableFailed = self { true } else { false }
  }

  /// Whether the URL request could not be created.
  public var isCreateURLRequestError: Bool {
    if case .createURLRequestFailed = self { true } else { false }
  }

  /// Whether a downloaded file could not be moved to its destination.
  public var isDownloadedFileMoveError: Bool {
    if case .downloadedFileMoveFailed = self { true } else { false }
  }

  /// Whether the transfer failed.
  public var isSessionTaskError: Bool {
    if case .sessionTaskFailed = self { true } else { false }
  }
}

extension AFError {
  /// The value that could not be converted to a URL, for ``invalidURL(url:)``.
  public var urlConvertible: (any URLConvertible)? {
    guard case .invalidURL(let url) = self else { return nil }
    return url
  }

  /// The URL that the error is about; `nil` if it has none.
  ///
  /// - For ``multipartEncodingFailed(reason:)``, and for a downloaded file that cannot be read: the file.
  /// - For ``downloadedFileMoveFailed(error:source:destination:)``: the ``destinationURL``.
  /// - For ``invalidURL(url:)`` of a `URL`: that URL. Text that is not a URL is in ``urlConvertible``.
  /// - For ``sessionTaskFailed(error:)``: the URL of the hop that failed, without user and password.
  /// - For an error that wraps another one: the URL of the wrapped error, if that is an ``AFError``, a `URLError` or a
  ///   file error of Foundation. For a failed retry: the URL of the retrier's error, or else of the original one.
  ///
  /// A status code or a content type that a validator refused has no URL. It is in `DataResponse.response`.
  public var url: URL? {
    switch self {
    case .multipartEncodingFailed(let reason): reason.url ?? underlyingError?.concernedURL
    case .downloadedFileMoveFailed(_, _, let destination): destination
    case .invalidURL(let url): url as? URL
    case .responseValidationFailed(.dataFileReadFailed(let file)),
      .responseSerializationFailed(.inputFileReadFailed(let file)):
      file
    case .requestRetryFailed(let retryError, let originalError):
      retryError.concernedURL ?? originalError.concernedURL
    case .createUploadableFailed, .createURLRequestFailed, .explicitlyCancelled, .parameterEncodingFailed,
      .parameterEncoderFailed, .requestAdaptationFailed, .responseValidationFailed,
      .responseSerializationFailed, .serverTrustEvaluationFailed, .sessionDeinitialized, .sessionInvalidated,
      .sessionTaskFailed, .urlRequestValidationFailed:
      underlyingError?.concernedURL
    }
  }

  /// The error that this one wraps.
  ///
  /// For ``requestRetryFailed(retryError:originalError:)`` it is the error of the retrier. `nil` if no error is
  /// wrapped.
  public var underlyingError: (any Error)? {
    switch self {
    case .createUploadableFailed(let error), .createURLRequestFailed(let error),
      .downloadedFileMoveFailed(let error, _, _), .requestAdaptationFailed(let error),
      .requestRetryFailed(let error, _), .sessionTaskFailed(let error):
      error
    case .sessionInvalidated(let error): error
    case .multipartEncodingFailed(let reason): reason.underlyingError
    case .parameterEncodingFailed(let reason): reason.underlyingError
    case .parameterEncoderFailed(let reason): reason.underlyingError
    case .responseValidationFailed(let reason): reason.underlyingError
    case .responseSerializationFailed(let reason): reason.underlyingError
    case .serverTrustEvaluationFailed(let reason): reason.underlyingError
    case .explicitlyCancelled, .invalidURL, .sessionDeinitialized, .urlRequestValidationFailed: nil
    }
  }

  /// The content types that would have been accepted, when validation failed for the type.
  public var acceptableContentTypes: [String]? {
    guard case .responseValidationFailed(let reason) = self else { return nil }
    return reason.ofResponse.acceptableContentTypes
  }

  /// The content type of the response, when validation failed for it.
  public var responseContentType: String? {
    guard case .responseValidationFailed(let reason) = self,
      case .unacceptableContentType(_, let type) = reason.ofResponse
    else { return nil }
    return type
  }

  /// The status code of the response, when validation failed for it.
  public var responseCode: Int? {
    guard case .responseValidationFailed(let reason) = self,
      case .unacceptableStatusCode(let code) = reason.ofResponse
    else { return nil }
    return code
  }

  /// The encoding that the body could not be read in.
  public var failedStringEncoding: String.Encoding? {
    guard case .responseSerializationFailed(.stringSerializationFailed(let encoding)) = self else {
      return nil
    }
    return encoding
  }

  /// The file that could not be moved.
  public var sourceURL: URL? {
    guard case .downloadedFileMoveFailed(_, let source, _) = self else { return nil }
    return source
  }

  /// The URL to which the file was to be moved.
  public var destinationURL: URL? {
    guard case .downloadedFileMoveFailed(_, _, let destination) = self else { return nil }
    return destination
  }

  /// The data with which a failed download can be resumed, from `NSURLSessionDownloadTaskResumeData` of the transfer
  /// error.
  public var downloadResumeData: Data? {
    (underlyingError as? URLError)?.downloadTaskResumeData
  }
}

extension Error {
  /// The URL that an error of this library or of Foundation is about.
  fileprivate var concernedURL: URL? {
    if let error = self as? AFError { return error.url }
    let info = (self as? URLError)?.userInfo ?? (self as? CocoaError)?.userInfo ?? (self as NSError).userInfo
    for key in [NSURLErrorFailingURLErrorKey, NSURLErrorKey] {
      if let url = info[key] as? URL { return url }
    }
    return (info[NSFilePathErrorKey] as? String).map { URL(fileURLWithPath: $0) }
  }
}

extension AFError.MultipartEncodingFailureReason {
  var url: URL? {
    switch self {
    case .bodyPartURLInvalid(let url), .bodyPartFilenameInvalid(let url), .bodyPartFileNotReachable(let url),
      .bodyPartFileNotReachableWithError(let url, _), .bodyPartFileIsDirectory(let url),
      .bodyPartFileSizeNotAvailable(let url), .bodyPartFileSizeQueryFailedWithError(let url, _),
      .bodyPartInputStreamCreationFailed(let url), .outputStreamCreationFailed(let url),
      .outputStreamFileAlreadyExists(let url), .outputStreamURLInvalid(let url):
      url
    case .outputStreamWriteFailed, .inputStreamReadFailed: nil
    }
  }

  var underlyingError: (any Error)? {
    switch self {
    case .bodyPartFileNotReachableWithError(_, let error),
      .bodyPartFileSizeQueryFailedWithError(_, let error),
      .outputStreamWriteFailed(let error), .inputStreamReadFailed(let error):
      error
    case .bodyPartURLInvalid, .bodyPartFilenameInvalid, .bodyPartFileNotReachable, .bodyPartFileIsDirectory,
      .bodyPartFileSizeNotAvailable, .bodyPartInputStreamCreationFailed, .outputStreamCreationFailed,
      .outputStreamFileAlreadyExists, .outputStreamURLInvalid:
      nil
    }
  }
}

extension AFError.ParameterEncodingFailureReason {
  var underlyingError: (any Error)? {
    switch self {
    case .jsonEncodingFailed(let error), .customEncodingFailed(let error): error
    case .missingURL: nil
    }
  }
}

extension AFError.ParameterEncoderFailureReason {
  var underlyingError: (any Error)? {
    switch self {
    case .encoderFailed(let error): error
    case .missingRequiredComponent: nil
    }
  }
}

extension AFError.ResponseValidationFailureReason {
  var acceptableContentTypes: [String]? {
    switch self {
    case .missingContentType(let types), .unacceptableContentType(let types, _): types
    case .dataFileNil, .dataFileReadFailed, .unacceptableStatusCode, .customValidationFailed: nil
    }
  }

  var underlyingError: (any Error)? {
    switch self {
    case .customValidationFailed(let error): error
    case .dataFileNil, .dataFileReadFailed, .missingContentType, .unacceptableContentType,
      .unacceptableStatusCode:
      nil
    }
  }
}

extension AFError.ResponseSerializationFailureReason {
  var underlyingError: (any Error)? {
    switch self {
    case .jsonSerializationFailed(let error), .decodingFailed(let error),
      .customSerializationFailed(let error):
      error
    case .inputDataNilOrZeroLength, .inputFileNil, .inputFileReadFailed, .stringSerializationFailed,
      .invalidEmptyResponse:
      nil
    }
  }
}
