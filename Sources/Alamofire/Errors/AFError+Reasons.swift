public import Foundation

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

    /// The request lacks a part that is needed to place the parameters.
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
    /// The `Content-Type` is none of the acceptable ones.
    case unacceptableContentType(acceptableContentTypes: [String], responseContentType: String)
    /// The status code is none of the acceptable ones.
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
