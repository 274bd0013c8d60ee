public import Alamofire
import Foundation

/// An error of this library about a request or a response.
///
/// Failures of the network are `URLError`s, and errors of users' own code arrive unchanged; so handlers carry an
/// `Error`:
///
/// ```swift
/// if let error = response.error as? AFError {
///   print(error.responseCode ?? 0)
/// } else if let error = response.error as? URLError {
///   print(error.code)
/// }
/// ```
///
/// Unchecked, since ``URLConvertible`` says nothing of threads: the value in ``invalidURL(url:)`` is the user's
/// own, and this library does not touch it again.
public enum AFError: Error, @unchecked Sendable {
  /// The reasons why parameters could not be put into a request.
  public enum ParameterEncodingFailureReason: Sendable {
    /// The request has no URL.
    case missingURL
    /// The parameters cannot be written as JSON.
    case jsonEncodingFailed(error: any Error)
    /// The parameters cannot be written as a property list.
    case propertyListEncodingFailed(error: any Error)
  }

  /// The reasons why a multipart form could not be encoded.
  public typealias MultipartEncodingFailureReason = Alamofire::AFError.MultipartEncodingFailureReason

  /// The reasons why a response was refused.
  public enum ResponseValidationFailureReason: Sendable {
    /// The file of a download is not known.
    case dataFileNil
    /// The file of a download cannot be read.
    case dataFileReadFailed(at: URL)
    /// The response has no content type, and not every type is acceptable.
    case missingContentType(acceptableContentTypes: [String])
    /// The content type is not one of the acceptable ones.
    case unacceptableContentType(acceptableContentTypes: [String], responseContentType: String)
    /// The status code is not one of the acceptable ones.
    case unacceptableStatusCode(code: Int)
  }

  /// The reasons why a response could not be turned into a value.
  public enum ResponseSerializationFailureReason: Sendable {
    /// A response without a body.
    case inputDataNil
    /// A response without a body, or with an empty one.
    case inputDataNilOrZeroLength
    /// A download without a file.
    case inputFileNil
    /// The downloaded file cannot be read.
    case inputFileReadFailed(at: URL)
    /// The body is not text in this encoding.
    case stringSerializationFailed(encoding: String.Encoding)
    /// The body is not JSON.
    case jsonSerializationFailed(error: any Error)
    /// The body is not a property list.
    case propertyListSerializationFailed(error: any Error)
  }

  /// A ``URLConvertible`` gave no URL.
  case invalidURL(url: any URLConvertible)
  /// A built-in ``ParameterEncoding`` failed.
  case parameterEncodingFailed(reason: ParameterEncodingFailureReason)
  /// A multipart form could not be encoded.
  case multipartEncodingFailed(reason: MultipartEncodingFailureReason)
  /// A built-in validation refused the response.
  case responseValidationFailed(reason: ResponseValidationFailureReason)
  /// A built-in serializer could not turn the response into its value.
  case responseSerializationFailed(reason: ResponseSerializationFailureReason)
}
