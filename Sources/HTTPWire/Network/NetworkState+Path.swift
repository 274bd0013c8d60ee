// From links, addresses and routes to an answer: pure, so that any network can be tried in a test.
extension NetworkState {
  /// Returns the path to the rest of the world: over the preferred default route whose link can carry packets.
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
