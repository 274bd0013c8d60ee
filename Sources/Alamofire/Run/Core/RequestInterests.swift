import Synchronization

extension RequestObservers {
  /// Makes the events whose observers were added to the request itself.
  fileprivate init(_ interests: RequestInterests) {
    self = []
    if interests.isEmpty { return }
    if interests.contains(.events) { formUnion(.monitors) }
    if interests.contains(.redirects) { insert(.redirects) }
    if interests.contains(.storing) { insert(.storing) }
    if interests.contains(.body) { insert(.bodies) }
    if interests.contains(.transfers) { formUnion([.bodies, .chunks]) }
  }
}

/// The events for which a handler, a sequence or a monitor was added to the request itself, and whether it is
/// intercepted. Most requests have none. One atomic holds them, so that no step has to take the lock to find out that
/// there are none.
struct RequestInterests: OptionSet, Sendable {
  let rawValue: UInt16

  /// The number of bytes that have moved.
  static let progress = RequestInterests(rawValue: 1)
  /// The head of the response, before its body is read.
  static let head = RequestInterests(rawValue: 2)
  /// The body of the response as it arrives, for chunk readers. The body is not stored then.
  static let body = RequestInterests(rawValue: 4)
  /// The events of this request, for a monitor or a handler of tasks.
  static let events = RequestInterests(rawValue: 8)
  static let redirects = RequestInterests(rawValue: 16)
  /// The storage of the response.
  static let storing = RequestInterests(rawValue: 32)
  /// The events of the URL session, for a monitor.
  static let transfers = RequestInterests(rawValue: 64)
  /// The adapters and retriers of the request or its session.
  static let interceptors = RequestInterests(rawValue: 128)
  /// The interceptors that may change the request.
  static let adapters = RequestInterests(rawValue: 256)
  /// The interceptors that may send the request again.
  static let retriers = RequestInterests(rawValue: 512)
}

extension RequestCore {
  /// The events that have observers at present.
  var observers: RequestObservers {
    let own = RequestInterests(rawValue: interests.load(ordering: .acquiring))
    return session.observers.observedEvents.union(RequestObservers(own))
  }
}
