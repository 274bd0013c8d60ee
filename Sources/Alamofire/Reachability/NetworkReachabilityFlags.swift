import HTTPWire

/// The reachability of the network, as the set of flags of Apple's systems, with the same values.
///
/// On Linux ``reachable``, ``isLocalAddress``, ``isDirect`` and ``isWWAN`` occur. The others describe connections on
/// demand; they exist so that code that tests them compiles.
public struct NetworkReachabilityFlags: OptionSet, Sendable, Hashable {
  /// The bits, as `SCNetworkReachabilityFlags` has them.
  public let rawValue: UInt32

  /// Makes a set of bits.
  public init(rawValue: UInt32) {
    self.rawValue = rawValue
  }

  /// The way leads over a connection that comes and goes, such as PPP.
  public static let transientConnection = NetworkReachabilityFlags(rawValue: 1 << 0)
  /// Packets can be sent.
  public static let reachable = NetworkReachabilityFlags(rawValue: 1 << 1)
  /// A connection must be made first.
  public static let connectionRequired = NetworkReachabilityFlags(rawValue: 1 << 2)
  /// Traffic establishes that connection.
  public static let connectionOnTraffic = NetworkReachabilityFlags(rawValue: 1 << 3)
  /// That connection needs an action of the user.
  public static let interventionRequired = NetworkReachabilityFlags(rawValue: 1 << 4)
  /// A program establishes that connection on demand.
  public static let connectionOnDemand = NetworkReachabilityFlags(rawValue: 1 << 5)
  /// The address is one of this machine.
  public static let isLocalAddress = NetworkReachabilityFlags(rawValue: 1 << 16)
  /// The route has no gateway.
  public static let isDirect = NetworkReachabilityFlags(rawValue: 1 << 17)
  /// The route uses a modem for mobile networks.
  public static let isWWAN = NetworkReachabilityFlags(rawValue: 1 << 18)

  /// Whether packets can be sent without an action of the user.
  package var isActuallyReachable: Bool {
    let connectsByItself =
      contains(.connectionOnDemand) || contains(.connectionOnTraffic)
    let needsNobody = connectsByItself && !contains(.interventionRequired)
    return contains(.reachable) && (!contains(.connectionRequired) || needsNobody)
  }

  init(_ path: NetworkPath) {
    switch path {
    case .unreachable: self = []
    case .reachable(let kind, let isLocal, let isDirect):
      self = .reachable
      if isLocal { insert(.isLocalAddress) }
      if isDirect { insert(.isDirect) }
      if kind == .cellular { insert(.isWWAN) }
    }
  }
}

/// The name that the flags have on Apple's systems.
public typealias SCNetworkReachabilityFlags = NetworkReachabilityFlags
