public import Foundation
import FoundationNetworking

extension AFError: LocalizedError {
  /// A sentence about the failure, the message of the underlying error, if there is one, and the remedy, if it is
  /// known.
  public var errorDescription: String? { ReadableText.lines(sentence) }

  private var sentence: String {
    switch self {
    case .createUploadableFailed(let error):
      "What was to be uploaded could not be made: \(error.message)"
    case .createURLRequestFailed(let error):
      "The URL request could not be made: \(error.message)"
    case .downloadedFileMoveFailed(let error, let source, let destination):
      "The downloaded file could not be moved from \(source.path) to \(destination.path): "
        + error.message
    case .explicitlyCancelled:
      "The request was cancelled."
    case .invalidURL(let url):
      URL.remedy(ofInvalid: "\(url)")
    case .multipartEncodingFailed(let reason): reason.message
    case .parameterEncodingFailed(let reason): reason.message
    case .parameterEncoderFailed(let reason): reason.message
    case .requestAdaptationFailed(let error):
      "A request adapter failed: \(error.message)"
    case .requestRetryFailed(let retryError, let originalError):
      "A request retrier failed: \(retryError.message.asSentence) "
        + "It was asked because of: \(Self.firstCause(originalError, of: retryError).message)"
    case .responseValidationFailed(let reason): reason.message
    case .responseSerializationFailed(let reason): reason.message
    case .serverTrustEvaluationFailed(let reason): reason.message
    case .sessionDeinitialized:
      "The session was released while the request was under way. "
        + "Keep a reference to the session until its requests have ended."
    case .sessionInvalidated(let error):
      if let error {
        "The session was invalidated: \(error.message)"
      } else {
        "The session was invalidated; make a new one for further requests."
      }
    case .sessionTaskFailed(let error):
      "The transfer failed: \(error.message)"
    case .urlRequestValidationFailed(let reason): reason.message
    }
  }

  /// Returns the failure for which retriers were asked first. If a serializer failed, they are asked again, about their
  /// own error, which must not be described twice.
  private static func firstCause(_ error: any Error, of retryError: any Error) -> any Error {
    guard case .requestRetryFailed(let earlier, let cause)? = error as? AFError,
      earlier.message == retryError.message
    else { return error }
    return firstCause(cause, of: retryError)
  }
}

extension AFError.MultipartEncodingFailureReason {
  var message: String {
    switch self {
    case .bodyPartURLInvalid(let url):
      "A part of the form can be made of a file URL only, not of \(url.shownText)."
    case .bodyPartFilenameInvalid(let url):
      "A part of the form needs a file name, and \(url.shownText) does not end in one. Give the name and the MIME type."
    case .bodyPartFileNotReachable(let url):
      "The file for a part of the form cannot be reached: \(url.path). Does it exist, and may it be read?"
    case .bodyPartFileNotReachableWithError(let url, let error):
      "The file for a part of the form cannot be reached: \(url.path): \(error.message)"
    case .bodyPartFileIsDirectory(let url):
      "A part of the form can be made of a file only, and this is a directory: \(url.path)."
    case .bodyPartFileSizeNotAvailable(let url):
      "The size of the file for a part of the form is not known: \(url.path)."
    case .bodyPartFileSizeQueryFailedWithError(let url, let error):
      "The size of the file for a part of the form is not known: \(url.path): \(error.message)"
    case .bodyPartInputStreamCreationFailed(let url):
      "The file for a part of the form cannot be opened: \(url.path). May it be read?"
    case .outputStreamCreationFailed(let url):
      "The file for the encoded form cannot be opened: \(url.path). May its folder be written to?"
    case .outputStreamFileAlreadyExists(let url):
      "The form cannot be written to \(url.path): there is a file already. Remove it, or choose another name."
    case .outputStreamURLInvalid(let url):
      "The form can be written to a file URL only, not to \(url.shownText)."
    case .outputStreamWriteFailed(let error):
      "The encoded form could not be written: \(error.message)"
    case .inputStreamReadFailed(let error):
      "A part of the form could not be read: \(error.message)"
    }
  }
}

extension AFError.UnexpectedInputStreamLength: LocalizedError {
  /// Says both lengths.
  public var errorDescription: String? {
    "The stream was announced with \(bytesExpected) bytes but held \(bytesRead)."
  }
}

extension AFError.ParameterEncodingFailureReason {
  var message: String {
    switch self {
    case .missingURL:
      "The parameters could not be put into the request: it has no URL."
    case .jsonEncodingFailed(let error):
      "The parameters could not be encoded as JSON: \(error.message)"
    case .customEncodingFailed(let error):
      "A custom parameter encoding failed: \(error.message)"
    }
  }
}

extension AFError.ParameterEncoderFailureReason {
  var message: String {
    switch self {
    case .missingRequiredComponent(.url):
      "The parameters could not be placed: the request has no URL."
    case .missingRequiredComponent(.httpMethod(let rawValue)):
      "The parameters could not be placed: the request has no method (\(rawValue))."
    case .encoderFailed(let error):
      "The parameters could not be encoded: \(error.message)"
    }
  }
}

extension AFError.ResponseValidationFailureReason {
  var message: String {
    switch self {
    case .dataFileNil:
      "The response could not be validated: there is no downloaded file."
    case .dataFileReadFailed(let url):
      "The response could not be validated: the downloaded file cannot be read: \(url.path)."
    case .missingContentType(let acceptable):
      "The response has no content type, and only these are accepted: \(acceptable.joined(separator: ", "))."
    case .unacceptableContentType(let acceptable, let type):
      "The response is of the content type \(type), and only these are accepted: "
        + "\(acceptable.joined(separator: ", "))."
    case .unacceptableStatusCode(let code):
      "The status code of the response is not accepted: \(code)."
    case .customValidationFailed(let error as ResponseRefusal): error.message
    case .customValidationFailed(let error):
      "The response was refused: \(error.message)"
    }
  }
}

extension AFError.ResponseSerializationFailureReason {
  var message: String {
    switch self {
    case .inputDataNilOrZeroLength:
      "The response has no body, and neither its method nor its status code allows that. "
        + "If an empty response is right, name the status code in emptyResponseCodes."
    case .inputFileNil:
      "The response could not be read: there is no downloaded file."
    case .inputFileReadFailed(let url):
      "The downloaded file cannot be read: \(url.path)."
    case .stringSerializationFailed(let encoding):
      "The body of the response is not text in the encoding \(encoding)."
    case .jsonSerializationFailed(let error):
      "The body of the response is not JSON: \(error.message)"
    case .decodingFailed(let error):
      "The body of the response could not be decoded: \(error.message)"
    case .customSerializationFailed(let error):
      "The response could not be serialized: \(error.message)"
    case .invalidEmptyResponse(let type):
      "The response is empty, and \(type) has no value for that. "
        + "Conform it to EmptyResponse, or ask for Empty."
    }
  }
}

extension AFError.URLRequestValidationFailureReason {
  var message: String {
    switch self {
    case .bodyDataInGETRequest(let data):
      "A GET request must not have a body, and this one has \(data.count.bytes). "
        + "Use another method, or put the parameters into the query."
    }
  }
}

extension AFError: CustomStringConvertible, CustomDebugStringConvertible {
  /// The case with its values and a sentence for people, without secrets of URLs:
  /// `responseValidationFailed(reason: unacceptableStatusCode(code: 404)): The status code …`.
  ///
  /// The text is for people and may change. It ends with method and URL, if the failure carries them.
  public var description: String {
    let sentence = errorDescription.map { ": \($0)" } ?? ""
    return ReadableText.lines(
      CaseText(self).description + sentence + (transferText.map { " [\($0)]" } ?? ""))
  }

  /// ``description`` after the name of the type.
  public var debugDescription: String { "AFError.\(description)" }

  /// Method and URL of a failed transfer.
  private var transferText: String? {
    guard case .sessionTaskFailed(let error) = self, let error = error as? URLError,
      let url = error.failingURL,
      !(errorDescription ?? "").contains(url.shownText)
    else { return nil }
    let method = error.userInfo[URLError.methodKey] as? String
    return [method, url.shownText].compactMap { $0 }.joined(separator: " ")
  }
}

extension AFError.MultipartEncodingFailureReason: CustomStringConvertible, CustomDebugStringConvertible {
  /// The case with its values, without secrets of URLs.
  public var description: String { ReadableText.lines(CaseText(self).description) }

  /// ``description`` after the name of the type.
  public var debugDescription: String { "Alamofire.AFError.MultipartEncodingFailureReason.\(description)" }
}

/// A case of an enumeration with its values: `unacceptableStatusCode(code: 404)`.
///
/// Swift prints the full names of all types, and URLs with their passwords.
struct CaseText: CustomStringConvertible {
  let description: String

  init<Value>(_ value: Value) {
    guard let child = Mirror(reflecting: value).children.first, let name = child.label else {
      // `Mirror` does not know the name of a case without values, and Swift prints it.
      description = (value as? AFError).map(Self.plainName) ?? String(describing: value)
      return
    }
    let mirror = Mirror(reflecting: child.value)
    let values =
      mirror.displayStyle == .tuple ? mirror.children.map { ($0.label, $0.value) } : [(nil, child.value)]
    let texts = values.map { label, value in
      let text = Self.text(of: value)
      return label.map { $0.hasPrefix(".") ? text : "\($0): \(text)" } ?? text
    }
    description = "\(name)(\(texts.joined(separator: ", ")))"
  }

  private static func plainName(_ error: AFError) -> String {
    error.isExplicitlyCancelledError ? "explicitlyCancelled" : "sessionDeinitialized"
  }

  private static func text(of value: Any) -> String {
    switch value {
    case let error as AFError: CaseText(error).description
    case let error as any Error: text(ofError: error)
    case let url as URL: url.shownText
    case let data as Data: data.count.bytes
    case let text as String: URL.shown(invalid: text).debugDescription
    case is any AFErrorReason: CaseText(value).description
    case let convertible as any URLConvertible: URL.shown(invalid: "\(convertible)")
    default: Redaction.standard.urls(in: "\(value)").replacing("Alamofire.", with: "")
    }
  }

  /// Returns the type of an error and its case. The sentence around it has the error's message.
  private static func text(ofError error: any Error) -> String {
    switch error {
    case let error as URLError: "URLError.\(error.code.name)"
    case let error as DecodingError: "DecodingError.\(Mirror(reflecting: error).children.first?.label ?? "")"
    case let error as EncodingError: "EncodingError.\(Mirror(reflecting: error).children.first?.label ?? "")"
    case let error as CocoaError: "CocoaError \(error.errorCode)"
    default:
      type(of: error) is NSError.Type
        ? "\((error as NSError).domain) \((error as NSError).code)" : Redaction.standard.urls(in: "\(error)")
    }
  }
}

/// A reason of an ``AFError``.
private protocol AFErrorReason {}

extension AFError.MultipartEncodingFailureReason: AFErrorReason {}
extension AFError.ParameterEncodingFailureReason: AFErrorReason {}
extension AFError.ParameterEncoderFailureReason: AFErrorReason {}
extension AFError.ParameterEncoderFailureReason.RequiredComponent: AFErrorReason {}
extension AFError.ResponseValidationFailureReason: AFErrorReason {}
extension AFError.ResponseSerializationFailureReason: AFErrorReason {}
extension AFError.ServerTrustFailureReason: AFErrorReason {}
extension AFError.URLRequestValidationFailureReason: AFErrorReason {}

extension URLError.Code {
  /// The name of the constant, such as `timedOut`; the number of others.
  var name: String { Self.names[self] ?? "Code(\(rawValue))" }

  private static let names: [URLError.Code: String] = [
    .appTransportSecurityRequiresSecureConnection: "appTransportSecurityRequiresSecureConnection",
    .badServerResponse: "badServerResponse", .badURL: "badURL", .cancelled: "cancelled",
    .cannotConnectToHost: "cannotConnectToHost", .cannotCreateFile: "cannotCreateFile",
    .cannotDecodeContentData: "cannotDecodeContentData", .cannotFindHost: "cannotFindHost",
    .cannotWriteToFile: "cannotWriteToFile", .clientCertificateRejected: "clientCertificateRejected",
    .clientCertificateRequired: "clientCertificateRequired",
    .dataLengthExceedsMaximum: "dataLengthExceedsMaximum", .fileDoesNotExist: "fileDoesNotExist",
    .fileIsDirectory: "fileIsDirectory", .httpTooManyRedirects: "httpTooManyRedirects",
    .networkConnectionLost: "networkConnectionLost", .noPermissionsToReadFile: "noPermissionsToReadFile",
    .notConnectedToInternet: "notConnectedToInternet",
    .redirectToNonExistentLocation: "redirectToNonExistentLocation",
    .requestBodyStreamExhausted: "requestBodyStreamExhausted", .resourceUnavailable: "resourceUnavailable",
    .secureConnectionFailed: "secureConnectionFailed",
    .serverCertificateHasBadDate: "serverCertificateHasBadDate",
    .serverCertificateHasUnknownRoot: "serverCertificateHasUnknownRoot",
    .serverCertificateNotYetValid: "serverCertificateNotYetValid",
    .serverCertificateUntrusted: "serverCertificateUntrusted", .timedOut: "timedOut", .unknown: "unknown",
    .unsupportedURL: "unsupportedURL", .userAuthenticationRequired: "userAuthenticationRequired",
    .zeroByteResource: "zeroByteResource",
    .backgroundSessionWasDisconnected: "backgroundSessionWasDisconnected",
    .backgroundSessionInUseByAnotherProcess: "backgroundSessionInUseByAnotherProcess",
  ]
}

extension DecodingError {
  /// The mismatch and its coding path; Foundation's own description is only "the data is missing".
  var sentence: String {
    switch self {
    case .keyNotFound(let key, let context):
      "There is no value for the key \"\(key.stringValue)\" \(Self.place(context.codingPath))."
    case .valueNotFound(let type, let context):
      "Expected \(Self.noun(of: type)) \(Self.place(context.codingPath)), found null."
    case .typeMismatch(let type, let context):
      "Expected \(Self.noun(of: type)) \(Self.place(context.codingPath)), found \(Self.found(in: context.debugDescription))."
    case .dataCorrupted(let context):
      (context.debugDescription.isEmpty ? "It is not valid" : context.debugDescription).asSentence
        + (context.codingPath.isEmpty ? "" : " That is \(Self.place(context.codingPath)).")
    @unknown default: localizedDescription
    }
  }

  /// Describes a coding path: `at slides[2].title`, `at the top`.
  static func place(_ path: [any CodingKey]) -> String {
    guard !path.isEmpty else { return "at the top" }
    var text = ""
    for key in path {
      if let index = key.intValue {
        text += "[\(index)]"
      } else {
        text += text.isEmpty ? key.stringValue : ".\(key.stringValue)"
      }
    }
    return "at \(text)"
  }

  /// Describes a type: `an Int`, `an object`.
  private static func noun(of type: Any.Type) -> String {
    let name = "\(type)"
    if name.hasPrefix("Dictionary<") { return "an object" }
    if name.hasPrefix("Array<") { return "an array" }
    return (name.first.map { "AEIOU".contains($0) } == true ? "an " : "a ") + name
  }

  /// Returns the kind of value that a decoder of Foundation has found: "Expected to decode Int but found a string
  /// instead."
  private static func found(in text: String) -> String {
    guard let start = text.range(of: "but found "), let end = text.range(of: " instead") else {
      return "a value of another type"
    }
    guard start.upperBound < end.lowerBound else { return "a value of another type" }
    let kind = text[start.upperBound..<end.lowerBound]
    if kind == "a dictionary" { return "an object" }
    return kind.hasPrefix("a ") || kind.hasPrefix("an ") ? String(kind) : "a \(kind)"
  }
}

extension DecodingError {
  /// Returns the error with the beginning of the body, if the body is not in the format of the decoder. An example is
  /// an HTML page instead of JSON. Other errors are returned unchanged.
  func showing(_ body: Data) -> DecodingError {
    guard case .dataCorrupted(let context) = self, context.codingPath.isEmpty else { return self }
    return .dataCorrupted(
      Context(
        codingPath: [],
        debugDescription: context.debugDescription.asSentence + BodyExcerpt.sentence(body),
        underlyingError: context.underlyingError))
  }
}

extension NSError {
  /// Returns the error of `JSONSerialization` with the beginning of the body.
  func showing(_ body: Data) -> NSError {
    let reason = userInfo[NSDebugDescriptionErrorKey] as? String ?? localizedDescription
    let text = reason.asSentence + BodyExcerpt.sentence(body)
    return NSError(
      domain: domain, code: code,
      userInfo: userInfo.merging([NSLocalizedDescriptionKey: text]) { _, new in new })
  }
}

extension EncodingError {
  /// Which value could not be encoded, and why: Foundation's own description says no more than "the data
  /// isn't in the correct format".
  var sentence: String {
    guard case .invalidValue(_, let context) = self, !context.debugDescription.isEmpty else {
      return localizedDescription
    }
    return "\(context.debugDescription.asSentence) That is \(DecodingError.place(context.codingPath))."
  }
}

extension String {
  /// The text with a full stop at its end, if it has none.
  var asSentence: String { hasSuffix(".") || hasSuffix("?") || hasSuffix("!") ? self : self + "." }
}

extension Error {
  /// The message of an error inside another one.
  ///
  /// An error without its own message is printed with its values, because Foundation's text for it names only the type
  /// and a number.
  var message: String {
    switch self {
    case let error as DecodingError: error.sentence
    case let error as EncodingError: error.sentence
    case let error as any LocalizedError where error.errorDescription != nil: localizedDescription
    case is any CustomNSError: localizedDescription.withoutPreamble
    default:
      type(of: self) is NSError.Type
        ? localizedDescription.withoutPreamble
        : Redaction.standard.urls(in: String(reflecting: self)).asSentence
    }
  }
}

extension String {
  /// The text without the sentence that Foundation puts before its reasons.
  fileprivate var withoutPreamble: String {
    let preamble = "The operation could not be completed. "
    return hasPrefix(preamble) && !hasPrefix(preamble + "(") ? String(dropFirst(preamble.count)) : self
  }
}
