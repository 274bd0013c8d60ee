import Alamofire

#if IMPORTS_FOUNDATION
  import Foundation
#endif
#if IMPORTS_FOUNDATION_NETWORKING
  import FoundationNetworking
#endif

// Errors: every case and reason, in patterns and as values, and their properties.

private func cases(_ error: AFError) -> Error? {
  switch error {
  case .createUploadableFailed(let error): return error
  case .createURLRequestFailed(let error): return error
  case .downloadedFileMoveFailed(let error, let source, let destination):
    print(source, destination)
    return error
  case .explicitlyCancelled: return nil
  case .invalidURL(let url):
    print(url)
    return nil
  case .multipartEncodingFailed(let reason):
    multipart(reason)
    return nil
  case .parameterEncodingFailed(let reason): return encoding(reason)
  case .parameterEncoderFailed(let reason): return encoder(reason)
  case .requestAdaptationFailed(let error): return error
  case .requestRetryFailed(let retryError, let originalError):
    print(originalError)
    return retryError
  case .responseValidationFailed(let reason): return validation(reason)
  case .responseSerializationFailed(let reason): return serialization(reason)
  case .sessionDeinitialized: return nil
  case .sessionInvalidated(let error): return error
  case .sessionTaskFailed(let error): return error
  case .urlRequestValidationFailed(let reason):
    switch reason {
    case .bodyDataInGETRequest(let data): print(data)
    }
    return nil
  default:
    return nil
  }
}

private func multipart(_ reason: AFError.MultipartEncodingFailureReason) {
  switch reason {
  case .bodyPartURLInvalid(let url), .bodyPartFilenameInvalid(in: let url),
    .bodyPartFileNotReachable(at: let url), .bodyPartFileIsDirectory(at: let url),
    .bodyPartFileSizeNotAvailable(at: let url), .bodyPartInputStreamCreationFailed(for: let url),
    .outputStreamCreationFailed(for: let url), .outputStreamFileAlreadyExists(at: let url),
    .outputStreamURLInvalid(url: let url):
    print(url)
  case .bodyPartFileNotReachableWithError(atURL: let url, let error),
    .bodyPartFileSizeQueryFailedWithError(forURL: let url, let error):
    print(url, error)
  case .outputStreamWriteFailed(let error), .inputStreamReadFailed(let error):
    if let length = error as? AFError.UnexpectedInputStreamLength {
      print(length.bytesExpected, length.bytesRead)
    }
  }
}

private func encoding(_ reason: AFError.ParameterEncodingFailureReason) -> Error? {
  switch reason {
  case .missingURL: nil
  case .jsonEncodingFailed(let error), .customEncodingFailed(let error): error
  }
}

private func encoder(_ reason: AFError.ParameterEncoderFailureReason) -> Error? {
  switch reason {
  case .missingRequiredComponent(.url): nil
  case .missingRequiredComponent(.httpMethod(let rawValue)): AFError.invalidURL(url: rawValue)
  case .encoderFailed(let error): error
  }
}

private func validation(_ reason: AFError.ResponseValidationFailureReason) -> Error? {
  switch reason {
  case .dataFileNil, .dataFileReadFailed(at: _): return nil
  case .missingContentType(let acceptable): print(acceptable)
  case .unacceptableContentType(let acceptable, let type): print(acceptable, type)
  case .unacceptableStatusCode(let code): print(code)
  case .customValidationFailed(let error): return error
  }
  return nil
}

private func serialization(_ reason: AFError.ResponseSerializationFailureReason) -> Error? {
  switch reason {
  case .inputDataNilOrZeroLength, .inputFileNil: return nil
  case .inputFileReadFailed(at: let url): print(url)
  case .stringSerializationFailed(let encoding): print(encoding)
  case .jsonSerializationFailed(let error), .decodingFailed(let error): return error
  case .customSerializationFailed(let error): return error
  case .invalidEmptyResponse(let type): print(type)
  }
  return nil
}

private func made(_ error: URLError, _ url: URL) -> [AFError] {
  [
    .createUploadableFailed(error: error), .createURLRequestFailed(error: error),
    .downloadedFileMoveFailed(error: error, source: url, destination: url), .explicitlyCancelled,
    .invalidURL(url: ""), .multipartEncodingFailed(reason: .bodyPartFileIsDirectory(at: url)),
    .multipartEncodingFailed(reason: .bodyPartFileNotReachableWithError(atURL: url, error: error)),
    .multipartEncodingFailed(reason: .bodyPartFileSizeQueryFailedWithError(forURL: url, error: error)),
    .parameterEncodingFailed(reason: .missingURL),
    .parameterEncodingFailed(reason: .jsonEncodingFailed(error: error)),
    .parameterEncoderFailed(reason: .missingRequiredComponent(.httpMethod(rawValue: ""))),
    .parameterEncoderFailed(reason: .encoderFailed(error: error)), .requestAdaptationFailed(error: error),
    .requestRetryFailed(retryError: error, originalError: error),
    .responseValidationFailed(reason: .unacceptableStatusCode(code: 1)),
    .responseValidationFailed(reason: .missingContentType(acceptableContentTypes: [])),
    .responseValidationFailed(
      reason: .unacceptableContentType(acceptableContentTypes: [], responseContentType: "")),
    .responseSerializationFailed(reason: .decodingFailed(error: error)),
    .responseSerializationFailed(reason: .stringSerializationFailed(encoding: .utf8)),
    .responseSerializationFailed(reason: .invalidEmptyResponse(type: "")), .sessionDeinitialized,
    .sessionInvalidated(error: nil), .sessionTaskFailed(error: error),
    .urlRequestValidationFailed(reason: .bodyDataInGETRequest(Data())),
  ]
}

private func booleans(_ error: AFError) -> [Bool] {
  [
    error.isSessionDeinitializedError, error.isSessionInvalidatedError, error.isExplicitlyCancelledError,
    error.isInvalidURLError, error.isParameterEncodingError, error.isParameterEncoderError,
    error.isMultipartEncodingError, error.isRequestAdaptationError, error.isResponseValidationError,
    error.isResponseSerializationError, error.isRequestRetryError, error.isCreateUploadableError,
    error.isCreateURLRequestError, error.isDownloadedFileMoveError, error.isSessionTaskError,
  ]
}

private func accessors(_ error: AFError) {
  let convertible: URLConvertible? = error.urlConvertible
  let urls: [URL?] = [error.url, error.sourceURL, error.destinationURL]
  let underlying: Error? = error.underlyingError
  let types: [String]? = error.acceptableContentTypes
  let type: String? = error.responseContentType
  let code: Int? = error.responseCode
  let encoding: String.Encoding? = error.failedStringEncoding
  let resumeData: Data? = error.downloadResumeData
  print(convertible as Any, urls, underlying as Any, types as Any, type as Any, code as Any)
  print(encoding as Any, resumeData as Any, error.errorDescription as Any, error.localizedDescription)
  if let urlError = error.underlyingError as? URLError, urlError.code == .timedOut { print(urlError) }
}

private func conversions(_ error: Error) {
  let converted: AFError? = error.asAFError
  let certain: AFError = error.asAFError(orFailWith: "What is thrown here is an AFError")
  print(converted as Any, certain)
  if case .responseValidationFailed(.unacceptableStatusCode(let code))? = error.asAFError { print(code) }
}

private func foundationErrors(_ response: AFDataResponse<Data>) {
  if let error = response.error?.underlyingError as? URLError { print(error.code) }
  if let error = response.error?.underlyingError as NSError? { print(error.domain, error.code) }
  if let error = response.error as NSError? { print(error.code, error.localizedDescription) }
}
