import Alamofire
import Foundation
import FoundationNetworking

/// Converts an error of the core to one of the fourth generation. Any other error does not come from this library, and
/// is returned unchanged.
///
/// The table in Documentation/Generations/Errors-4.md says the same.
func legacy(_ error: any Error) -> any Error {
  guard let error = error as? Alamofire::AFError else { return error }
  return switch error {
  // Errors that user code has thrown, unchanged.
  case .createURLRequestFailed(let thrown): legacy(thrown)
  case .createUploadableFailed(let thrown): legacy(thrown)
  case .requestAdaptationFailed(let thrown): legacy(thrown)
  case .requestRetryFailed(_, let original): legacy(original)
  // Errors of the system.
  case .downloadedFileMoveFailed(let system, _, _): legacy(system)
  case .sessionTaskFailed(let system): legacy(system)
  // Apple's systems end a cancelled task with this error.
  case .explicitlyCancelled: URLError(.cancelled)
  case .serverTrustEvaluationFailed: URLError(.cancelled)
  case .sessionDeinitialized: URLError(.cancelled)
  case .sessionInvalidated: URLError(.cancelled)
  // This generation allows a body in a GET request. Apple's system refuses such a request with this code.
  case .urlRequestValidationFailed(.bodyDataInGETRequest): URLError(.dataLengthExceedsMaximum)
  // Errors of the library about a request or a response.
  case .invalidURL(let url): AFError.invalidURL(url: url as? any URLConvertible ?? String(describing: url))
  case .multipartEncodingFailed(let reason): AFError.multipartEncodingFailed(reason: reason)
  case .parameterEncodingFailed(let reason): legacy(reason)
  case .parameterEncoderFailed(let reason): legacy(reason)
  case .responseValidationFailed(let reason): legacy(reason)
  case .responseSerializationFailed(let reason): legacy(reason)
  }
}

private func legacy(_ reason: Alamofire::AFError.ParameterEncodingFailureReason) -> any Error {
  switch reason {
  case .missingURL: AFError.parameterEncodingFailed(reason: .missingURL)
  case .jsonEncodingFailed(let error):
    AFError.parameterEncodingFailed(reason: .jsonEncodingFailed(error: error))
  case .customEncodingFailed(let thrown): legacy(thrown)
  }
}

/// Converts the reasons of parameter encoders. This generation has no such encoders; the function exists so that every
/// reason is converted.
private func legacy(_ reason: Alamofire::AFError.ParameterEncoderFailureReason) -> any Error {
  switch reason {
  case .missingRequiredComponent: AFError.parameterEncodingFailed(reason: .missingURL)
  case .encoderFailed(let thrown): legacy(thrown)
  }
}

private func legacy(_ reason: Alamofire::AFError.ResponseValidationFailureReason) -> any Error {
  switch reason {
  case .dataFileNil: AFError.responseValidationFailed(reason: .dataFileNil)
  case .dataFileReadFailed(let file): AFError.responseValidationFailed(reason: .dataFileReadFailed(at: file))
  case .missingContentType(let acceptable):
    AFError.responseValidationFailed(reason: .missingContentType(acceptableContentTypes: acceptable))
  case .unacceptableContentType(let acceptable, let type):
    AFError.responseValidationFailed(
      reason: .unacceptableContentType(acceptableContentTypes: acceptable, responseContentType: type))
  case .unacceptableStatusCode(let code):
    AFError.responseValidationFailed(reason: .unacceptableStatusCode(code: code))
  case .customValidationFailed(let thrown): legacy(thrown)
  }
}

private func legacy(_ reason: Alamofire::AFError.ResponseSerializationFailureReason) -> any Error {
  switch reason {
  case .inputDataNilOrZeroLength: AFError.responseSerializationFailed(reason: .inputDataNilOrZeroLength)
  case .inputFileNil: AFError.responseSerializationFailed(reason: .inputFileNil)
  case .inputFileReadFailed(let file):
    AFError.responseSerializationFailed(reason: .inputFileReadFailed(at: file))
  case .stringSerializationFailed(let encoding):
    AFError.responseSerializationFailed(reason: .stringSerializationFailed(encoding: encoding))
  case .jsonSerializationFailed(let error):
    AFError.responseSerializationFailed(reason: .jsonSerializationFailed(error: error))
  case .decodingFailed(let thrown): legacy(thrown)
  case .customSerializationFailed(let thrown): legacy(thrown)
  case .invalidEmptyResponse: AFError.responseSerializationFailed(reason: .inputDataNilOrZeroLength)
  }
}
