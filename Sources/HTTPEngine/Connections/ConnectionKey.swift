import HTTPWire

/// The properties that the connections of one pool have in common. Two requests share a connection only if their keys
/// are equal.
struct ConnectionKey: Hashable {
  /// The origin of the requests. Where a proxy forwards them, its own origin stands here, because its connections carry
  /// requests to every server.
  let origin: Origin
  let route: Route
  /// Whether the connections lead to an alternative service, which has to speak HTTP/2.
  let isAlternative: Bool
  /// Connections of another partition have another identity, or were accepted by another evaluator.
  let partition: Int
  let settings: TLSSettings
  let versions: TransportOptions.HTTPVersions
  let localInterface: String?
  let addressFamily: TransportOptions.AddressFamily
  let refusesPrivateAddresses: Bool

  init(_ origin: Origin, _ route: Route, _ profile: ConnectionProfile, isAlternative: Bool) {
    self.isAlternative = isAlternative
    let options = profile.options
    if route.forwards, let proxy = route.proxy {
      self.origin = Origin(scheme: "http", host: proxy.host, port: proxy.port)
    } else {
      self.origin = origin
    }
    self.route = route
    partition = profile.partition
    settings = TLSSettings(options, isForProxy: false)
    versions = options.httpVersions
    localInterface = options.localInterface
    addressFamily = options.addressFamily
    refusesPrivateAddresses = options.refusesPrivateAddresses
  }

  var isSecure: Bool { origin.scheme == "https" }
}
