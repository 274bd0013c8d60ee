public import Alamofire
import Foundation
import Synchronization

/// What is known of the way to the network; see ``NetworkReachabilityManager/flags``.
public typealias SCNetworkReachabilityFlags = Alamofire::NetworkReachabilityFlags

/// Says whether a host, or the network at large, can be reached, and tells of changes.
///
/// ```swift
/// let manager = NetworkReachabilityManager(host: "www.example.com")
/// manager?.listener = { status in print(status) }
/// manager?.startListening()
/// ```
///
/// Keep the manager as long as you listen: one that is released tells nothing any more. It may be used from any
/// thread.
open class NetworkReachabilityManager: @unchecked Sendable {
  // Unchecked, since the compiler checks no class that can be subclassed: its own properties are constants.

  /// The kind of connection.
  public enum ConnectionType: Sendable {
    /// Everything that is not a mobile network.
    case ethernetOrWiFi
    /// A modem for mobile networks.
    case wwan
  }

  /// Whether the network can be reached.
  public enum NetworkReachabilityStatus: Equatable, Sendable {
    /// The system does not tell, or a host's name has not been looked up yet.
    case unknown
    /// No packet can be sent there.
    case notReachable
    /// Packets can be sent, over a connection of this type.
    case reachable(ConnectionType)
  }

  /// Called with each status that differs from the one before.
  public typealias Listener = (NetworkReachabilityStatus) -> Void

  private let manager: Alamofire::NetworkReachabilityManager
  private let listening = Listening()

  /// Makes a manager for a host: a name or an address, without scheme, port and brackets. `nil` for an empty one,
  /// and where the system tells nothing of its network.
  public init?(host: String) {
    guard let manager = Alamofire::NetworkReachabilityManager(host: host) else { return nil }
    self.manager = manager
  }

  /// Makes a manager for the network at large; `nil` where the system tells nothing of its network.
  public init?() {
    guard let manager = Alamofire::NetworkReachabilityManager() else { return nil }
    self.manager = manager
  }

  deinit { manager.stopListening() }

  /// Whether packets can be sent now.
  open var isReachable: Bool { isReachableOnWWAN || isReachableOnEthernetOrWiFi }
  /// Whether packets can be sent now, over a mobile network.
  open var isReachableOnWWAN: Bool { networkReachabilityStatus == .reachable(.wwan) }
  /// Whether packets can be sent now, over anything but a mobile network.
  open var isReachableOnEthernetOrWiFi: Bool { networkReachabilityStatus == .reachable(.ethernetOrWiFi) }
  /// What is known now. Never waits for a look-up of a name.
  open var networkReachabilityStatus: NetworkReachabilityStatus { NetworkReachabilityStatus(manager.status) }
  /// What is known now, in more detail; `nil` is nothing.
  open var flags: SCNetworkReachabilityFlags? { manager.flags }

  /// The queue on which the listener is called. Default: the main queue. It counts when listening starts.
  open var listenerQueue: DispatchQueue {
    get { listening.state.withLock { $0.queue } }
    set { listening.state.withLock { $0.queue = newValue } }
  }

  /// Who is told. Can be set and changed while listening.
  open var listener: Listener? {
    get { listening.state.withLock { $0.listener }?.value }
    set { listening.state.withLock { $0.listener = newValue.map { Boxed($0) } } }
  }

  /// Starts to listen. The listener gets the current status first, as soon as it is known.
  ///
  /// - Returns: False when the system does not tell of changes; the listener is not called then.
  @discardableResult
  open func startListening() -> Bool {
    manager.startListening(onQueue: listenerQueue) { [listening] status in
      let listener = listening.state.withLock { $0.listener }
      listener?.value(NetworkReachabilityStatus(status))
    }
  }

  /// Ends listening. Without listening it does nothing.
  open func stopListening() { manager.stopListening() }
}

/// Who listens, and where.
private final class Listening: Sendable {
  struct State {
    var queue = DispatchQueue.main
    var listener: Boxed<NetworkReachabilityManager.Listener>?
  }

  let state = Mutex(State())
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
