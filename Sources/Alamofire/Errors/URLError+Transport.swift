import Foundation
import FoundationNetworking
import HTTPWire

extension AFError {
  /// Converts a failure of the transport into the public error. All such conversions happen here.
  ///
  /// - Parameters:
  ///   - method:     The method of the request that failed.
  ///   - resumeData: The data with which the failed download can be resumed.
  init(_ failure: TransportFailure, url: String, method: String? = nil, resumeData: Data? = nil) {
    switch failure.kind {
    case .cancelled: self = .explicitlyCancelled
    case .shutDown: self = .sessionDeinitialized
    default:
      self = .sessionTaskFailed(error: URLError(failure, url: url, method: method, resumeData: resumeData))
    }
  }
}

extension AFError {
  /// Returns the error of a transfer with the method of its request, if it names a URL and no method.
  func naming(method: String?) -> AFError {
    guard case .sessionTaskFailed(let error as URLError) = self, let method, error.failingURL != nil,
      error.userInfo[URLError.methodKey] == nil
    else { return self }
    let info = error.userInfo.merging([URLError.methodKey: method]) { old, _ in old }
    return .sessionTaskFailed(error: URLError(error.code, userInfo: info))
  }
}

extension URLError {

  /// The key of the phase in the `userInfo` of a timeout.
  public static let timedOutPhaseKey = "org.alamofire.timedOutPhase"

  /// The key of the request's method in the `userInfo` of a failed transfer.
  static let methodKey = "org.alamofire.method"

  /// The phase in which the request timed out; `nil` for other errors, and if the phase is not known.
  ///
  /// ```swift
  /// let response = await session.request(url).serializingData().response
  /// if let error = response.error?.underlyingError as? URLError, error.timedOutPhase == .connect {
  ///   print("no connection in time: \(error.localizedDescription)")
  /// }
  /// ```
  public var timedOutPhase: TransportOptions.TimeLimits.Phase? {
    (userInfo[Self.timedOutPhaseKey] as? String).flatMap(TransportOptions.TimeLimits.Phase.init(rawValue:))
  }

  init(_ failure: TransportFailure, url: String, method: String? = nil, resumeData: Data? = nil) {
    var details: [String: Any] = [:]
    if let method { details[Self.methodKey] = method }
    if let resumeData { details[NSURLSessionDownloadTaskResumeData] = resumeData }
    self.init(
      Self.code(of: failure.kind), failure.message, url: url, phase: failure.phase, details: details)
  }

  /// Makes an error with a sentence and the URL that it concerns, without user and password.
  init(
    _ code: URLError.Code, _ message: String, url: String?,
    phase: TransportOptions.TimeLimits.Phase? = nil, details: [String: Any] = [:]
  ) {
    var info = details
    if let phase { info[Self.timedOutPhaseKey] = phase.rawValue }
    info[NSLocalizedDescriptionKey] = ReadableText.lines(message)
    if let url = url.flatMap({ WireTarget($0)?.url ?? Redaction.standard.url($0) }) {
      info[NSURLErrorFailingURLErrorKey] = URL(wire: url)
    }
    self.init(code, userInfo: info)
  }

  /// Returns the code that Apple's system gives for the same failure.
  static func code(of kind: TransportFailure.FailureKind) -> URLError.Code {
    switch kind {
    case .cancelled, .shutDown: .cancelled
    case .timedOut: .timedOut
    case .badURL: .badURL
    case .unsupportedURL, .unsupportedFeature, .addressRefused: .unsupportedURL
    case .cannotFindHost: .cannotFindHost
    case .cannotFindProxy, .cannotConnectToProxy, .cannotConnectToHost, .alternativeUnfit:
      .cannotConnectToHost
    case .notConnected: .notConnectedToInternet
    case .connectionLost: .networkConnectionLost
    case .badServerResponse: .badServerResponse
    case .secureConnectionFailed: .secureConnectionFailed
    case .certificateUntrusted, .trustRefused, .trustUndecided: .serverCertificateUntrusted
    case .certificateHasUnknownRoot: .serverCertificateHasUnknownRoot
    case .certificateHasBadDate: .serverCertificateHasBadDate
    case .certificateNotYetValid: .serverCertificateNotYetValid
    case .clientCertificateRejected: .clientCertificateRejected
    case .clientCertificateRequired, .identityUndecided: .clientCertificateRequired
    case .cannotDecodeContent: .cannotDecodeContentData
    case .dataLengthExceedsMaximum: .dataLengthExceedsMaximum
    case .cannotReadBody: .requestBodyStreamExhausted
    case .fileDoesNotExist: .fileDoesNotExist
    case .fileIsDirectory: .fileIsDirectory
    case .noPermissionToReadFile: .noPermissionsToReadFile
    case .cannotCreateFile: .cannotCreateFile
    case .cannotWriteFile: .cannotWriteToFile
    case .cannotContinue: .resourceUnavailable
    case .resourceUnavailable: .resourceUnavailable
    case .userAuthenticationRequired, .proxyAuthenticationRequired: .userAuthenticationRequired
    case .unknown: .unknown
    }
  }

  // MARK: Refused requests

  static var noURL: URLError { URLError(.badURL, "The request has no URL.", url: nil) }

  static func unsupported(_ url: URL) -> URLError {
    let text = url.shownText
    guard let scheme = url.scheme?.lowercased() else {
      return URLError(
        .unsupportedURL, "\"\(text)\" is not absolute; begin it with https:// and a host.", url: text)
    }
    guard scheme == "http" || scheme == "https" else { return unsupported(scheme: text) }
    if let port = url.port, !(0...65535).contains(port) {
      return URLError(
        .badURL, "The port \(port) of \"\(text)\" is out of range; ports are 1 to 65535.", url: text)
    }
    return URLError(.badURL, "\"\(text)\" has no host, or one that cannot be.", url: text)
  }
}

extension URLError {
  /// Returns the error for a URL with an unsupported scheme.
  static func unsupported(scheme text: String) -> URLError {
    let scheme = text.prefix { $0 != ":" }.lowercased()
    let text = Redaction.standard.url(text)
    if scheme.contains(".") || scheme == "localhost" {
      // `localhost:8080/users`: a host and a port, which the syntax of URLs makes a scheme.
      return URLError(
        .unsupportedURL, "\"\(text)\" has no scheme; begin it with http:// or https://.", url: text)
    }
    return URLError(
      .unsupportedURL,
      "URLs with \(scheme): are not supported; use http, https, file or data, or a URLProtocol class of your own.",
      url: text)
  }

  /// Makes the error for a redirect that is not followed.
  static func refused(_ refusal: Redirect.Refusal, from url: String) -> URLError {
    switch refusal {
    case .tooMany: URLError(.httpTooManyRedirects, refusal.message, url: url)
    case .unsupportedScheme: URLError(.unsupportedURL, refusal.message, url: url)
    case .badLocation: URLError(.redirectToNonExistentLocation, refusal.message, url: url)
    }
  }
}

extension URL {
  /// The text without user information and secret query items, for descriptions and errors.
  var shownText: String { ReadableText.line(Redaction.standard.url(absoluteString)) }

  /// Returns an invalid URL without the text before the last `@` if that text has a colon. It may be a password,
  /// because a password without percent-encoding often makes a URL invalid.
  static func shown(invalid text: String) -> String {
    let rest = text[(text.range(of: "://")?.upperBound ?? text.startIndex)...]
    guard let at = rest.utf8.lastIndex(of: UInt8(ascii: "@")), rest[..<at].utf8.contains(UInt8(ascii: ":"))
    else {
      return Redaction.standard.url(text)
    }
    return Redaction.standard.url("\(text[..<rest.startIndex])\(Redaction.mask)\(text[at...])")
  }

  /// Returns the sentences about a text that is not a URL.
  static func remedy(ofInvalid text: String) -> String {
    guard text.contains(where: { !$0.isWhitespace }) else {
      return "This is not a valid URL: the text is empty. Begin it with https:// and a host."
    }
    let shown = shown(invalid: text)
    let fault = "This is not a valid URL: \(shown)."
    if text.contains(where: \.isWhitespace) {
      return "\(fault) It contains white space, which must be percent-encoded (%20) or removed."
    }
    if let port = portText(of: shown), !port.allSatisfy({ $0.isASCII && $0.isNumber }) {
      return "\(fault) Its port is not a number; ports are 1 to 65535."
    }
    return "\(fault) Characters that have no place in a URL must be percent-encoded."
  }

  /// Returns the text between the host and the path; `nil` without a colon after the host, or with user information,
  /// which may be a password.
  static func portText(of text: String) -> Substring? {
    guard let mark = text.range(of: "://") else { return nil }
    let authority = text[mark.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    guard !authority.contains("@"), let colon = authority.lastIndex(of: ":") else { return nil }
    let port = authority[authority.index(after: colon)...]
    return port.isEmpty || port.contains("]") ? nil : port
  }
}
