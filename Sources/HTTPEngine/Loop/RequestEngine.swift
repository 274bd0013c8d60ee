import Glibc

/// The carrier of the requests of a loop.
package enum RequestEngine: String, Sendable {
  /// libcurl.
  case curl
  /// The connections of this library; libcurl carries what they cannot carry yet.
  case own

  /// The engine of programs. In debug builds, the environment variable `ALAMOFIRE_TEST_ENGINE` chooses another one.
  ///
  /// With the compilation condition `ALAMOFIRE_OWN_ENGINE`, the engine of this library is chosen without the variable.
  /// `ENGINE=own Scripts/bench` sets the condition, so that release builds of both engines can be compared.
  package static let standard: RequestEngine = {
    #if DEBUG
      if let name = getenv("ALAMOFIRE_TEST_ENGINE") {
        return RequestEngine(rawValue: String(cString: name)) ?? .curl
      }
    #endif
    #if ALAMOFIRE_OWN_ENGINE
      return .own
    #else
      return .curl
    #endif
  }()
}
