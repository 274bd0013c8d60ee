public import Foundation
import FoundationNetworking

/// Tells every event to a list of monitors, each on its own queue. A ``Session`` makes one of the monitors that
/// it is given.
public final class CompositeEventMonitor: EventMonitor {
  /// Where a monitor that is asked for no queue of its own would be called. Nothing is called here: each
  /// monitor has its own queue.
  public let queue = DispatchQueue(label: "org.alamofire.compositeEventMonitor")
  /// Whom it tells, in their order.
  public let monitors: [any EventMonitor]

  /// Monitors that always want to be told.
  private let others: Bool
  /// Whether any of them may listen to the pieces of bodies: notifications tell nothing of them.
  let hearsBodies: Bool

  init(monitors: [any EventMonitor]) {
    self.monitors = monitors
    hearsBodies = monitors.contains { !($0 is AlamofireNotifications) }
    others = monitors.contains { !(($0 as? AlamofireNotifications)?.isOnDemand ?? false) }
  }

  /// Whether there is anybody but the notifications of requests.
  var seesMore: Bool { others }

  /// Whether anybody listens: read before an event is made.
  var isActive: Bool { others || (!monitors.isEmpty && NotificationDemand.exists) }

  func perform(_ event: @escaping @Sendable (any EventMonitor) -> Void) {
    for monitor in monitors {
      monitor.queue.async { event(monitor) }
    }
  }
}
