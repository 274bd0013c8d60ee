import Alamofire
import Foundation
import Testing

/// A monitor whose queue is returned slowly on one thread. Other threads may notify it of earlier events at the same
/// time.
private final class SlowMonitor: EventMonitor {
  static let slowThread = "slow monitor"

  let events = Recorder<String>()
  let isAsked = Latch()
  let mayGoOn = DispatchSemaphore(value: 0)
  private let inner = DispatchQueue(label: "slow")

  var queue: DispatchQueue {
    if Thread.current.threadDictionary[Self.slowThread] != nil, !isAsked.isOpen {
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

@Suite("A monitor with a slow queue", .timeLimit(.minutes(5)))
struct SlowMonitorTests {
  @Test("The end is reported after the beginning") func order() async {
    let monitor = SlowMonitor()
    // The request has been resumed by a thread that has not reported the start yet.
    let session = Session.retained(
      fake: FakeTransport(), startRequestsImmediately: false, requestSetup: .eager,
      observers: SessionObservers(eventMonitors: [monitor]))
    let request = session.request("http://a.test/")
    let ended = Latch()
    request.response(queue: .global()) { _ in ended.open() }
    await monitor.events.wait(for: 1)
    Thread.detachNewThread {
      // A name would be ignored as long as the call that starts the thread has not returned.
      Thread.current.threadDictionary[SlowMonitor.slowThread] = true
      request.resume()
    }
    await monitor.isAsked.wait()
    request.cancel()
    // Long enough for an end that is reported too early.
    for _ in 0..<2000 where !ended.isOpen { await Task.yield() }
    monitor.mayGoOn.signal()
    await ended.wait()
    #expect(await monitor.events.wait(for: 4) == ["request", "cancel", "resume", "finish"])
  }
}
