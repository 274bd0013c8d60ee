import Foundation

extension AFError: CustomStringConvertible, CustomDebugStringConvertible {
  /// The case with its values, as Swift prints it, without the passwords of URLs.
  public var description: String {
    switch self {
    case .invalidURL(let url):
      let text = "\(url)"
      let shown = URL.shown(invalid: text)
      return url is String ? "invalidURL(url: \(shown.debugDescription))" : "invalidURL(url: \(shown))"
    case .explicitlyCancelled: return "explicitlyCancelled"
    case .sessionDeinitialized: return "sessionDeinitialized"
    case .createUploadableFailed, .createURLRequestFailed, .downloadedFileMoveFailed,
      .multipartEncodingFailed,
      .parameterEncodingFailed, .parameterEncoderFailed, .requestAdaptationFailed, .requestRetryFailed,
      .responseValidationFailed, .responseSerializationFailed, .serverTrustEvaluationFailed,
      .sessionInvalidated, .sessionTaskFailed, .urlRequestValidationFailed:
      guard let value = Mirror(reflecting: self).children.first else { return "AFError" }
      return URL.shown(in: "\(value.label ?? "AFError")\(value.value)")
    }
  }

  /// ``description`` with the name of the type in front.
  public var debugDescription: String { "Alamofire.AFError.\(description)" }
}

extension AFError.MultipartEncodingFailureReason: CustomStringConvertible, CustomDebugStringConvertible {
  /// The case with its values, as Swift prints it, without the passwords of URLs.
  public var description: String {
    guard let value = Mirror(reflecting: self).children.first else { return "MultipartEncodingFailureReason" }
    return URL.shown(in: "\(value.label ?? "")\(value.value)")
  }

  /// ``description`` with the name of the type in front.
  public var debugDescription: String { "Alamofire.AFError.MultipartEncodingFailureReason.\(description)" }
}
