/// The network of a system at one time: links, their addresses, and the routes over them.
package struct NetworkState: Sendable, Equatable {
  /// An interface.
  package struct Link: Sendable, Equatable {
    package var index: Int32
    package var name: String
    package var kind: NetworkLinkKind
    /// Switched on.
    package var isUp: Bool
    /// The link has a carrier: a cable, an access point.
    package var isRunning: Bool

    package init(index: Int32, name: String, kind: NetworkLinkKind, isUp: Bool = true, isRunning: Bool = true)
    {
      self.index = index
      self.name = name
      self.kind = kind
      self.isUp = isUp
      self.isRunning = isRunning
    }
  }

  package struct Address: Sendable, Equatable {
    package var link: Int32
    package var family: IPAddress.Family
    /// Whether it is good beyond its link.
    package var isGlobal: Bool

    package init(link: Int32, family: IPAddress.Family, isGlobal: Bool = true) {
      self.link = link
      self.family = family
      self.isGlobal = isGlobal
    }
  }

  /// A route of the kind that leads somewhere, rather than refusing.
  package struct Route: Sendable, Equatable {
    package var family: IPAddress.Family
    /// 0 is the default route.
    package var prefixLength: UInt8
    package var link: Int32
    /// The smaller is preferred.
    package var priority: UInt32
    package var hasGateway: Bool

    package init(
      family: IPAddress.Family, prefixLength: UInt8 = 0, link: Int32, priority: UInt32 = 0,
      hasGateway: Bool = true
    ) {
      self.family = family
      self.prefixLength = prefixLength
      self.link = link
      self.priority = priority
      self.hasGateway = hasGateway
    }
  }

  package var links: [Link]
  package var addresses: [Address]
  package var routes: [Route]

  package init(links: [Link] = [], addresses: [Address] = [], routes: [Route] = []) {
    self.links = links
    self.addresses = addresses
    self.routes = routes
  }
}

/// The kind of an interface.
package enum NetworkLinkKind: Sendable, Hashable, CaseIterable {
  case loopback, wired, wifi, cellular
  /// Tunnels, bridges and unknown kinds.
  case other
}

/// The way that the system would send a packet for one address.
package enum RouteAnswer: Sendable, Equatable {
  case link(Int32, hasGateway: Bool)
  /// The address is one of the machine's own.
  case local
  case unreachable
}

/// Whether packets can be sent, and by which type of interface.
package enum NetworkPath: Sendable, Equatable {
  case unreachable
  case reachable(NetworkLinkKind, isLocal: Bool, isDirect: Bool)
}

// From links, addresses and routes to an answer: pure, so that any network can be tried in a test.
extension NetworkState {
  /// Returns the path to the rest of the world: over the preferred default route with a link that can carry packets.
  ///
  /// - Parameter isAllowed: Which links count.
  package func pathToAnywhere(
    over isAllowed: (NetworkLinkKind) -> Bool = { _ in true }
  ) -> NetworkPath {
    let usable = routes.filter { route in
      guard route.prefixLength == 0, hasSource(route.family), let link = link(route.link) else {
        return false
      }
      return link.isUsable && link.kind != .loopback && isAllowed(link.kind)
    }
    // Of equal ones the first, and IPv4 before IPv6: the priorities of the two say nothing of each other.
    let best = IPAddress.Family.allCases.lazy
      .compactMap { family in
        usable.filter { $0.family == family }.min { $0.priority < $1.priority }
      }
      .first
    guard let best, let link = link(best.link) else { return .unreachable }
    return .reachable(link.kind, isLocal: false, isDirect: !best.hasGateway)
  }

  /// Returns the path to a host that has several addresses: to the first of them that can be reached.
  package func path(to answers: [RouteAnswer]) -> NetworkPath {
    for answer in answers {
      switch answer {
      case .unreachable: continue
      case .local: return .reachable(.loopback, isLocal: true, isDirect: true)
      case .link(let index, let hasGateway):
        guard let link = link(index), link.isUsable else { continue }
        return .reachable(link.kind, isLocal: false, isDirect: !hasGateway)
      }
    }
    return .unreachable
  }

  /// Whether packets can be sent to other machines, perhaps only within the same network.
  package var reachesOtherMachines: Bool {
    routes.contains { route in
      guard hasSource(route.family), let link = link(route.link) else { return false }
      return link.isUsable && link.kind != .loopback
    }
  }

  private func link(_ index: Int32) -> Link? {
    links.first { $0.index == index }
  }

  /// Whether there is an address that packets can be sent from, perhaps another link's.
  private func hasSource(_ family: IPAddress.Family) -> Bool {
    addresses.contains { address in
      address.family == family && address.isGlobal && link(address.link).map { $0.kind != .loopback } == true
    }
  }
}

extension NetworkState.Link {
  fileprivate var isUsable: Bool { isUp && isRunning }
}
