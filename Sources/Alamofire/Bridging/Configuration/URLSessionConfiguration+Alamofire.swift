public import FoundationNetworking
import HTTPWire

extension AlamofireExtension where ExtendedType: URLSessionConfiguration {
  /// A fresh copy of the system's default configuration whose header fields are `HTTPHeaders.default`.
  ///
  /// ```swift
  /// let configuration = URLSessionConfiguration.af.default
  /// configuration.timeoutIntervalForRequest = 10  // seconds
  /// ```
  public static var `default`: URLSessionConfiguration {
    let configuration = URLSessionConfiguration.default
    configuration.headers = .default
    return configuration
  }

  /// A fresh configuration that keeps cache, cookies and credentials in memory, and whose header fields
  /// are `HTTPHeaders.default`. Its cache is an ``HTTPCache`` of its own, of 4 MiB.
  public static var ephemeral: URLSessionConfiguration {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = HTTPCache(memoryCapacity: 4_194_304, diskCapacity: 0, directory: nil)
    configuration.headers = .default
    return configuration
  }
}
