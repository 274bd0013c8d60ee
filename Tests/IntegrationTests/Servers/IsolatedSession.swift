import Alamofire

extension URLSessionConfiguration {
  /// The default configuration with its own cache and cookies, because it must not share them with other tests.
  static var isolated: URLSessionConfiguration {
    let configuration = URLSessionConfiguration.af.ephemeral
    configuration.urlCache = nil
    return configuration
  }
}

extension Session {
  /// Returns a session with its own cache and cookies.
  static func isolated(_ options: TransportOptions = TransportOptions()) -> Session {
    Session(configuration: .isolated, transportOptions: options)
  }
}
