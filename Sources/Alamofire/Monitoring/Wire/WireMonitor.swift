import Foundation
import HTTPWire

/// A monitor that observes the bytes of requests on their connections.
protocol WireMonitor: EventMonitor {
  /// Returns the observer of one attempt of a request.
  ///
  /// - Parameters:
  ///   - request:      The identifier of the request.
  ///   - secretFields: The protected header fields of the request.
  func wireObserver(of request: UUID, secretFields: Set<String>) -> any WireObserver
}

extension RequestCore {
  /// Returns the observer of the bytes of an attempt, for the monitors of the session and of the request; `nil` without
  /// any.
  func wireObserver(_ profile: ConnectionProfile) -> (any WireObserver)? {
    guard session.eventMonitor.observesWire || has(.events) else { return nil }
    let own = state.withLock { $0.hasExtras ? $0.extras.monitors : [] }
    let monitors = (session.eventMonitor.monitors + own).compactMap { $0 as? any WireMonitor }
    let names = profile.options.protectedHeaders
    let observers = monitors.map { $0.wireObserver(of: id, secretFields: names) }
    return observers.count > 1 ? WireObservers(observers) : observers.first
  }
}

/// Makes the transport report the head of a request in its metrics.
final class HeadObserver: WireObserver {
  static let shared = HeadObserver()

  func bytesMoved(_ part: WirePart, _ bytes: UnsafeRawBufferPointer) {}
  func wireEnded() {}
}
