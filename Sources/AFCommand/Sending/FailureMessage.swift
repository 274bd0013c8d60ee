import Alamofire
import Foundation

/// The error message of a failed request, and the option that can help.
enum FailureMessage {
  static func text(_ error: AFError, isVerbose: Bool) -> String {
    guard let transport = error.underlyingError as? URLError else {
      return inOptions(error.localizedDescription)
    }
    let message = transport.localizedDescription
    return [inOptions(message), advice(transport)].compactMap { $0 }.joined(separator: " ")
  }

  /// The library's names, and those of the options.
  private static let names = [
    (" Raise TransportOptions.redirectLimit to follow more.", ""),
    ("TransportOptions.trustStore", "--ca FILE"),
    (" or the proxy variable", " or the variable of the proxy"),
    ("TransportOptions.proxy", "--proxy"),
    ("TransportOptions.netrcFile", "--netrc-file"),
    (" Correct it, or set it to nil.", ""),
    (" (timeoutIntervalForRequest)", ""),
    (" (timeLimits.total)", ""),
    (" (timeoutIntervalForResource)", ""),
    ("HTTP/1.1 (httpVersions)", "--http1.1"),
    ("; use Data or a file.", "; name a file in place of standard input."),
    ("TransportOptions.clientIdentity", "--cert FILE"),
    ("TransportOptions.", "--"),
  ]

  /// Returns a text of the library with the options of the command in place of its names.
  static func inOptions(_ text: String) -> String {
    names.reduce(text) { $0.replacingOccurrences(of: $1.0, with: $1.1) }
  }

  private static func advice(_ error: URLError) -> String? {
    switch error.code {
    case .timedOut:
      switch error.timedOutPhase {
      case .total: "With --max-time SECONDS it may take longer."
      case .nameLookup, .connect, .tlsHandshake:
        "With --connect-timeout and --timeout SECONDS it may take longer."
      case .requestSend, .firstByte, .idle, nil: "With --timeout SECONDS it may take longer."
      }
    case .serverCertificateHasUnknownRoot: "Name its certificate with --ca FILE."
    case .httpTooManyRedirects: "With --max-redirects N more are followed, with --no-follow none."
    case .clientCertificateRequired: "Name a certificate with --cert FILE."
    default: nil
    }
  }
}
