import Alamofire
import Foundation
import FoundationNetworking
import Testing

@Suite("Sessions that end while a request is made", .timeLimit(.minutes(1))) struct EndDuringCreationTests {
  /// Waits until the session is released.
  private struct Slow: URLRequestConvertible {
    let reached: Latch
    let gate: DispatchSemaphore

    func asURLRequest() throws -> URLRequest {
      reached.open()
      gate.wait()
      return try URLRequest(url: "http://a.test/", method: .get)
    }
  }

  @Test("An adapter is not called after the release of its session, and fails nothing")
  func conversion() async {
    let (reached, gate) = (Latch(), DispatchSemaphore(value: 0))
    let spy = EventSpy()
    let adapter = SpyInterceptor()
    let fake = FakeTransport()
    var session: Session? = Session(fake: fake, observers: SessionObservers(eventMonitors: [spy]))
    guard let request = session?.request(Slow(reached: reached, gate: gate), interceptor: adapter) else {
      return
    }
    let ends = Recorder<AFError?>()
    request.response(queue: .global()) { ends.add($0.error) }
    await reached.wait()
    session = nil
    gate.signal()
    let error = await ends.wait(for: 1).first ?? nil
    #expect(error?.isSessionDeinitializedError == true)
    #expect(adapter.adaptCount == 0 && fake.requests.isEmpty)
    #expect(
      !spy.reported.contains("didFailToAdaptURLRequest"), "the end of the session is no failure of an adapter"
    )
    #expect(spy.reported.last { $0 == "requestDidFinish" } != nil)
  }

  @Test("The second adapter is not called after the release of the session") func secondAdapter() async {
    let (reached, second) = (Latch(), SpyInterceptor())
    let kept = Recorder<@Sendable () -> Void>()
    let first = Adapter { request, _, completion in
      kept.add { completion(.success(request)) }
      reached.open()
    }
    let spy = EventSpy()
    var session: Session? = Session(
      fake: FakeTransport(), observers: SessionObservers(eventMonitors: [spy]))
    guard
      let request = session?.request("http://a.test/", interceptor: first).adapt(using: second)
    else { return }
    let task = request.serializingData()
    await reached.wait()
    session = nil
    for complete in kept.values { complete() }
    #expect(await task.response.error?.isSessionDeinitializedError == true)
    #expect(second.adaptCount == 0)
    #expect(
      !spy.reported.contains("didFailToAdaptURLRequest"), "the end of the session is no failure of an adapter"
    )
  }

  @Test(
    "A session that ends or is invalidated while an adapter is asked fails no adapter",
    arguments: [false, true])
  func askedAdapter(isInvalidated: Bool) async {
    let reached = Latch()
    let kept = Recorder<@Sendable () -> Void>()
    let adapter = Adapter { request, _, completion in
      kept.add { completion(.success(request)) }
      reached.open()
    }
    let spy = EventSpy()
    var session: Session? = Session(
      fake: FakeTransport(), observers: SessionObservers(eventMonitors: [spy]))
    guard let request = session?.request("http://a.test/", interceptor: adapter) else { return }
    let task = request.serializingData()
    await reached.wait()
    if isInvalidated { session?.session.invalidateAndCancel() }
    session = nil
    let error = await task.response.error
    #expect(
      (isInvalidated ? error?.isSessionInvalidatedError : error?.isSessionDeinitializedError) == true,
      "\(String(describing: error))")
    #expect(
      !spy.reported.contains("didFailToAdaptURLRequest"), "the end of the session is no failure of an adapter"
    )
    #expect(request.request?.url?.absoluteString == "http://a.test/")
    #expect(kept.count == 1)
  }
}
