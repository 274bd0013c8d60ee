import Alamofire
import Foundation
import FoundationNetworking
import Testing

/// A monitor that first lets everything on the root queue happen when it is notified of the end of its request.
private final class DrainingMonitor: EventMonitor {
  let events = Recorder<String>()
  private let inner = DispatchQueue(label: "draining")
  private let isOnRootQueue = DispatchSpecificKey<Bool>()
  private let watched = Mutex<(request: Request, session: Session)?>(nil)
  /// Whether the monitor ends the session, too, before everything on the root queue happens.
  private let endsSession: Bool

  init(endsSession: Bool = false) { self.endsSession = endsSession }

  func watch(_ request: Request, of session: Session) {
    session.rootQueue.setSpecific(key: isOnRootQueue, value: true)
    watched.withLock { $0 = (request, session) }
  }

  var queue: DispatchQueue {
    if let (request, session) = watched.withLock({ $0 }), request.isFinished,
      DispatchQueue.getSpecific(key: isOnRootQueue) == nil
    {
      if endsSession { session.session.finishTasksAndInvalidate() }
      for _ in 0..<3 { session.rootQueue.sync {} }
    }
    return inner
  }

  func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
    events.add("end of the session")
  }
  func requestDidFinish(_ request: Request) { events.add("end of the request") }
  func request(_ request: DataRequest, didParseResponse response: DataResponse<Data?, AFError>) {
    events.add("response")
  }
}

@Suite("The last events of a session", .timeLimit(.minutes(5)))
struct LastEventTests {
  @Test("The end of a session that waits for its requests is reported after the end of the last one")
  func order() async {
    let monitor = DrainingMonitor()
    let (reached, gate) = (Latch(), Latch())
    let session = Session.retained(
      fake: FakeTransport(.text("ok").held(by: gate, reached: reached)),
      observers: SessionObservers(eventMonitors: [monitor]))
    let request = session.request("http://a.test/")
    monitor.watch(request, of: session)
    async let response = request.end()
    await reached.wait()
    session.session.finishTasksAndInvalidate()
    gate.open()
    #expect(await response.error == nil)
    #expect(
      await monitor.events.wait(for: 3) == ["end of the request", "response", "end of the session"])
  }

  @Test("The end of a session is reported after the end of a request that is just being reported")
  func endDuringReport() async {
    let monitor = DrainingMonitor(endsSession: true)
    let session = Session.retained(
      fake: FakeTransport(.text("ok")), observers: SessionObservers(eventMonitors: [monitor]))
    let request = session.request("http://a.test/")
    monitor.watch(request, of: session)
    #expect(await request.end().error == nil)
    #expect(
      await monitor.events.wait(for: 3) == ["end of the request", "response", "end of the session"])
  }
}
