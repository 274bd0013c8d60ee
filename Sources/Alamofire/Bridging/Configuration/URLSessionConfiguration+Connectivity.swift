public import FoundationNetworking

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
