public import Foundation
public import FoundationNetworking
import Synchronization

/// The delegate of a session: it is called for events of tasks, and decides about some of them.
///
/// Subclass it, override methods, and pass it to
/// ``Session/init(configuration:delegate:rootQueue:startRequestsImmediately:requestSetup:requestQueue:serializationQueue:interceptor:serverTrustManager:redirectHandler:cachedResponseHandler:eventMonitors:transportOptions:)``.
/// Each method documents the behaviour of the base class; call `super` for it. The methods of a subclass are called
/// on the session's ``Session/rootQueue``, one at a time, in the order of events. If a completion handler is released
/// without a call, the decision of the base class is used.
///
/// The base class calls the monitors of a session: if a subclass does not call `super`, its monitors are not called
/// for that event. Several sessions may have the same delegate; the base class then uses the handlers and the monitors
/// of the session that the event belongs to.
///
/// ```swift
/// final class Stricter: SessionDelegate, @unchecked Sendable {
///   override func urlSession(
///     _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
///     newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
///   ) {
///     completionHandler(nil)
///   }
/// }
/// ```
///
/// ```swift
/// let session = Session(delegate: Stricter())
/// ```
///
/// A subclass is called for all events, unless it sets ``wantedEvents``.
open class SessionDelegate: NSObject, URLSessionDataDelegate, @unchecked Sendable {
  // Unchecked, because the compiler does not check classes that can be subclassed. The properties are constants, except
  // for the sessions, which have a lock, and the value of ``wantedEvents``, which is atomic.

  /// A file manager for subclasses that move files; the base class does not use it.
  public let fileManager: FileManager

  /// The session that shows each `URLSession`, for the root queues of the sessions and the attempts. A session that
  /// has ended is removed once its end was reported.
  private let sessions = Mutex<[ObjectIdentifier: SessionLink]>([:])
  let wanted = Atomic(Events.all.rawValue)

  private struct SessionLink {
    weak let core: SessionCore?
    let id: ObjectIdentifier

    init(_ core: SessionCore) {
      self.core = core
      id = ObjectIdentifier(core)
    }
  }

  /// Makes a delegate.
  ///
  /// - Parameter fileManager: The value of ``fileManager``. Default: the shared one.
  public init(fileManager: FileManager = .default) {
    self.fileManager = fileManager
  }

  /// Returns the session that shows `session`. If several do, it is the last one that was passed to ``serve(_:)``.
  private func core(showing session: URLSession) -> SessionCore? {
    sessions.withLock { $0[ObjectIdentifier(session)] }?.core
  }

  /// Returns the session of a task. `session` decides about tasks of Foundation, which belong to no request.
  private func core(of task: URLSessionTask, in session: URLSession) -> SessionCore? {
    request(of: task)?.session ?? core(showing: session)
  }

  /// Adds a session that has this delegate.
  func serve(_ core: SessionCore) {
    sessions.withLock { $0[ObjectIdentifier(core.facade)] = SessionLink(core) }
  }

  /// Reports the end of a session. It is added for that time, because another one may show the same `URLSession`.
  func sessionEnded(_ core: SessionCore) {
    let key = ObjectIdentifier(core.facade)
    let other = sessions.withLock { sessions in
      defer { sessions[key] = SessionLink(core) }
      return sessions[key]
    }
    urlSession(core.facade, didBecomeInvalidWithError: nil)
    sessions.withLock { sessions in
      guard sessions[key]?.id == ObjectIdentifier(core) else { return }
      sessions[key] = other?.id == ObjectIdentifier(core) ? nil : other
    }
  }

  /// Removes a session that has ended.
  func leave(_ core: SessionCore) {
    let key = ObjectIdentifier(core.facade)
    sessions.withLock { sessions in
      // Another session may show the same object.
      if sessions[key]?.id == ObjectIdentifier(core) { sessions[key] = nil }
    }
  }

  private func request(of task: URLSessionTask) -> Request? {
    (task as? any RecordedTask)?.record.request
  }

  /// Calls the monitors of the session. Monitors of a request are called for that request, and not for its URL
  /// session.
  private func notify(
    _ task: URLSessionTask, ofChunk: Bool = false, _ event: @escaping @Sendable (any EventMonitor) -> Void
  ) {
    request(of: task)?.notifyTransfer(ofChunk: ofChunk, event)
  }

  // MARK: The session

  /// Calls the monitors. `error` is `nil` if the program ended the session.
  open func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
    core(showing: session)?.eventMonitor.perform {
      $0.urlSession(session, didBecomeInvalidWithError: error)
    }
  }

  /// Does nothing. Called when all requests that a background session has restored have ended, and their response
  /// handlers have returned. Requests that wait for their options are not awaited: they count once you resume them. If
  /// that is after a call, the method is called again when they have ended.
  open func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {}

  // MARK: Tasks

  /// Calls the monitors, and uses the default: the credential of the request, if it has one and no credential of the
  /// delegate has failed.
  ///
  /// Called for challenges of the schemes Digest, Basic, NTLM and Negotiate, the strongest first. If the disposition is
  /// to reject, the method is called for the next one. The method is not called if the request has its own field
  /// `Authorization`, nor for an origin other than the origin of the user's request. The failure count is the number of
  /// credentials that the request has sent without success; a refused one is not sent again. A credential whose
  /// `persistence` is not `.none` is also used for other requests of the session that have no credential.
  open func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    notify(task) { $0.urlSession(session, task: task, didReceive: challenge) }
    completionHandler(
      challenge.previousFailureCount > 0 ? .rejectProtectionSpace : .performDefaultHandling, nil)
  }

  /// Calls the monitors.
  open func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) {
    notify(task) {
      $0.urlSession(
        session, task: task, didSendBodyData: bytesSent, totalBytesSent: totalBytesSent,
        totalBytesExpectedToSend: totalBytesExpectedToSend)
    }
  }

  /// Calls the monitors, and returns the stream of the upload. A subclass may return another one; `nil` ends the
  /// request with an error.
  open func urlSession(
    _ session: URLSession, task: URLSessionTask,
    needNewBodyStream completionHandler: @escaping (InputStream?) -> Void
  ) {
    notify(task) { $0.urlSession(session, taskNeedsNewBodyStream: task) }
    guard let upload = request(of: task) as? UploadRequest, let uploadable = upload.uploadable,
      case .stream(let stream) = uploadable
    else { return completionHandler(nil) }
    upload.notifyMonitors { monitor in
      guard case .stream(let stream) = uploadable else { return }
      monitor.request(upload, didProvideInputStream: stream)
    }
    completionHandler(stream)
  }

  /// Calls the monitors, and the request's ``RedirectHandler``, or else the session's. Without a handler the redirect
  /// is followed.
  open func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
  ) {
    notify(task) {
      $0.urlSession(session, task: task, willPerformHTTPRedirection: response, newRequest: request)
    }
    let handler = self.request(of: task)?.redirectHandler ?? core(of: task, in: session)?.redirectHandler
    guard let handler else { return completionHandler(request) }
    // Unchecked: only the handler calls it, once.
    nonisolated(unsafe) let completionHandler = completionHandler
    handler.task(task, willBeRedirectedTo: request, for: response) { completionHandler($0) }
  }

  /// Calls the monitors.
  open func urlSession(
    _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: TaskMetrics
  ) {
    notify(task) { $0.urlSession(session, task: task, didFinishCollecting: metrics) }
    guard let request = request(of: task) else { return }
    request.notifyMonitors(of: metrics)
  }

  /// Calls the monitors. `error` is `nil` if there was a response, whatever its status.
  open func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?)
  {
    notify(task) { $0.urlSession(session, task: task, didCompleteWithError: error) }
  }

  /// Calls the monitors. Called once for an attempt that waits for a network because of `waitsForConnectivity`.
  open func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {
    notify(task) { $0.urlSession(session, taskIsWaitingForConnectivity: task) }
  }

  // MARK: Data tasks

  /// Calls the monitors, and allows the body. With `URLSession.ResponseDisposition.cancel` the request is cancelled,
  /// unless another attempt has begun by then.
  open func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
  ) {
    notify(dataTask) { $0.urlSession(session, dataTask: dataTask, didReceive: response) }
    completionHandler(.allow)
  }

  /// Calls the monitors. Called with each chunk of a body, except for bodies of followed redirects. If the event is
  /// enabled while a request runs, the whole body arrives in one chunk at its end.
  open func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    notify(dataTask, ofChunk: true) { $0.urlSession(session, dataTask: dataTask, didReceive: data) }
  }

  /// Calls the monitors, and the request's ``CachedResponseHandler``, or else the session's. Without a handler the
  /// response is stored.
  open func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask,
    willCacheResponse proposedResponse: CachedURLResponse,
    completionHandler: @escaping (CachedURLResponse?) -> Void
  ) {
    notify(dataTask) { $0.urlSession(session, dataTask: dataTask, willCacheResponse: proposedResponse) }
    let handler =
      request(of: dataTask)?.cachedResponseHandler ?? core(of: dataTask, in: session)?.cachedResponseHandler
    guard let handler else { return completionHandler(proposedResponse) }
    // Unchecked: only the handler calls it, once.
    nonisolated(unsafe) let completionHandler = completionHandler
    handler.dataTask(dataTask, willCacheResponse: proposedResponse) { completionHandler($0) }
  }

  // MARK: WebSocket connections

  /// Does nothing. Called when the connection of a ``WebSocketRequest`` is open, with the subprotocol that the server
  /// has chosen.
  open func urlSession(
    _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?
  ) {}

  /// Does nothing. Called when both sides of a ``WebSocketRequest`` have sent a Close frame. A code that Foundation's
  /// type cannot hold is `.invalid`; the event of the request has every code.
  open func urlSession(
    _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
    didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
  ) {}

  // MARK: Downloads

  /// Calls the monitors.
  open func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
    expectedTotalBytes: Int64
  ) {
    notify(downloadTask) {
      $0.urlSession(
        session, downloadTask: downloadTask, didResumeAtOffset: fileOffset,
        expectedTotalBytes: expectedTotalBytes)
    }
  }

  /// Calls the monitors.
  open func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
    totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
  ) {
    notify(downloadTask) {
      $0.urlSession(
        session, downloadTask: downloadTask, didWriteData: bytesWritten, totalBytesWritten: totalBytesWritten,
        totalBytesExpectedToWrite: totalBytesExpectedToWrite)
    }
  }

  /// Calls the monitors. Afterwards the file is moved to the destination of the request, or stays where it is.
  open func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
  ) {
    notify(downloadTask) {
      $0.urlSession(session, downloadTask: downloadTask, didFinishDownloadingTo: location)
    }
  }
}

extension SessionDelegate: URLSessionDownloadDelegate, URLSessionWebSocketDelegate {}

extension SessionDelegate {
  /// The events for which a delegate is called.
  ///
  /// Each event costs a call on the session's ``Session/rootQueue``; the request waits for the calls that decide.
  /// Some events need further objects: heads, metrics, proposed responses. A delegate that limits its events leaves
  /// the others as fast as without a delegate.
  ///
  /// ```swift
  /// final class Gatekeeper: SessionDelegate, @unchecked Sendable {
  ///   init() {
  ///     super.init()
  ///     wantedEvents = .trust
  ///   }
  ///
  ///   override func urlSession(
  ///     _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
  ///     completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ///   ) {
  ///     completionHandler(.performDefaultHandling, nil)
  ///   }
  /// }
  /// ```
  public struct Events: OptionSet, Sendable {
    /// One bit for each event.
    public let rawValue: UInt8

    /// Makes a set of events.
    ///
    /// - Parameter rawValue: One bit for each event.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Challenges of connections: a server presents its certificates, or requests a client certificate.
    public static let trust = Events(rawValue: 1)
    /// Challenges of responses: a server requires credentials.
    public static let authentication = Events(rawValue: 2)
    /// Redirects that are about to be followed.
    public static let redirects = Events(rawValue: 4)
    /// Responses that are about to be stored.
    public static let caching = Events(rawValue: 8)
    /// All other events of tasks: received heads and bodies, sent bytes, requested body streams, downloaded files,
    /// metrics, waiting for a network, the end.
    public static let transfers = Events(rawValue: 16)
    /// Everything.
    public static let all: Events = [.trust, .authentication, .redirects, .caching, .transfers]
  }

  /// The events for which the methods of this delegate have to be called. Default: ``Events/all`` in a subclass.
  ///
  /// The delegate may be called for more events, in particular if the session has monitors, because the base class
  /// calls these. The end of the session is always reported. The property may be changed at any time, on any thread; a
  /// request usually uses its value at the time of the event. A change affects neither earlier decisions about servers
  /// nor open connections. The property has no effect unless the delegate is a subclass.
  public final var wantedEvents: Events {
    get { Events(rawValue: wanted.load(ordering: .relaxed)) }
    set { wanted.store(newValue.rawValue, ordering: .relaxed) }
  }
}

/// The delegate, the handlers and the monitors of a session. A class, because each request reads it several times,
/// and a copy of a structure would count a reference for each member.
package final class SessionObservers: Sendable {
  let delegate: SessionDelegate
  /// Whether the delegate is a subclass, so that its methods have to be called.
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
    if eventMonitor.hearsBodies { events.formUnion([.bodies, .chunks]) }
    constantEvents = events
  }

  /// Whether the delegate is a subclass that wants any of these events.
  func observes(_ events: SessionDelegate.Events) -> Bool {
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

extension SessionObservers: RunObservers {
  var hasMonitors: Bool { eventMonitor.isActive }
}

extension SessionObservers: TrustObservers {
  var mayObserveTrust: Bool { hasOwnDelegate || eventMonitor.seesMore }
  var delegateAnswersTrust: Bool { observes(.trust) }
  var observesTrust: Bool { observes(.trust) || eventMonitor.seesMore }
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
  func notifyInvalid() {
    guard hasOwnDelegate || eventMonitor.isActive else { return delegate.leave(self) }
    // Retains this object: it has the monitors, and this may be its last reference.
    rootQueue.async { self.delegate.sessionEnded(self) }
  }
}

extension RequestObservers {
  /// Makes the events that the caller's delegate requests.
  fileprivate init(_ events: SessionDelegate.Events) {
    self = []
    if events.contains(.transfers) { formUnion([.wholeTask, .bodies, .chunks]) }
    if events.contains(.caching) { formUnion([.wholeTask, .storing]) }
    if events.contains(.redirects) { insert(.redirects) }
    if events.contains(.authentication) { insert(.challenges) }
    if events.contains(.trust) { insert(.trust) }
  }
}
