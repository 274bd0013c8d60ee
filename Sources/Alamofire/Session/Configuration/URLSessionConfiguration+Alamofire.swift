public import FoundationNetworking
public import HTTPWire

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

extension URLSessionConfiguration {
  /// Whether requests wait for a network when the machine has none, rather than fail. Default: `false`.
  ///
  /// A request that could not be sent because there is no way to its host stays as it is; its delegate and the
  /// monitors are told once (`urlSession(_:taskIsWaitingForConnectivity:)`). It is sent when there is a network,
  /// and fails with `URLError.timedOut` when `timeoutIntervalForResource` is over; `timeoutIntervalForRequest` does
  /// not count meanwhile. What counts as a network is what the kernel says of links and routes, as for
  /// ``OfflineRetrier``. A host that does not answer, and a connection that is lost, are errors as before.
  ///
  /// Foundation on Linux has no such property, so it belongs to this very object and to the sessions that are made
  /// with it: set it anew on a copy of your own.
  ///
  /// ```swift
  /// let configuration = URLSessionConfiguration.af.default
  /// configuration.waitsForConnectivity = true
  /// let session = Session(configuration: configuration)
  /// ```
  public var waitsForConnectivity: Bool {
    get { ConfigurationAdditions.shared[self].waitsForConnectivity }
    set { ConfigurationAdditions.shared.update(self) { $0.waitsForConnectivity = newValue } }
  }
}

extension URLSessionConfiguration {
  /// The header fields that every request of a session gets, unless the request has them itself
  /// (`httpAdditionalHeaders`). Reading gives them in no particular order, and none when they are not
  /// all text; writing replaces all of them.
  public var headers: HTTPHeaders {
    get { (httpAdditionalHeaders as? [String: String]).map(HTTPHeaders.init) ?? HTTPHeaders() }
    set { httpAdditionalHeaders = newValue.dictionary }
  }
}
