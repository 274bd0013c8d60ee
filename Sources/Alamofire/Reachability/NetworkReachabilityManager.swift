public import Foundation
import HTTPWire

/// Tells whether a host, or the network at large, can be reached, and listens to changes.
///
/// What is known comes from the kernel: its links, addresses and routes (netlink). It says that packets can be
/// sent, and not that anybody answers. Do not ask it before a request: make the request, and look at the error.
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
/// Keep the manager as long as you listen: one that is released tells nothing any more, and leaves neither a thread
/// nor a descriptor. It may be used from any thread.
open class NetworkReachabilityManager: @unchecked Sendable {
  // Unchecked, since the compiler checks no class that can be subclassed: its own properties are constants.

  /// Whether the network can be reached.
  public enum NetworkReachabilityStatus: Equatable, Hashable, Sendable {
    /// The system does not tell, or a host's name has not been looked up yet.
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

  /// The manager of the program for the network at large; `nil` where the system tells nothing of its network.
  public static let `default` = NetworkReachabilityManager()

  /// The queue on which changes are looked at. Not the one of the listener.
  public let reachabilityQueue: DispatchQueue

  private let core: ReachabilityCore

  /// Makes a manager for a host: the way to any of its addresses counts.
  ///
  /// A name is looked up away from the caller, first when ``status`` is asked for or listening starts, and again
  /// with every change of the network while listening. Until then the status is unknown. A name without addresses
  /// is not reachable. Addresses, and `localhost` with the names below it (RFC 6761 §6.3), need no look-up: their status
  /// is known at once.
  ///
  /// - Parameter host: A name or an address, without scheme, port and brackets. `nil` is returned for an empty
  ///   one, and where the system tells nothing of its network.
  public convenience init?(host: String) {
    guard !host.isEmpty, !host.utf8.contains(0) else { return nil }
    self.init(target: .host(host), source: SystemNetwork())
  }

  /// Makes a manager for the network at large: that there is a default route over a link that works. `nil` is
  /// returned where the system tells nothing of its network.
  public convenience init?() {
    self.init(target: .anywhere, source: SystemNetwork())
  }

  /// The same over any network; tests bring one of their own.
  package init?(target: ReachabilityTarget, source: any NetworkSource) {
    guard source.isAvailable else { return nil }
    // Changes are looked at one after the other, and on no thread of a user's.
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

  /// What is known now, in more detail; `nil` is nothing.
  open var flags: NetworkReachabilityFlags? { core.currentFlags() }

  /// What is known now. Asks the kernel, and never waits for a look-up of a name.
  open var status: NetworkReachabilityStatus { NetworkReachabilityStatus(flags) }

  /// Starts to listen; another listener is replaced.
  ///
  /// The listener gets the current status first, as soon as it is known, and from then on every status that
  /// differs from the one before.
  ///
  /// - Parameters:
  ///   - queue:    The queue of the listener. Default: the main queue.
  ///   - listener: Held until listening ends.
  /// - Returns: False when the system does not tell of changes; the listener is not called then.
  @preconcurrency
  @discardableResult
  open func startListening(
    onQueue queue: DispatchQueue = .main, onUpdatePerforming listener: @escaping Listener
  ) -> Bool {
    core.start(queue, listener)
  }

  /// Ends listening. When it was called on the queue of the listener, that one is not called any more; from
  /// elsewhere, a call that runs already may still be running. Without a listener it does nothing.
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
