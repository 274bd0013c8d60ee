import Foundation
package import FoundationNetworking

/// Who decides and who is told about the requests of a session. A class: each request asks several times, and a copy of
/// a structure would count references to all that is in it.
package final class SessionWatching: Sendable {
  let delegate: SessionDelegate
  /// Whether the delegate is a subclass, whose methods have to be called.
  let hasOwnDelegate: Bool
  let redirectHandler: (any RedirectHandler)?
  let cachedResponseHandler: (any CachedResponseHandler)?
  // Known by themselves: to look whether there is one copies it.
  let hasRedirectHandler: Bool
  private let hasCachedResponseHandler: Bool
  let eventMonitor: CompositeEventMonitor
  /// A session of the user's that lends its name to ours.
  let lent: URLSession?

  package init(
    delegate: SessionDelegate = SessionDelegate(), redirectHandler: (any RedirectHandler)? = nil,
    cachedResponseHandler: (any CachedResponseHandler)? = nil,
    eventMonitors: [any EventMonitor] = [AlamofireNotifications.onDemand], lent: URLSession? = nil
  ) {
    self.delegate = delegate
    hasOwnDelegate = type(of: delegate) != SessionDelegate.self
    self.redirectHandler = redirectHandler
    self.cachedResponseHandler = cachedResponseHandler
    hasRedirectHandler = redirectHandler != nil
    hasCachedResponseHandler = cachedResponseHandler != nil
    eventMonitor = CompositeEventMonitor(monitors: eventMonitors)
    self.lent = lent
  }

  /// Whether the delegate is a subclass that wants to be called for any of these.
  func wants(_ events: SessionDelegate.Events) -> Bool {
    hasOwnDelegate && !delegate.wantedEvents.isDisjoint(with: events)
  }

  /// Whether somebody decides about storing the responses of all requests.
  var decidesAboutStoring: Bool { hasCachedResponseHandler || wants(.caching) }
}

extension SessionWatching: TrustObservers {
  var mayObserveTrust: Bool { hasOwnDelegate || eventMonitor.seesMore }
  var delegateAnswersTrust: Bool { wants(.trust) }
  var observesTrust: Bool { wants(.trust) || eventMonitor.seesMore }
}

extension SessionCore {
  var delegate: SessionDelegate { watching.delegate }
  var hasOwnDelegate: Bool { watching.hasOwnDelegate }
  var redirectHandler: (any RedirectHandler)? { watching.redirectHandler }
  var cachedResponseHandler: (any CachedResponseHandler)? { watching.cachedResponseHandler }
  var eventMonitor: CompositeEventMonitor { watching.eventMonitor }

  /// The tasks of the requests that run.
  var runningTasks: [URLSessionTask] { activeRequests.compactMap { $0.task } }

  func makeFacade() -> URLSession {
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = 1
    queue.underlyingQueue = rootQueue
    queue.name = "\(rootQueue.label).sessionDelegate"
    return SessionFacade(self, delegate: delegate, queue: queue)
  }

  /// The session has ended.
  func tellInvalid() {
    guard hasOwnDelegate || eventMonitor.isActive else { return }
    let delegate = delegate
    let facade = facade
    rootQueue.async { delegate.urlSession(facade, didBecomeInvalidWithError: nil) }
  }
}
