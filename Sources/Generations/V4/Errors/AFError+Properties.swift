import Alamofire
public import Foundation

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
