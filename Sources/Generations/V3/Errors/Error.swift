public import Foundation

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
