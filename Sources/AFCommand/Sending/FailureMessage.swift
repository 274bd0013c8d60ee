import Alamofire
import Foundation

/// The error message of a failed request, and the option that can help.
enum FailureMessage {
  static func text(_ error: AFError, isVerbose: Bool) -> String {
    guard let transport = error.underlyingError as? URLError else { return error.localizedDescription }
    var message = transport.localizedDescription
    // Messages of libcurl are only for verbose output.
    if !isVerbose, let detail = message.range(of: " (libcurl ") {
      message = String(message[..<detail.lowerBound])
    }
    return [message, advice(transport.code)].compactMap { $0 }.joined(separator: " ")
  }

  private static func advice(_ code: URLError.Code) -> String? {
    switch code {
    case .timedOut: "With --timeout SECONDS it may take longer."
    case .serverCertificateHasUnknownRoot: "Name its certificate with --ca FILE."
    case .httpTooManyRedirects: "With --max-redirects N more are followed, with --no-follow none."
    default: nil
    }
  }
}
