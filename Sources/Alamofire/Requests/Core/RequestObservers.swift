import Synchronization

/// The events of a request that have observers: delegate, handlers and monitors of the session, and those of the
/// request.
///
/// An observer of one of these events may change the course of an attempt, which then has to wait for it. The attempt
/// reads ``task`` when the request is resumed, and ``bodies`` when it makes the request. It reads the others when the
/// event comes, because handlers may be added to a running request and ``SessionDelegate/wantedEvents`` may change at
/// any time.
struct RequestObservers: OptionSet, Sendable {
  let rawValue: UInt8

  /// The tasks of attempts, which are announced before they are sent and at their end.
  static let task = RequestObservers(rawValue: 1)
  static let redirects = RequestObservers(rawValue: 2)
  /// Challenges of responses.
  static let challenges = RequestObservers(rawValue: 4)
  /// The certificates of servers.
  static let trust = RequestObservers(rawValue: 8)
  /// The storage of responses.
  static let storing = RequestObservers(rawValue: 16)
  /// The bodies of responses as they arrive.
  static let bodies = RequestObservers(rawValue: 32)

  /// The events that each observer of tasks sees.
  static let wholeTask: RequestObservers = [.task, .redirects, .challenges]
  /// The events that each monitor sees.
  static let monitors: RequestObservers = [.wholeTask, .trust]
}

extension RequestObservers {
  /// Makes the events that a delegate of the caller wants.
  init(_ events: SessionDelegate.Events) {
    self = []
    if events.contains(.transfers) { formUnion([.wholeTask, .bodies]) }
    if events.contains(.caching) { formUnion([.wholeTask, .storing]) }
    if events.contains(.redirects) { insert(.redirects) }
    if events.contains(.authentication) { insert(.challenges) }
    if events.contains(.trust) { insert(.trust) }
  }

  /// Makes the events whose observers were added to the request itself.
  fileprivate init(_ interests: RequestInterests) {
    self = []
    if interests.isEmpty { return }
    if interests.contains(.events) { formUnion(.monitors) }
    if interests.contains(.redirects) { insert(.redirects) }
    if interests.contains(.storing) { insert(.storing) }
    if !interests.isDisjoint(with: [.body, .transfers]) { insert(.bodies) }
  }
}

/// The events for which a handler, a sequence or a monitor was added to the request itself, and whether it is
/// intercepted. Most requests have none. One atomic holds them, so that no step takes the lock to find none.
struct RequestInterests: OptionSet, Sendable {
  let rawValue: UInt16

  /// The number of bytes that have moved.
  static let progress = RequestInterests(rawValue: 1)
  /// The head of the response, before its body is read.
  static let head = RequestInterests(rawValue: 2)
  /// The body of the response as it comes, for chunk readers. The body is not kept then.
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
  /// Those of them that may change the request.
  static let adapters = RequestInterests(rawValue: 256)
  /// Those of them that may send it again.
  static let retriers = RequestInterests(rawValue: 512)
}

extension RequestInterests {
  /// Creates the interests of an interceptor. Compares exact types, because subclasses may do more, and because a
  /// failing cast would cost more than an adaptation.
  init(of interceptor: any RequestInterceptor) {
    self = .interceptors
    switch ObjectIdentifier(type(of: interceptor)) {
    case ObjectIdentifier(Adapter.self): insert(.adapters)
    case ObjectIdentifier(RetryPolicy.self), ObjectIdentifier(ConnectionLostRetryPolicy.self),
      ObjectIdentifier(Retrier.self):
      insert(.retriers)
    case ObjectIdentifier(Interceptor.self):
      insert(.adapters)
      if (interceptor as? Interceptor)?.retriers.isEmpty != true { insert(.retriers) }
    default: formUnion([.adapters, .retriers])
    }
  }
}

extension RequestCore {
  /// The events that have observers at present.
  var observers: RequestObservers {
    let own = RequestInterests(rawValue: interests.load(ordering: .acquiring))
    return session.observers.observedEvents.union(RequestObservers(own))
  }
}
