import Alamofire
import Foundation

extension Session {
  /// A session for one invocation. It keeps nothing on disk.
  convenience init(_ invocation: Invocation) {
    let configuration = URLSessionConfiguration.af.ephemeral
    configuration.headers = Self.headers
    if let timeout = invocation.timeout { configuration.timeoutIntervalForRequest = timeout }
    var options = TransportOptions()
    if invocation.isHTTP1Only { options.httpVersions = .http1Only }
    if let file = invocation.trustFile { options.trustStore = .file(file) }
    // Who asks for a GET with a body here has a reason.
    options.allowsBodyInGETRequests = true
    switch invocation.redirects {
    case .follow(let limit?): options.redirectLimit = limit
    case .follow(nil): break
    case .show: options.redirectLimit = 0
    }
    self.init(configuration: configuration, transportOptions: options)
  }

  /// What every request of the command says of itself.
  static var headers: HTTPHeaders {
    [.defaultAcceptEncoding, .userAgent("af/\(AFInfo.version) Alamofire/\(AFInfo.version)")]
  }
}
