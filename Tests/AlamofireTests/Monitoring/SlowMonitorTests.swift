import Alamofire
import Foundation
import Synchronization
import Testing

/// A monitor whose queue is slow to be had, for the first that asks after ``slowDown()``.
private final class SlowMonitor: EventMonitor {
  let events = Recorder<String>()
  let isAsked = Latch()
  let mayGoOn = DispatchSemaphore(value: 0)
  private let inner = DispatchQueue(label: "slow")
  private let isSlow = Mutex(false)

  func slowDown() { isSlow.withLock { $0 = true } }

  var queue: DispatchQueue {
    let waits = isSlow.withLock { isSlow in
      defer { isSlow = false }
      return isSlow
    }
    if waits {
      isAsked.open()
      _ = mayGoOn.wait(timeout: .now() + 120)
    }
    return inner
  }

  func request(_ request: Request, didCreateURLRequest urlRequest: URLRequest) { events.add("request") }
  func requestDidResume(_ request: Request) { events.add("resume") }
  func requestDidCancel(_ request: Request) { events.add("cancel") }
  func requestDidFinish(_ request: Request) { events.add("finish") }
}

@Suite("A monitor that is told slowly", .timeLimit(.minutes(5)))
struct SlowMonitorTests {
  @Test func theEndIsToldAfterTheBeginning() async {
    let monitor = SlowMonitor()
    // What such a request waits for is a thread that has resumed it, and has yet to tell that.
    let session = Session.kept(
      fake: FakeTransport(), startRequestsImmediately: false, requestSetup: .eager,
      watching: SessionWatching(eventMonitors: [monitor]))
    let request = session.request("http://a.test/")
    let ended = Latch()
    request.response(queue: .global()) { _ in ended.open() }
    await monitor.events.wait(for: 1)
    monitor.slowDown()
    Thread.detachNewThread { request.resume() }
    await monitor.isAsked.wait()
    request.cancel()
    // Enough for an end that does not wait.
    for _ in 0..<2000 where !ended.isOpen { await Task.yield() }
    monitor.mayGoOn.signal()
    await ended.wait()
    #expect(await monitor.events.wait(for: 4) == ["request", "cancel", "resume", "finish"])
  }
}
