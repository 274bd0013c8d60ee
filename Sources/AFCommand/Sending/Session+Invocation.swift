import Alamofire
import Foundation

extension Session {
  /// A session for one invocation. It keeps nothing on disk. Throws when the trusted certificates cannot
  /// be read.
  convenience init(_ invocation: Invocation) throws(UsageError) {
    let configuration = URLSessionConfiguration.af.ephemeral
    configuration.headers = Self.headers
    if let timeout = invocation.timeout { configuration.timeoutIntervalForRequest = timeout }
    var options = TransportOptions()
    if invocation.isHTTP1Only { options.httpVersions = .http1Only }
    if let file = invocation.trustFile { options.trustStore = .pem(try Self.contents(of: file)) }
    // A GET with a body was requested explicitly.
    options.allowsBodyInGETRequests = true
    switch invocation.redirects {
    case .follow(let limit?): options.redirectLimit = limit
    case .follow(nil): break
    case .show: options.redirectLimit = 0
    }
    self.init(configuration: configuration, transportOptions: options)
  }

  private static func contents(of file: String) throws(UsageError) -> Data {
    guard let contents = FileManager.default.contents(atPath: file) else {
      throw UsageError("The certificates in '\(file)' cannot be read; check the path.")
    }
    return contents
  }

  /// The header fields of every request.
  static var headers: HTTPHeaders {
    [.defaultAcceptEncoding, .userAgent("af/\(AFInfo.version) Alamofire/\(AFInfo.version)")]
  }
}
