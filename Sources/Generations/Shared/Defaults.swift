import Alamofire
import Foundation
import FoundationNetworking

extension TransportOptions {
  /// The options with the behavior of both older generations. A GET may have a body, and the factory methods make the
  /// URL request on the caller's thread.
  var forOlderGenerations: TransportOptions {
    var options = self
    options.allowsBodyInGETRequests = true
    options.makesRequestsAtOnce = true
    return options
  }
}

extension URLSessionConfiguration {
  /// Makes a configuration with the identifier of a background session and without header fields.
  static func plainBackground(withIdentifier identifier: String) -> URLSessionConfiguration {
    let configuration = URLSessionConfiguration.af.background(withIdentifier: identifier)
    configuration.httpAdditionalHeaders = nil
    return configuration
  }
}

extension URL {
  /// The text for descriptions, without password and secret query items because logs keep it.
  var textWithoutPassword: String { ReadableText.line(Redaction.standard.url(absoluteString)) }
}
