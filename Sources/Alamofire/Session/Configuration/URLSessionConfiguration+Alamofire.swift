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

  /// A fresh configuration that keeps cache, cookies and credentials in memory, and whose header fields are
  /// `HTTPHeaders.default`. Each such configuration has an ``HTTPCache`` of its own, of 4 MiB.
  public static var ephemeral: URLSessionConfiguration {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = HTTPCache(memoryCapacity: 4_194_304, diskCapacity: 0, directory: nil)
    configuration.headers = .default
    return configuration
  }
}

extension URLSessionConfiguration {
  /// Whether requests wait for a network instead of failing. Default: `false`.
  ///
  /// If no route leads to the host, the request waits, and its delegate and the monitors are called once
  /// (`urlSession(_:taskIsWaitingForConnectivity:)`). The request is sent when there is a network, and fails with
  /// `URLError.timedOut` after `timeoutIntervalForResource`; `timeoutIntervalForRequest` is paused. As for
  /// ``OfflineRetrier``, links and routes of the kernel make a network. A host that does not respond, and a lost
  /// connection, are errors.
  ///
  /// Foundation on Linux has no such property, so it belongs to this object and to the sessions that are made with
  /// it. Set it again on a copy.
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
