public import Foundation
package import HTTPSystem
import HTTPWire

/// Reports whether a host, or the network in general, is reachable, and calls a listener for changes.
///
/// The status is computed from the kernel's links, addresses and routes (netlink). A reachable target means that
/// packets can be sent, not that a host answers. Do not test reachability before a request: send the request, and
/// handle the error.
///
/// ```swift
/// let manager = NetworkReachabilityManager(host: "example.com")
/// manager?.startListening { status in
///   switch status {
///   case .reachable(.ethernetOrWiFi): print("on a network")
///   case .reachable(.cellular): print("on a mobile network")
///   case .notReachable: print("offline")
///   case .unknown: print("not known yet")
///   }
/// }
/// ```
///
/// Retain the manager as long as you listen: its release ends listening and frees its descriptor. It may be used from
/// any thread.
open class NetworkReachabilityManager: @unchecked Sendable {
  // Unchecked, because the compiler checks no class that can be subclassed: its own properties are constants.

  /// Whether the network can be reached.
  public enum NetworkReachabilityStatus: Equatable, Hashable, Sendable {
    /// The system does not report it, or the host's name has not been looked up yet.
    case unknown
    /// No packet can be sent there.
    case notReachable
    /// Packets can be sent, over a connection of this type.
    case reachable(ConnectionType)

    init(_ flags: NetworkReachabilityFlags?) {
      guard let flags else {
        self = .unknown
        return
      }
      self =
        flags.isActuallyReachable
        ? .reachable(flags.contains(.isWWAN) ? .cellular : .ethernetOrWiFi) : .notReachable
    }

    /// The kind of connection.
    public enum ConnectionType: Equatable, Hashable, Sendable {
      /// Everything that is not a mobile network: cables, wireless networks, tunnels, the machine itself.
      case ethernetOrWiFi
      /// A modem for mobile networks.
      case cellular
    }
  }

  /// Called with each status that differs from the one before.
  public typealias Listener = @Sendable (NetworkReachabilityStatus) -> Void

  /// The manager of the program for the network in general; `nil` if the system does not report its state.
  public static let `default` = NetworkReachabilityManager()

  /// The serial queue on which changes are evaluated. The listener has its own queue.
  public let reachabilityQueue: DispatchQueue

  private let core: ReachabilityCore

  /// Makes a manager for a host: one reachable address is sufficient.
  ///
  /// A name is looked up in the background when ``status`` is first read or listening starts. While listening, every
  /// change of the network repeats the look-up. Until then the status is unknown. A name without addresses is not
  /// reachable. Addresses, and `localhost` with the names below it (RFC 6761 §6.3), need no look-up: their status is
  /// known at once.
  ///
  /// - Parameter host: A name or an address, without scheme, port and brackets. Returns `nil` for an empty one, and
  ///   if the system does not report the state of its network.
  public convenience init?(host: String) {
    guard !host.isEmpty, !host.utf8.contains(0) else { return nil }
    self.init(target: .host(host), source: SystemNetwork())
  }

  /// Makes a manager for the network in general, which is reachable over a default route whose link is up. Returns
  /// `nil` if the system does not report the state of its network.
  public convenience init?() {
    self.init(target: .anywhere, source: SystemNetwork())
  }

  /// Makes a manager for any source of the network's state; tests use a scripted one.
  package init?(target: ReachabilityTarget, source: any NetworkSource) {
    guard source.isAvailable else { return nil }
    // Serial, so that changes are evaluated in their order.
    let queue = DispatchQueue(label: "org.alamofire.reachabilityQueue")
    reachabilityQueue = queue
    core = ReachabilityCore(target, source, queue: queue)
  }

  deinit { core.stop() }

  /// Whether packets can be sent now.
  open var isReachable: Bool { isReachableOnCellular || isReachableOnEthernetOrWiFi }

  /// Whether packets can be sent now, over a mobile network.
  open var isReachableOnCellular: Bool { status == .reachable(.cellular) }

  /// Whether packets can be sent now, over anything but a mobile network.
  open var isReachableOnEthernetOrWiFi: Bool { status == .reachable(.ethernetOrWiFi) }

  /// The current flags; `nil` if unknown.
  open var flags: NetworkReachabilityFlags? { core.currentFlags() }

  /// The current status. Reading it queries the kernel, and never waits for a look-up of a name.
  open var status: NetworkReachabilityStatus { NetworkReachabilityStatus(flags) }

  /// Starts listening, and replaces an earlier listener.
  ///
  /// The listener is called with the current status as soon as it is known, and then with every status that differs
  /// from the previous one.
  ///
  /// - Parameters:
  ///   - queue:    The queue of the listener. Default: the main queue.
  ///   - listener: Called with the status; retained until listening ends.
  /// - Returns: False if the system does not report changes; the listener is then never called.
  @preconcurrency
  @discardableResult
  open func startListening(
    onQueue queue: DispatchQueue = .main, onUpdatePerforming listener: @escaping Listener
  ) -> Bool {
    core.start(queue, listener)
  }

  /// Stops listening. If it is called on the queue of the listener, the listener is no longer called. On another
  /// thread, a call of the listener may still be running. Without a listener it has no effect.
  open func stopListening() { core.stop() }
}

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
  /// Tunnels, bridges, and interfaces of unknown type.
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

  /// The route uses a transient connection, such as PPP.
  public static let transientConnection = NetworkReachabilityFlags(rawValue: 1 << 0)
  /// Packets can be sent.
  public static let reachable = NetworkReachabilityFlags(rawValue: 1 << 1)
  /// A connection must be established first.
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
