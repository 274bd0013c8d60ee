import Alamofire
public import FoundationNetworking

extension URLSessionConfiguration {
  /// A configuration with the name of a background session. A manager that is made with it behaves like one with a
  /// default configuration: its requests end with the process.
  public static func backgroundSessionConfigurationWithIdentifier(
    _ identifier: String
  ) -> URLSessionConfiguration {
    let configuration = URLSessionConfiguration.af.background(withIdentifier: identifier)
    configuration.httpAdditionalHeaders = nil
    return configuration
  }
}
