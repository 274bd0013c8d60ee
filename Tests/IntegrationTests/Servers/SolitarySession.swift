import Alamofire

extension URLSessionConfiguration {
  /// The default one, but for a cache and cookies: those of other tests must not take part.
  static var solitary: URLSessionConfiguration {
    let configuration = URLSessionConfiguration.af.ephemeral
    configuration.urlCache = nil
    return configuration
  }
}

extension Session {
  /// Makes a session with neither a shared cache nor shared cookies.
  static func solitary(_ options: TransportOptions = TransportOptions()) -> Session {
    Session(configuration: .solitary, transportOptions: options)
  }
}
