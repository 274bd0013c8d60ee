import HTTPWire

/// The kind of a network interface, with the names that `NWInterface.InterfaceType` has on Apple's systems.
public enum NetworkInterfaceType: Sendable, Hashable, CaseIterable {
  /// A cable.
  case wiredEthernet
  /// A wireless network.
  case wifi
  /// A modem for mobile networks.
  case cellular
  /// The machine itself.
  case loopback
  /// Tunnels, bridges, and what the system does not tell.
  case other

  init(_ kind: NetworkLinkKind) {
    switch kind {
    case .loopback: self = .loopback
    case .wired: self = .wiredEthernet
    case .wifi: self = .wifi
    case .cellular: self = .cellular
    case .other: self = .other
    }
  }
}
