import Foundation
import FoundationNetworking

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

  /// ``description`` with the name of the type in front.
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

  /// ``description`` with the name of the type in front.
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
