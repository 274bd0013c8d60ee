import Glibc

/// The carrier of the requests of a loop.
package enum RequestEngine: String, Sendable {
  /// libcurl, which will leave.
  case curl
  /// The connections of this library.
  case own

  /// The engine of programs. In debug builds, the environment variable `ALAMOFIRE_TEST_ENGINE` chooses another one.
  package static let standard: RequestEngine = {
    #if DEBUG
      if let name = getenv("ALAMOFIRE_TEST_ENGINE") {
        return RequestEngine(rawValue: String(cString: name)) ?? .own
      }
    #endif
    return .own
  }()
}
