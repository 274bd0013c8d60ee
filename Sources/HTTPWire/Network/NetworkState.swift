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
