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

extension AFError {
  /// Whether something could not be converted to a URL.
  public var isInvalidURLError: Bool { if case .invalidURL = self { true } else { false } }

  /// Whether parameters could not be put into a request.
  public var isParameterEncodingError: Bool {
    if case .parameterEncodingFailed = self { true } else { false }
  }

  /// Whether a multipart form could not be encoded.
  public var isMultipartEncodingError: Bool {
    if case .multipartEncodingFailed = self { true } else { false }
  }

  /// Whether a built-in validation refused the response.
  public var isResponseValidationError: Bool {
    if case .responseValidationFailed = self { true } else { false }
  }

  /// Whether the response could not be turned into a value.
  public var isResponseSerializationError: Bool {
    if case .responseSerializationFailed = self { true } else { false }
  }
}

extension AFError {
  /// The value that could not be converted to a URL, for ``invalidURL(url:)``.
  public var urlConvertible: (any URLConvertible)? {
    guard case .invalidURL(let url) = self else { return nil }
    return url
  }

  /// The URL of the file that is at fault, for the reasons of ``multipartEncodingFailed(reason:)`` that have one.
  public var url: URL? { multipartError?.url }

  /// The error that this one wraps; `nil` if no error is wrapped.
  public var underlyingError: (any Error)? {
    switch self {
    case .invalidURL, .responseValidationFailed: nil
    case .multipartEncodingFailed: multipartError?.underlyingError
    case .parameterEncodingFailed(.jsonEncodingFailed(let error)),
      .parameterEncodingFailed(.propertyListEncodingFailed(let error)),
      .responseSerializationFailed(.jsonSerializationFailed(let error)),
      .responseSerializationFailed(.propertyListSerializationFailed(let error)):
      error
    case .parameterEncodingFailed(.missingURL), .responseSerializationFailed(.inputDataNil),
      .responseSerializationFailed(.inputDataNilOrZeroLength), .responseSerializationFailed(.inputFileNil),
      .responseSerializationFailed(.inputFileReadFailed),
      .responseSerializationFailed(.stringSerializationFailed):
      nil
    }
  }

  /// The content types that would have been accepted, when validation failed for the type.
  public var acceptableContentTypes: [String]? {
    switch self {
    case .responseValidationFailed(.missingContentType(let types)),
      .responseValidationFailed(.unacceptableContentType(let types, _)):
      types
    default: nil
    }
  }

  /// The content type of the response, when validation failed for it.
  public var responseContentType: String? {
    guard case .responseValidationFailed(.unacceptableContentType(_, let type)) = self else { return nil }
    return type
  }

  /// The status code of the response, when validation failed for it.
  public var responseCode: Int? {
    guard case .responseValidationFailed(.unacceptableStatusCode(let code)) = self else { return nil }
    return code
  }

  /// The encoding that the body could not be read in.
  public var failedStringEncoding: String.Encoding? {
    guard case .responseSerializationFailed(.stringSerializationFailed(let encoding)) = self else {
      return nil
    }
    return encoding
  }

  /// The equal error of the core, which has the URL, the cause and the message.
  var multipartError: Alamofire::AFError? {
    guard case .multipartEncodingFailed(let reason) = self else { return nil }
    return .multipartEncodingFailed(reason: reason)
  }
}

extension AFError: NSErrorConvertible {
  /// A sentence about the failure, followed by the message of the underlying error, if there is one.
  public var errorDescription: String? { sentence.map(ReadableText.lines) }

  private var sentence: String? {
    switch self {
    // The core leaves out passwords.
    case .invalidURL(let url): Alamofire::AFError.invalidURL(url: "\(url)").errorDescription
    case .multipartEncodingFailed: multipartError?.errorDescription
    case .parameterEncodingFailed(let reason): reason.message
    case .responseValidationFailed(let reason): reason.message
    case .responseSerializationFailed(let reason): reason.message
    }
  }
}

extension AFError: CustomStringConvertible, CustomDebugStringConvertible {
  /// The case with its values, as Swift prints it, without the password of a URL that could not be created.
  public var description: String {
    // The core leaves out passwords.
    if case .invalidURL(let url) = self { return Alamofire::AFError.invalidURL(url: "\(url)").description }
    guard let value = Mirror(reflecting: self).children.first else { return "AFError" }
    return ReadableText.lines("\(value.label ?? "AFError")\(value.value)")
  }

  /// ``description`` after the name of the type.
  public var debugDescription: String { "AlamofireV4.AFError.\(description)" }
}

extension AFError.ParameterEncodingFailureReason {
  fileprivate var message: String {
    switch self {
    case .missingURL: "The parameters could not be put into the request: it has no URL."
    case .jsonEncodingFailed(let error):
      "The parameters could not be encoded as JSON: \(error.localizedDescription)"
    case .propertyListEncodingFailed(let error):
      "The parameters could not be encoded as a property list: \(error.localizedDescription)"
    }
  }
}

extension AFError.ResponseValidationFailureReason {
  fileprivate var message: String {
    switch self {
    case .dataFileNil: "The response could not be validated: there is no downloaded file."
    case .dataFileReadFailed(let url):
      "The response could not be validated: the downloaded file cannot be read: \(url.path)."
    case .missingContentType(let acceptable):
      "The response has no content type, and only these are accepted: \(acceptable.joined(separator: ", "))."
    case .unacceptableContentType(let acceptable, let type):
      "The response is of the content type \(type), and only these are accepted: "
        + "\(acceptable.joined(separator: ", "))."
    case .unacceptableStatusCode(let code): "The status code of the response is not accepted: \(code)."
    }
  }
}

extension AFError.ResponseSerializationFailureReason {
  fileprivate var message: String {
    switch self {
    case .inputDataNil: "The response has no body."
    case .inputDataNilOrZeroLength: "The response has no body, or an empty one."
    case .inputFileNil: "The response could not be read: there is no downloaded file."
    case .inputFileReadFailed(let url): "The downloaded file cannot be read: \(url.path)."
    case .stringSerializationFailed(let encoding):
      "The body of the response is not text in the encoding \(encoding)."
    case .jsonSerializationFailed(let error):
      "The body of the response is not JSON: \(error.localizedDescription)"
    case .propertyListSerializationFailed(let error):
      "The body of the response is not a property list: \(error.localizedDescription)"
    }
  }
}
