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
  /// A `URLRequestConvertible`, a modifier or an encoder of the caller's failed with an error that is not an
  /// ``AFError``.
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
    /// An encoding of the caller's failed. The library never creates this case; such an encoding may throw it.
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

extension AFError {
  /// The reasons why a server was not trusted.
  ///
  /// The evaluators of this library throw `noRequiredEvaluator`, `noCertificatesFound`, `noPublicKeysFound`,
  /// `trustEvaluationFailed`, `certificatePinningFailed` and `publicKeyPinningFailed`; the others come from Apple's
  /// older systems, for your own evaluators.
  public enum ServerTrustFailureReason: Sendable {
    /// The result of an evaluation, in the terms of Apple's Security framework.
    public struct Output: Sendable {
      /// The host of the request.
      public let host: String
      /// The certificates of the server.
      public let trust: SecTrust
      /// The status code of the failure.
      public let status: OSStatus
      /// The result.
      public let result: SecTrustResultType

      /// Makes an output of its parts.
      public init(_ host: String, _ trust: SecTrust, _ status: OSStatus, _ result: SecTrustResultType) {
        self.host = host
        self.trust = trust
        self.status = status
        self.result = result
      }
    }

    /// Every host needs an evaluator, and there is none for this one.
    case noRequiredEvaluator(host: String)
    /// Certificates are to be pinned, but none were found.
    case noCertificatesFound
    /// Public keys are to be pinned, but none were found.
    case noPublicKeysFound
    /// A policy could not be set.
    case policyApplicationFailed(trust: SecTrust, policy: SecPolicy, status: OSStatus)
    /// Anchors could not be set.
    case settingAnchorCertificatesFailed(status: OSStatus, certificates: [SecCertificate])
    /// The policy that checks for revoked certificates could not be created.
    case revocationPolicyCreationFailed
    /// The certificate chain was not accepted; the error is a ``ServerTrust/Failure``.
    case trustEvaluationFailed(error: (any Error)?)
    /// The certificate chain was not accepted, without a check of the host.
    case defaultEvaluationFailed(output: Output)
    /// The certificate chain was not accepted for the host.
    case hostValidationFailed(output: Output)
    /// A certificate was revoked, or it is not known whether one was.
    case revocationCheckFailed(output: Output, options: RevocationTrustEvaluator.Options)
    /// No certificate of the server is one of the pinned ones.
    case certificatePinningFailed(
      host: String, trust: SecTrust, pinnedCertificates: [SecCertificate],
      serverCertificates: [SecCertificate])
    /// No public key of the server is a pinned one. `pinnedKeys` does not contain keys that are pinned by their
    /// digests; ``requiredPins`` and the error description name these.
    case publicKeyPinningFailed(host: String, trust: SecTrust, pinnedKeys: [SecKey], serverKeys: [SecKey])
    /// An evaluator of the user's own refused.
    case customEvaluationFailed(error: any Error)
  }
}

extension AFError.ServerTrustFailureReason {
  /// The pins of which the server's keys had to match one: the pins of a ``PublicKeysTrustEvaluator`` or `pinnedKeys`.
  /// Empty for every reason except `publicKeyPinningFailed`.
  ///
  /// ```swift
  /// if case .serverTrustEvaluationFailed(let reason) = error { print(reason.requiredPins) }
  /// ```
  public var requiredPins: [PublicKeyPin] {
    guard case .publicKeyPinningFailed(_, let trust, let pinnedKeys, _) = self else { return [] }
    // An evaluator of the user's own names only its keys.
    return trust.requiredPins.isEmpty ? pinnedKeys.map(\.pin) : trust.requiredPins
  }

  var underlyingError: (any Error)? {
    switch self {
    case .customEvaluationFailed(let error): error
    case .trustEvaluationFailed(let error): error
    case .noRequiredEvaluator, .noCertificatesFound, .noPublicKeysFound, .policyApplicationFailed,
      .settingAnchorCertificatesFailed, .revocationPolicyCreationFailed, .defaultEvaluationFailed,
      .hostValidationFailed, .revocationCheckFailed, .certificatePinningFailed, .publicKeyPinningFailed:
      nil
    }
  }

  var message: String { "The server was not trusted: " + sentence }

  private var sentence: String {
    switch self {
    case .noRequiredEvaluator(let host):
      "all hosts need an evaluator, and there is none for \(host). "
        + "Add one to the ServerTrustManager, or set allHostsMustBeEvaluated to false."
    case .noCertificatesFound: "no certificates were found to pin."
    case .noPublicKeysFound: "no public keys were found to pin."
    case .policyApplicationFailed(let trust, let policy, let status):
      "\(policy) could not be applied to the certificates of \(trust.host) (status \(status))."
    case .settingAnchorCertificatesFailed(let status, let certificates):
      "\(certificates.count) certificates could not be made its anchors (status \(status))."
    case .revocationPolicyCreationFailed: "the check for revoked certificates could not be set up."
    case .trustEvaluationFailed(let error):
      error?.message ?? "its certificate chain was not accepted."
    case .defaultEvaluationFailed(let output): "its certificate chain was not accepted (\(output.summary))."
    case .hostValidationFailed(let output): "its certificate is not valid for the host (\(output.summary))."
    case .revocationCheckFailed(let output, _):
      "one of its certificates was revoked, or may have been (\(output.summary))."
    case .certificatePinningFailed(let host, _, let pinned, let shown):
      "none of the \(pinned.count) pinned certificates is one of \(host), which has shown: "
        + shown.map(\.subject).joined(separator: "; ") + "."
    case .publicKeyPinningFailed(let host, _, _, let shown):
      "none of the pinned public keys is one of \(host). Pinned: " + Self.list(requiredPins)
        + ". Keys of the server: " + Self.list(shown.map(\.pin)) + "."
    case .customEvaluationFailed(let error): "an evaluator refused it: \(error.message)"
    }
  }

  private static func list(_ pins: [PublicKeyPin]) -> String {
    pins.isEmpty ? "none" : pins.map(\.description).joined(separator: ", ")
  }
}

extension AFError.ServerTrustFailureReason.Output {
  fileprivate var summary: String { "host \(host), status \(status), result \(result)" }
}
