import Alamofire
public import Foundation

/// Reports whether a host, or the network in general, is reachable, and calls a listener for changes.
///
/// ```swift
/// let manager = NetworkReachabilityManager(host: "example.com")
/// manager?.listener = { status in print(status) }
/// manager?.startListening()
/// ```
///
/// Retain the manager as long as you listen.
open class NetworkReachabilityManager: @unchecked Sendable {
  // Unchecked, since the compiler checks no class that can be subclassed: its own property is a constant.

  /// Whether the network can be reached.
  public enum NetworkReachabilityStatus: Equatable, Sendable {
    /// Not known yet.
    case Unknown
    /// No packet can be sent there.
    case NotReachable
    /// Packets can be sent, over a connection of this type.
    case Reachable(ConnectionType)
  }

  /// The kind of connection.
  public enum ConnectionType: Equatable, Sendable {
    /// Everything that is not a mobile network.
    case EthernetOrWiFi
    /// A modem for mobile networks.
    case WWAN
  }

  /// Called with each status that differs from the one before.
  public typealias Listener = (NetworkReachabilityStatus) -> Void

  private let core: ReachabilityListener<NetworkReachabilityStatus>

  /// Makes a manager for a host: a name or an address. `nil` for an empty one, and if the system gives no information
  /// about its network.
  public init?(host: String) {
    guard let core = ReachabilityListener<NetworkReachabilityStatus>(host: host) else { return nil }
    self.core = core
  }

  /// Makes a manager for the network at large. `nil` if the system gives no information about its network.
  public init?() {
    guard let core = ReachabilityListener<NetworkReachabilityStatus>(host: nil) else { return nil }
    self.core = core
  }

  /// Called with each change.
  open var listener: Listener? {
    get { core.listener }
    set { core.listener = newValue }
  }

  /// The queue on which the listener is called; read by ``startListening()``. Default: the main queue.
  open var listenerQueue: DispatchQueue {
    get { core.queue }
    set { core.queue = newValue }
  }

  /// Whether packets can be sent now.
  open var isReachable: Bool { core.manager.isReachable }
  /// Whether packets can be sent now, over a mobile network.
  open var isReachableOnWWAN: Bool { core.manager.isReachableOnCellular }
  /// Whether packets can be sent now, over anything else.
  open var isReachableOnEthernetOrWiFi: Bool { core.manager.isReachableOnEthernetOrWiFi }
  /// The current status.
  open var networkReachabilityStatus: NetworkReachabilityStatus { .init(core.manager.status) }

  /// Starts listening: the listener is called with the current status, and with every later one.
  ///
  /// - Returns: False if the system does not report changes.
  @discardableResult
  open func startListening() -> Bool {
    core.manager.startListening(onQueue: listenerQueue) { [weak self] status in
      self?.listener?(NetworkReachabilityStatus(status))
    }
  }

  /// Ends listening.
  open func stopListening() { core.manager.stopListening() }
}

extension NetworkReachabilityManager.NetworkReachabilityStatus {
  fileprivate init(_ status: Alamofire::NetworkReachabilityManager.NetworkReachabilityStatus) {
    switch status {
    case .unknown: self = .Unknown
    case .notReachable: self = .NotReachable
    case .reachable(.ethernetOrWiFi): self = .Reachable(.EthernetOrWiFi)
    case .reachable(.cellular): self = .Reachable(.WWAN)
    }
  }
}
