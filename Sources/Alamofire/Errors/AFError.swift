public import Foundation

/// The reason why a request, or a step of it, failed.
///
/// ```
/// AFError
/// ├─ before sending   invalidURL · createURLRequestFailed · createUploadableFailed · parameterEncodingFailed
/// │                   parameterEncoderFailed · multipartEncodingFailed · urlRequestValidationFailed
/// │                   requestAdaptationFailed
/// ├─ on the way       sessionTaskFailed · serverTrustEvaluationFailed · downloadedFileMoveFailed
/// ├─ after it         responseValidationFailed · responseSerializationFailed · requestRetryFailed
/// └─ ended by us      explicitlyCancelled · sessionDeinitialized · sessionInvalidated
/// ```
///
/// The message (`localizedDescription`) is for people and may change; programs read the case and the
/// properties:
///
/// ```swift
/// if let error = response.error {
///   if error.responseCode == 404 { showMissing() }
///   if let failure = error.underlyingError as? URLError { show(failure.code) }
/// }
/// ```
public indirect enum AFError: Error, Sendable {
  /// The body of an upload could not be created.
  case createUploadableFailed(error: any Error)
  /// A `URLRequestConvertible` failed with an error that is not an ``AFError``.
  case createURLRequestFailed(error: any Error)
  /// A downloaded file could not be moved to its destination.
  case downloadedFileMoveFailed(error: any Error, source: URL, destination: URL)
  /// The request was cancelled, by `cancel()` or by a stream whose consumer went away.
  case explicitlyCancelled
  /// A ``URLConvertible`` gave no URL.
  case invalidURL(url: any URLConvertible)
  /// A multipart form could not be encoded.
  case multipartEncodingFailed(reason: MultipartEncodingFailureReason)
  /// A `ParameterEncoding` failed.
  case parameterEncodingFailed(reason: ParameterEncodingFailureReason)
  /// A `ParameterEncoder` failed.
  case parameterEncoderFailed(reason: ParameterEncoderFailureReason)
  /// A request adapter failed, or returned a request that must not be sent.
  case requestAdaptationFailed(error: any Error)
  /// A request retrier answered with its own error.
  case requestRetryFailed(retryError: any Error, originalError: any Error)
  /// A validator refused the response.
  case responseValidationFailed(reason: ResponseValidationFailureReason)
  /// The response could not be serialized.
  case responseSerializationFailed(reason: ResponseSerializationFailureReason)
  /// The server's identity was not accepted.
  case serverTrustEvaluationFailed(reason: ServerTrustFailureReason)
  /// The session was released while the request was under way.
  case sessionDeinitialized
  /// The session was invalidated, with the error that it was given, if any.
  case sessionInvalidated(error: (any Error)?)
  /// The transfer failed; the error is a `URLError` for everything that the network did.
  case sessionTaskFailed(error: any Error)
  /// The `URLRequest` may not be sent as it is.
  case urlRequestValidationFailed(reason: URLRequestValidationFailureReason)
}

extension Error {
  /// The error as an ``AFError``, or `nil` when it is another one.
  public var asAFError: AFError? {
    self as? AFError
  }

  /// Returns this error as an ``AFError``; ends the program if it is another one.
  ///
  /// Use it only where every error is an ``AFError``. `Error.asAFError` does not trap.
  ///
  /// - Parameters:
  ///   - message: The message that is printed before the program ends.
  ///   - file:    The file in the message; by default the caller's.
  ///   - line:    The line in the message; by default the caller's.
  public func asAFError(
    orFailWith message: @autoclosure () -> String, file: StaticString = #fileID, line: UInt = #line
  ) -> AFError {
    guard let error = self as? AFError else {
      preconditionFailure(message(), file: file, line: line)
    }
    return error
  }

  /// Returns this error if it is an ``AFError``, otherwise the given one.
  package func asAFError(or other: @autoclosure () -> AFError) -> AFError {
    self as? AFError ?? other()
  }
}

extension AFError {
  /// Makes the error for the caller of an evaluator that threw `error`.
  init(refusal error: any Error) {
    self = error.asAFError(or: .serverTrustEvaluationFailed(reason: .customEvaluationFailed(error: error)))
  }

  /// The error of a task, in Foundation's terms.
  var ofTask: any Error { isExplicitlyCancelledError ? URLError(.cancelled) : underlyingError ?? self }
}

extension AFError {
  /// The reasons why a multipart form could not be encoded.
  public enum MultipartEncodingFailureReason: Sendable {
    /// The URL of a part is not a file URL.
    case bodyPartURLInvalid(url: URL)
    /// The URL of a part has no usable last path component.
    case bodyPartFilenameInvalid(in: URL)
    /// The file of a part cannot be reached.
    case bodyPartFileNotReachable(at: URL)
    /// The system answered with an error when the file of a part was looked for.
    case bodyPartFileNotReachableWithError(atURL: URL, error: any Error)
    /// The file of a part is a directory.
    case bodyPartFileIsDirectory(at: URL)
    /// The system did not say how large the file of a part is.
    case bodyPartFileSizeNotAvailable(at: URL)
    /// The system answered with an error when asked how large the file of a part is.
    case bodyPartFileSizeQueryFailedWithError(forURL: URL, error: any Error)
    /// The file of a part cannot be opened for reading.
    case bodyPartInputStreamCreationFailed(for: URL)
    /// The file for the encoded form cannot be opened for writing.
    case outputStreamCreationFailed(for: URL)
    /// A file exists already where the encoded form was to be written.
    case outputStreamFileAlreadyExists(at: URL)
    /// The URL for the encoded form is not a file URL.
    case outputStreamURLInvalid(url: URL)
    /// Writing the encoded form failed.
    case outputStreamWriteFailed(error: any Error)
    /// Reading a part failed.
    case inputStreamReadFailed(error: any Error)
  }

  /// The error inside `.inputStreamReadFailed` when a stream does not hold as many bytes as announced.
  public struct UnexpectedInputStreamLength: Error, Sendable {
    /// The number of bytes that was announced for the part.
    public var bytesExpected: UInt64
    /// The number of bytes that the stream held.
    public var bytesRead: UInt64

    /// Makes the error of the two lengths, both in bytes.
    public init(bytesExpected: UInt64, bytesRead: UInt64) {
      self.bytesExpected = bytesExpected
      self.bytesRead = bytesRead
    }
  }

  /// The reasons why a `ParameterEncoding` failed.
  public enum ParameterEncodingFailureReason: Sendable {
    /// The request has no URL.
    case missingURL
    /// The parameters cannot be written as JSON.
    case jsonEncodingFailed(error: any Error)
    /// An encoding of the user's own failed.
    case customEncodingFailed(error: any Error)
  }

  /// The reasons why a `ParameterEncoder` failed.
  public enum ParameterEncoderFailureReason: Sendable {
    /// A part of the request without which the parameters cannot be placed.
    public enum RequiredComponent: Sendable {
      /// The request has no URL, or an invalid one.
      case url
      /// The request has no valid method; the invalid one is attached.
      case httpMethod(rawValue: String)
    }

    /// The request lacks a part that is needed to add the parameters.
    case missingRequiredComponent(RequiredComponent)
    /// The encoder below failed.
    case encoderFailed(error: any Error)
  }

  /// The reasons why a response was refused.
  public enum ResponseValidationFailureReason: Sendable {
    /// The download has no file, so that its size is unknown.
    case dataFileNil
    /// The file of a download cannot be read.
    case dataFileReadFailed(at: URL)
    /// The response has no usable `Content-Type`, and not every type is acceptable.
    case missingContentType(acceptableContentTypes: [String])
    /// The `Content-Type` is not one of the acceptable ones.
    case unacceptableContentType(acceptableContentTypes: [String], responseContentType: String)
    /// The status code is not one of the acceptable ones.
    case unacceptableStatusCode(code: Int)
    /// A validator of the user's own refused the response.
    case customValidationFailed(error: any Error)
  }

  /// The reasons why a response could not be turned into a value.
  public enum ResponseSerializationFailureReason: Sendable {
    /// The response has no body, and neither the method nor the status code allows that.
    case inputDataNilOrZeroLength
    /// The download has no file.
    case inputFileNil
    /// The downloaded file cannot be read.
    case inputFileReadFailed(at: URL)
    /// The body is not text in this encoding.
    case stringSerializationFailed(encoding: String.Encoding)
    /// The body is not JSON.
    case jsonSerializationFailed(error: any Error)
    /// A `DataDecoder` failed.
    case decodingFailed(error: any Error)
    /// A serializer of the user's own failed.
    case customSerializationFailed(error: any Error)
    /// The body is empty, and this type has no value for that.
    case invalidEmptyResponse(type: String)
  }

  /// The reasons why a `URLRequest` may not be sent.
  public enum URLRequestValidationFailureReason: Sendable {
    /// A GET request carries a body (RFC 9110 §9.3.1: content in a GET has no meaning).
    case bodyDataInGETRequest(Data)
  }
}

extension AFError {
  /// The error inside ``multipartEncodingFailed(reason:)`` when the form itself, or one of its streams, is at
  /// fault, and not the system.
  ///
  /// A boundary or a header field arrives in `.outputStreamWriteFailed`, a stream in `.inputStreamReadFailed`.
  public struct MultipartFormFailure: Error, Sendable, Equatable, LocalizedError {
    /// The kind of a failure. More kinds may be added.
    public struct Kind: Sendable, Hashable {
      private let name: String

      /// The boundary contains characters that are not allowed (RFC 2046 §5.1.1).
      public static let invalidBoundary = Kind(name: "invalidBoundary")
      /// A MIME type or a header field contains control characters, which could add another field.
      public static let invalidHeaderField = Kind(name: "invalidHeaderField")
      /// A stream was read by an earlier encoding, or closed by other code.
      public static let streamAlreadyRead = Kind(name: "streamAlreadyRead")
      /// A stream could not be read and reports no error.
      public static let streamUnreadable = Kind(name: "streamUnreadable")
    }

    /// The kind of the failure.
    public let kind: Kind
    private let message: String

    init(_ kind: Kind, _ message: String) {
      self.kind = kind
      self.message = message
    }

    /// The error message: the failure and its remedy.
    public var errorDescription: String? { message }
  }
}

extension AFError.MultipartFormFailure {
  static func boundary(_ boundary: String) -> Self {
    let shown = ReadableText.line(String(boundary.prefix(80)))
    return Self(
      .invalidBoundary,
      "\"\(shown)\" cannot be a boundary: it takes 1 to 70 letters, digits, spaces and '()+_,-./:=? and does not "
        + "end with a space (RFC 2046 §5.1.1).")
  }

  static let alreadyRead = Self(
    .streamAlreadyRead,
    "The stream of a part was read by an earlier encoding, and a stream can be read only once. Use a file or Data, "
      + "or make the form anew.")

  static let closed = Self(
    .streamAlreadyRead, "The stream of a part was closed before the form was encoded.")

  static let unreadable = Self(.streamUnreadable, "The stream of a part could not be opened, or broke off.")
}
