import Alamofire
public import Foundation
import Synchronization

/// Tells whether a host, or the network at large, can be reached, and listens to changes.
///
/// ```swift
/// let manager = NetworkReachabilityManager(host: "example.com")
/// manager?.listener = { status in print(status) }
/// manager?.startListening()
/// ```
///
/// Keep it as long as you listen.
open class NetworkReachabilityManager: @unchecked Sendable {
  // Unchecked, since the compiler checks no class that can be subclassed: its own properties are constants, or stand
  // under its lock.

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

  private struct Listening: Sendable {
    var listener: Boxed<Listener>?
    var queue = DispatchQueue.main
  }

  private let core: Alamofire::NetworkReachabilityManager
  private let listening = Mutex(Listening())

  /// Makes a manager for a host: a name or an address. `nil` for an empty one, and where the system tells nothing of
  /// its network.
  public init?(host: String) {
    guard let core = Alamofire::NetworkReachabilityManager(host: host) else { return nil }
    self.core = core
  }

  /// Makes a manager for the network at large. `nil` where the system tells nothing of its network.
  public init?() {
    guard let core = Alamofire::NetworkReachabilityManager() else { return nil }
    self.core = core
  }

  deinit { core.stopListening() }

  /// Is told of changes.
  open var listener: Listener? {
    get { listening.withLock { $0.listener }?.value }
    set {
      let boxed = newValue.map { Boxed($0) }
      listening.withLock { $0.listener = boxed }
    }
  }

  /// Where the listener is called; counts from the next ``startListening()`` on. Default: the main queue.
  open var listenerQueue: DispatchQueue {
    get { listening.withLock { $0.queue } }
    set { listening.withLock { $0.queue = newValue } }
  }

  /// Whether packets can be sent now.
  open var isReachable: Bool { core.isReachable }
  /// Whether packets can be sent now, over a mobile network.
  open var isReachableOnWWAN: Bool { core.isReachableOnCellular }
  /// Whether packets can be sent now, over anything else.
  open var isReachableOnEthernetOrWiFi: Bool { core.isReachableOnEthernetOrWiFi }
  /// What is known now.
  open var networkReachabilityStatus: NetworkReachabilityStatus { .init(core.status) }

  /// Starts to listen: the listener gets the current status, and every other one from then on.
  ///
  /// - Returns: False when the system does not tell of changes.
  @discardableResult
  open func startListening() -> Bool {
    core.startListening(onQueue: listenerQueue) { [weak self] status in
      self?.listener?(NetworkReachabilityStatus(status))
    }
  }

  /// Ends listening.
  open func stopListening() { core.stopListening() }
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
