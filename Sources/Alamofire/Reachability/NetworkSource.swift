import Foundation
package import HTTPWire

/// Where reachability learns of the network: the system's, or the script of a test.
package protocol NetworkSource: Sendable {
  /// Whether the system tells anything at all.
  var isAvailable: Bool { get }
  /// The network as it is now; `nil` when the system does not tell.
  func state() -> NetworkState?
  /// Where a packet for an address would go.
  func route(to address: IPAddress) -> RouteAnswer
  /// The addresses of a host; may take long, unless only literal ones are wanted.
  func addresses(of host: String, literalsOnly: Bool) -> [IPAddress]
  /// Calls `changed` on `queue` whenever something has changed; `nil` when the system does not tell.
  func watch(on queue: DispatchQueue, _ changed: @escaping @Sendable () -> Void) -> (any NetworkWatch)?
}

/// Tells of changes until it is stopped or released.
package protocol NetworkWatch: AnyObject, Sendable {
  func stop()
}
