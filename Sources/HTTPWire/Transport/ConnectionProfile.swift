/// The settings of requests that may share a connection: the options of their session, or of the one request that has
/// its own. Profiles are compared by identity, so that the hot path does not compare options one by one.
package final class ConnectionProfile: Sendable {
  package let options: TransportOptions
  /// The most connections that are open to one host at a time; at least 1.
  package let connectionsPerHost: Int
  /// A client has no more ports for the connections to one address.
  private static let mostConnections = 65_535

  /// The evaluator of servers; `nil` leaves the decision to the engine: the trust store, the host, the dates.
  package let evaluator: (any ServerEvaluator)?
  /// Connections and TLS sessions of another partition are not used, because they have another identity or were
  /// accepted by another evaluator.
  package let partition: Int
  /// The proxies of the session's configuration, for options that leave the choice to the environment.
  package let systemProxies: ProxyTable?
  /// The proxies; `nil` leaves the choice to the environment of the process.
  package let proxies: ProxyTable?
  /// Whether names are looked up by requests.
  package let asksForNames: Bool
  /// The limits of the requests to one host; `nil` without any.
  package let hostLimits: HostLimits?
  /// The number of requests of the session that may be in flight at a time.
  package let mostInFlight: Int
  /// The bandwidth of the session.
  package let sessionBandwidth: TransportOptions.Bandwidth
  /// Whether the request or the session has a limited bandwidth.
  package let isThrottled: Bool
  /// The limits of the phases of transfers; `nil` without any.
  package let phaseLimits: PhaseLimits?
  /// Whether anything is remembered of hosts between requests.
  package let hasHostPolicies: Bool
  /// Whether ``proxies`` lead nowhere but straight to the servers; `nil` when that is up to the environment.
  package let isDirect: Bool?

  /// The profile of hops after a redirect to another origin, without the client identity of the request; `nil` if it
  /// is the same.
  package let elsewhere: ConnectionProfile?

  package init(
    options: TransportOptions = TransportOptions(), connectionsPerHost: Int = 6,
    evaluator: (any ServerEvaluator)? = nil, systemProxies: ProxyTable? = nil,
    elsewhere: ConnectionProfile? = nil,
    session: ConnectionProfile? = nil
  ) {
    self.elsewhere = elsewhere
    self.options = options
    self.connectionsPerHost = min(max(1, connectionsPerHost), Self.mostConnections)
    self.evaluator = evaluator
    self.systemProxies = systemProxies
    proxies = ProxyTable.named(by: options, system: systemProxies)
    isDirect = proxies?.isDirect
    asksForNames = options.nameServiceURL != nil
    phaseLimits = PhaseLimits(options.timeLimits)
    sessionBandwidth = session?.sessionBandwidth ?? options.sessionBandwidth
    isThrottled = sessionBandwidth.isLimited || options.requestBandwidth.isLimited
    hostLimits = HostLimits(options.requestLimits)
    mostInFlight = session?.mostInFlight ?? options.requestLimits.perSession.map { max(1, $0) } ?? .max
    hasHostPolicies = options.strictTransportSecurity != nil || options.alternativeServices != nil
    partition = TrustPartition.number(of: options, proxies)
  }
}
