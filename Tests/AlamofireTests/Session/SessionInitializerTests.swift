import Alamofire
import Foundation
import FoundationNetworking
import Testing

@Suite("Initializers of sessions") struct SessionInitializerTests {
  private let delegate = SessionDelegate()
  private let queues = ["root", "requests", "serialization"].map { DispatchQueue(label: $0) }
  private let interceptor = SpyInterceptor()
  private let trust = ServerTrustManager(evaluators: [:])
  private let monitor = EventSpy()

  private var options: TransportOptions {
    var options = TransportOptions()
    options.redirectLimit = 77
    return options
  }

  private var configuration: URLSessionConfiguration {
    let configuration = URLSessionConfiguration.uncached
    configuration.timeoutIntervalForRequest = 33
    return configuration
  }

  private func check(_ session: Session, redirectLimit: Int = 77) {
    #expect(session.delegate === delegate)
    // It targets the queue of the caller.
    #expect(session.rootQueue.label == "root")
    #expect(session.requestQueue === queues[1] && session.serializationQueue === queues[2])
    #expect(!session.startRequestsImmediately && session.requestSetup == .eager)
    #expect(session.interceptor as? SpyInterceptor === interceptor && session.serverTrustManager === trust)
    guard case .doNotFollow? = (session.redirectHandler as? Redirector)?.behavior else {
      Issue.record("another redirect handler")
      return
    }
    guard case .doNotCache? = (session.cachedResponseHandler as? ResponseCacher)?.behavior else {
      Issue.record("another handler of cached responses")
      return
    }
    #expect(session.eventMonitor.monitors.count == 1 && session.eventMonitor.monitors.first is EventSpy)
    #expect(session.transportOptions.redirectLimit == redirectLimit)
    #expect(session.sessionConfiguration.timeoutIntervalForRequest == 33)
  }

  @Test("A session has every argument of its initializer") func configurations() {
    let usual = TransportOptions().redirectLimit
    check(
      Session(
        configuration: configuration, delegate: delegate, rootQueue: queues[0],
        startRequestsImmediately: false, requestSetup: .eager, requestQueue: queues[1],
        serializationQueue: queues[2], interceptor: interceptor, serverTrustManager: trust,
        redirectHandler: Redirector.doNotFollow, cachedResponseHandler: ResponseCacher.doNotCache,
        eventMonitors: [monitor]), redirectLimit: usual)
    check(
      Session(
        configuration: configuration, delegate: delegate, rootQueue: queues[0],
        startRequestsImmediately: false, requestSetup: .eager, requestQueue: queues[1],
        serializationQueue: queues[2], interceptor: interceptor, serverTrustManager: trust,
        redirectHandler: Redirector.doNotFollow, cachedResponseHandler: ResponseCacher.doNotCache,
        eventMonitors: [monitor], transportOptions: options))
  }

  @Test("A session of a session object has every argument of its initializer") func sessionObjects() {
    let own = Session.urlSession(
      configuration: configuration, delegate: delegate, transportOptions: options)
    check(
      Session(
        session: own, delegate: delegate, rootQueue: queues[0], startRequestsImmediately: false,
        requestSetup: .eager, requestQueue: queues[1], serializationQueue: queues[2],
        interceptor: interceptor, serverTrustManager: trust, redirectHandler: Redirector.doNotFollow,
        cachedResponseHandler: ResponseCacher.doNotCache, eventMonitors: [monitor]))
    let stock = URLSession(configuration: configuration)
    let session = Session(
      session: stock, delegate: delegate, rootQueue: queues[0], startRequestsImmediately: false,
      requestSetup: .eager, requestQueue: queues[1], serializationQueue: queues[2],
      interceptor: interceptor, serverTrustManager: trust, redirectHandler: Redirector.doNotFollow,
      cachedResponseHandler: ResponseCacher.doNotCache, eventMonitors: [monitor], transportOptions: options)
    check(session)
    #expect(session.session === stock)
  }

  @available(*, deprecated)
  @Test("The default monitors of each session are those that it has without monitors of its own")
  func defaultMonitors() {
    func areDefault(_ monitors: [any EventMonitor]) -> Bool {
      monitors.map { ($0 as? AlamofireNotifications) === AlamofireNotifications.onDemand } == [true]
    }
    let own = Session(eventMonitors: [monitor])
    #expect(areDefault(own.defaultEventMonitors))
    #expect(own.eventMonitor.monitors.map { $0 is EventSpy } == [true])
    for session in [
      Session(), Session(transportOptions: TransportOptions()),
      Session(
        session: Session.urlSession(delegate: delegate), delegate: delegate,
        rootQueue: DispatchQueue(label: "root")),
      Session(
        session: URLSession(configuration: configuration), delegate: delegate,
        rootQueue: DispatchQueue(label: "root"), transportOptions: options),
      Session(eventMonitors: own.defaultEventMonitors),
    ] {
      #expect(areDefault(session.eventMonitor.monitors) && areDefault(session.defaultEventMonitors))
    }
  }

  @Test("The defaults start requests lazily and at once, and notify on demand") func defaults() {
    for session in [
      Session(), Session(transportOptions: TransportOptions()),
      Session(
        session: Session.urlSession(delegate: delegate), delegate: delegate,
        rootQueue: DispatchQueue(label: "root")),
    ] {
      #expect(session.startRequestsImmediately && session.requestSetup == .lazy)
      #expect(session.interceptor == nil && session.serverTrustManager == nil)
      #expect(session.redirectHandler == nil && session.cachedResponseHandler == nil)
      #expect(session.eventMonitor.monitors.first is AlamofireNotifications)
      #expect(session.sessionConfiguration.headers["User-Agent"] != nil)
    }
  }
}
