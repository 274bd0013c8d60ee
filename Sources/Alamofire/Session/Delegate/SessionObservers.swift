import Foundation
import FoundationNetworking

/// The delegate, the handlers and the monitors of a session. A class, because each request reads it several times,
/// and a copy of a structure would count a reference for each member.
package final class SessionObservers: Sendable {
  let delegate: SessionDelegate
  /// Whether the delegate is a subclass, whose methods have to be called.
  let hasOwnDelegate: Bool
  let redirectHandler: (any RedirectHandler)?
  let cachedResponseHandler: (any CachedResponseHandler)?
  /// The events whose observers never change.
  private let constantEvents: RequestObservers
  let eventMonitor: CompositeEventMonitor

  package init(
    delegate: SessionDelegate = SessionDelegate(), redirectHandler: (any RedirectHandler)? = nil,
    cachedResponseHandler: (any CachedResponseHandler)? = nil,
    eventMonitors: [any EventMonitor] = [AlamofireNotifications.onDemand]
  ) {
    self.delegate = delegate
    hasOwnDelegate = type(of: delegate) != SessionDelegate.self
    self.redirectHandler = redirectHandler
    self.cachedResponseHandler = cachedResponseHandler
    eventMonitor = CompositeEventMonitor(monitors: eventMonitors)
    var events: RequestObservers = []
    if redirectHandler != nil { events.insert(.redirects) }
    if cachedResponseHandler != nil { events.formUnion([.wholeTask, .storing]) }
    if eventMonitor.hearsBodies { events.insert(.bodies) }
    constantEvents = events
  }

  /// Whether the delegate is a subclass that wants any of these events.
  func wants(_ events: SessionDelegate.Events) -> Bool {
    hasOwnDelegate && !delegate.wantedEvents.isDisjoint(with: events)
  }

  /// The events of all requests that have observers in the session at present.
  var observedEvents: RequestObservers {
    var events = constantEvents
    if eventMonitor.isActive { events.formUnion(.monitors) }
    if hasOwnDelegate { events.formUnion(RequestObservers(delegate.wantedEvents)) }
    return events
  }
}

extension SessionObservers: TrustObservers {
  var mayObserveTrust: Bool { hasOwnDelegate || eventMonitor.seesMore }
  var delegateAnswersTrust: Bool { wants(.trust) }
  var observesTrust: Bool { wants(.trust) || eventMonitor.seesMore }
}

extension SessionCore {
  var delegate: SessionDelegate { observers.delegate }
  var hasOwnDelegate: Bool { observers.hasOwnDelegate }
  var redirectHandler: (any RedirectHandler)? { observers.redirectHandler }
  var cachedResponseHandler: (any CachedResponseHandler)? { observers.cachedResponseHandler }
  var eventMonitor: CompositeEventMonitor { observers.eventMonitor }

  /// The tasks of running requests.
  var runningTasks: [URLSessionTask] { activeRequests.compactMap { $0.task } }

  /// Calls the delegate after the end of the session.
  func tellInvalid() {
    guard hasOwnDelegate || eventMonitor.isActive else { return }
    let delegate = delegate
    let facade = facade
    // The delegate finds its monitors in the core, of which this may be the last reference.
    rootQueue.async { [self] in
      withExtendedLifetime(self) { delegate.urlSession(facade, didBecomeInvalidWithError: nil) }
    }
  }
}
