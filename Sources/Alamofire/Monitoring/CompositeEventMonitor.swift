public import Foundation
import FoundationNetworking

/// Passes every event to a list of monitors, each on its own queue. A ``Session`` makes one of its monitors.
public final class CompositeEventMonitor: EventMonitor {
  /// The queue that the protocol requires. Nothing is called on it, because each monitor has its own queue.
  public let queue = DispatchQueue(label: "org.alamofire.compositeEventMonitor")
  /// The monitors, in the order in which they are called.
  public let monitors: [any EventMonitor]

  /// Whether there are monitors other than notifications on demand.
  let seesMore: Bool
  /// Whether a monitor may use the chunks of bodies. Notifications do not.
  let hearsBodies: Bool
  /// Whether a monitor observes the bytes of requests on their connections.
  let observesWire: Bool

  init(monitors: [any EventMonitor]) {
    self.monitors = monitors
    hearsBodies = monitors.contains { !($0 is AlamofireNotifications) }
    observesWire = monitors.contains { $0 is any WireMonitor }
    seesMore = monitors.contains { !(($0 as? AlamofireNotifications)?.isOnDemand ?? false) }
  }

  /// Whether a monitor uses events at present. Read before an event is made.
  var isActive: Bool { seesMore || (!monitors.isEmpty && NotificationDemand.exists) }

  func perform(_ event: @escaping @Sendable (any EventMonitor) -> Void) {
    for monitor in monitors {
      monitor.queue.async { event(monitor) }
    }
  }
}
