public import Alamofire
import Foundation

/// Details of the reachability of the network; see ``NetworkReachabilityManager/flags``.
public typealias SCNetworkReachabilityFlags = Alamofire::NetworkReachabilityFlags

/// Reports whether a host, or the network in general, is reachable, and calls a listener for changes.
///
/// ```swift
/// let manager = NetworkReachabilityManager(host: "www.example.com")
/// manager?.listener = { status in print(status) }
/// manager?.startListening()
/// ```
///
/// Retain the manager as long as you listen: its release ends listening. It may be used from any thread.
open class NetworkReachabilityManager: @unchecked Sendable {
  // Unchecked, because the compiler checks no class that can be subclassed: its own properties are constants.

  /// The kind of connection.
  public enum ConnectionType: Sendable {
    /// Everything that is not a mobile network.
    case ethernetOrWiFi
    /// A modem for mobile networks.
    case wwan
  }

  /// Whether the network can be reached.
  public enum NetworkReachabilityStatus: Equatable, Sendable {
    /// The system does not report it, or the host's name has not been looked up yet.
    case unknown
    /// No packet can be sent there.
    case notReachable
    /// Packets can be sent, over a connection of this type.
    case reachable(ConnectionType)
  }

  /// Called with each status that differs from the one before.
  public typealias Listener = (NetworkReachabilityStatus) -> Void

  private let core: ReachabilityListener<NetworkReachabilityStatus>

  /// Makes a manager for a host: a name or an address, without scheme, port and brackets. `nil` for an empty one,
  /// and if the system gives no information about its network.
  public init?(host: String) {
    guard let core = ReachabilityListener<NetworkReachabilityStatus>(host: host) else { return nil }
    self.core = core
  }

  /// Makes a manager for the network at large; `nil` if the system gives no information about its network.
  public init?() {
    guard let core = ReachabilityListener<NetworkReachabilityStatus>(host: nil) else { return nil }
    self.core = core
  }

  /// Whether packets can be sent now.
  open var isReachable: Bool { isReachableOnWWAN || isReachableOnEthernetOrWiFi }
  /// Whether packets can be sent now, over a mobile network.
  open var isReachableOnWWAN: Bool { networkReachabilityStatus == .reachable(.wwan) }
  /// Whether packets can be sent now, over anything but a mobile network.
  open var isReachableOnEthernetOrWiFi: Bool { networkReachabilityStatus == .reachable(.ethernetOrWiFi) }
  /// The current status. Reading it never waits for a look-up of a name.
  open var networkReachabilityStatus: NetworkReachabilityStatus {
    NetworkReachabilityStatus(core.manager.status)
  }
  /// The current status in more detail; `nil` if it is unknown.
  open var flags: SCNetworkReachabilityFlags? { core.manager.flags }

  /// The queue on which the listener is called; read by ``startListening()``. Default: the main queue.
  open var listenerQueue: DispatchQueue {
    get { core.queue }
    set { core.queue = newValue }
  }

  /// Called with each change. Can be set and changed while listening.
  open var listener: Listener? {
    get { core.listener }
    set { core.listener = newValue }
  }

  /// Starts listening. The listener is called with the current status as soon as it is known.
  ///
  /// - Returns: False if the system does not report changes; the listener is then never called.
  @discardableResult
  open func startListening() -> Bool {
    core.manager.startListening(onQueue: listenerQueue) { [weak core] status in
      core?.listener?(NetworkReachabilityStatus(status))
    }
  }

  /// Ends listening. Without listening it does nothing.
  open func stopListening() { core.manager.stopListening() }
}

extension NetworkReachabilityManager.NetworkReachabilityStatus {
  fileprivate init(_ status: Alamofire::NetworkReachabilityManager.NetworkReachabilityStatus) {
    switch status {
    case .unknown: self = .unknown
    case .notReachable: self = .notReachable
    case .reachable(.ethernetOrWiFi): self = .reachable(.ethernetOrWiFi)
    case .reachable(.cellular): self = .reachable(.wwan)
    }
  }
}
