extension ConnectionProfile {
  /// Whether the servers are those that everybody reaches, are judged as every session judges them, and see nobody in
  /// particular: only then may a response be given to other sessions.
  package var isUsual: Bool {
    judge?.judgesAsUsual != false && TrustPartition.isUsual(options) && leadsToUsualServers
      && !options.refusesPrivateAddresses
  }

  private var leadsToUsualServers: Bool {
    options.unixSocket == nil && options.hostOverrides.isEmpty && options.nameServiceURL == nil
      && options.localInterface == nil && options.proxy == .environment && systemProxies == nil
  }

  /// Tells profiles of one session apart whose servers are not the usual ones.
  package var cachePartition: String {
    if leadsToUsualServers, !options.refusesPrivateAddresses { return String(partition) }
    let routes = options.hostOverrides.map { "\($0.host):\($0.port ?? 0)>\($0.target):\($0.targetPort ?? 0)" }
    let parts =
      [options.unixSocket, options.nameServiceURL, options.localInterface].map { $0 ?? "-" } + routes
      // What a session got without this guard is nothing that it may show with it.
      + (options.refusesPrivateAddresses ? ["public"] : [])
    return "\(partition)\n\(parts.joined(separator: "\n"))"
  }
}
