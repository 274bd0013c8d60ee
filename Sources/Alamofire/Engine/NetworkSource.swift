import Foundation
package import HTTPWire

/// The source from which reachability learns of the network: the system, or the script of a test.
package protocol NetworkSource: Sendable {
  /// Whether the system reports the state of its network.
  var isAvailable: Bool { get }
  /// Returns the current state of the network; `nil` if the system does not report it.
  func state() -> NetworkState?
  /// Returns the route of a packet to an address.
  func route(to address: IPAddress) -> RouteAnswer
  /// Returns the addresses of a host; may take long, unless only literal ones are wanted.
  func addresses(of host: String, literalsOnly: Bool) -> [IPAddress]
  /// Calls `changed` on `queue` after every change; returns `nil` if the system does not report changes.
  func watch(on queue: DispatchQueue, _ changed: @escaping @Sendable () -> Void) -> (any NetworkWatch)?
}

/// A watch of changes that ends when it is stopped or released.
package protocol NetworkWatch: AnyObject, Sendable {
  func stop()
}

package extension TransportFailure {
  /// Returns a failure that says that the machine is offline, if it is; otherwise this one. Asks the kernel only after
  /// a failure that may have this cause.
  func explained(host: String, by source: some NetworkSource = SystemNetwork()) -> TransportFailure {
    switch kind {
    case .cannotFindHost, .cannotConnectToHost: break
    default: return self
    }
    let addresses = source.addresses(of: host, literalsOnly: true)
    // A server that refuses a connection has been reached.
    if kind == .cannotConnectToHost, addresses.isEmpty { return self }
    guard let network = source.state(), !network.isConnected(to: host, by: source) else { return self }
    return TransportFailure(
      .notConnected, "\(message) This machine has no connection to a network.",
      metrics: metrics)
  }
}

extension NetworkState {
  /// Whether there is a way for packets: to the network at large, or to a host that is given by its address.
  func isConnected(to host: String, by source: some NetworkSource) -> Bool {
    if pathToAnywhere() != .unreachable { return true }
    return path(to: source.addresses(of: host, literalsOnly: true).map(source.route)) != .unreachable
  }
}
