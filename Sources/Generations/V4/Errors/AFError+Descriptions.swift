public import Alamofire
import Foundation

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
