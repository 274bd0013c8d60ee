public import Alamofire
import Foundation

/// The error of a download of an image.
public enum AFIError: Error, Sendable {
  /// The download was cancelled.
  case requestCancelled
  /// The response cannot be decoded as an image. The associated value says why.
  case imageSerializationFailed(ImageError)
  /// The request failed.
  case alamofireError(AFError)

  /// Wraps an error of a request, or returns the ``AFIError`` in it.
  init(_ error: AFError) {
    switch error {
    case .explicitlyCancelled: self = .requestCancelled
    case .responseSerializationFailed(reason: .customSerializationFailed(error: let cause as AFIError)):
      self = cause
    default: self = .alamofireError(error)
    }
  }
}

extension AFIError {
  /// Whether the download was cancelled.
  public var isRequestCancelledError: Bool { if case .requestCancelled = self { true } else { false } }
  /// Whether the response could not be decoded.
  public var isImageSerializationFailedError: Bool {
    if case .imageSerializationFailed = self { true } else { false }
  }
  /// Whether the request failed.
  public var isAlamofireError: Bool { if case .alamofireError = self { true } else { false } }
}

extension AFIError: CustomStringConvertible, LocalizedError {
  /// The text of ``description``.
  public var errorDescription: String? { description }

  /// The reason of the failure.
  public var description: String {
    switch self {
    case .requestCancelled: "The request for the image was cancelled."
    case .imageSerializationFailed(let cause): "The response cannot be decoded as an image. \(cause)"
    case .alamofireError(let error): String(describing: error)
    }
  }
}

/// The response of a download of an image.
public typealias AFIDataResponse<Value> = DataResponse<Value, AFIError>
/// The result of a download of an image.
public typealias AFIResult<Value> = Result<Value, AFIError>
