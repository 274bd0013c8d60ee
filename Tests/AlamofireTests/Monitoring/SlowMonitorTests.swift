import Alamofire
import Foundation
import FoundationNetworking
import Testing

/// A monitor whose queue is returned slowly on one thread. Other threads may notify it of earlier events at the same
/// time.
private final class SlowMonitor: EventMonitor {
  static let slowThread = "slow monitor"

  let events = Recorder<String>()
  /// The end of the task, and the cancellation that leads to it.
  let ends = Recorder<String>()
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
  func requestDidCancel(_ request: Request) {
    events.add("cancel")
    ends.add("cancel")
  }
  func request(_ request: Request, didCancelTask task: URLSessionTask) { ends.add("cancel task") }
  func request(_ request: Request, didGatherMetrics metrics: TaskMetrics) { ends.add("metrics") }
  func request(_ request: Request, didCompleteTask task: URLSessionTask, with error: AFError?) {
    ends.add("complete task")
  }
  func requestDidFinish(_ request: Request) { events.add("finish") }
}

/// A monitor that suspends its request while it is notified that the task of the request was resumed.
private final class SuspendingMonitor: EventMonitor {
  let events = Recorder<String>()
  private let inner = DispatchQueue(label: "suspending")
  private let watched = Mutex<Request?>(nil)

  func watch(_ request: Request) { watched.withLock { $0 = request } }

  var queue: DispatchQueue {
    inner.sync {}
    if events.values.last == "create task", let request = watched.withLock({ $0.take() }) {
      request.suspend()
    }
    return inner
  }

  func request(_ request: Request, didCreateTask task: URLSessionTask) { events.add("create task") }
  func requestDidSuspend(_ request: Request) { events.add("suspend") }
  func request(_ request: Request, didSuspendTask task: URLSessionTask) { events.add("suspend task") }
  func request(_ request: Request, didResumeTask task: URLSessionTask) { events.add("resume task") }
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

  @Test("The end of a task is reported after the cancellation that has led to it") func endOfTask() async {
    let monitor = SlowMonitor()
    let (reached, gate) = (Latch(), Latch())
    let session = Session.retained(
      fake: FakeTransport(.text("ok").held(by: gate, reached: reached)),
      observers: SessionObservers(eventMonitors: [monitor]))
    let request = session.request("http://a.test/")
    let ended = Latch()
    request.response(queue: .global()) { _ in ended.open() }
    await reached.wait()
    Thread.detachNewThread {
      Thread.current.threadDictionary[SlowMonitor.slowThread] = true
      request.cancel()
    }
    await monitor.isAsked.wait()
    // The transfer ends before the cancellation has been reported.
    gate.open()
    for _ in 0..<2000 where monitor.ends.count == 0 { await Task.yield() }
    monitor.mayGoOn.signal()
    await ended.wait()
    #expect(await monitor.ends.wait(for: 4) == ["cancel", "cancel task", "metrics", "complete task"])
  }

  @Test("The last reported change of a task is the one that holds") func changeDuringAnnouncement() async {
    let monitor = SuspendingMonitor()
    let session = Session.retained(
      fake: FakeTransport(), startRequestsImmediately: false,
      observers: SessionObservers(eventMonitors: [monitor]))
    let request = session.request("http://a.test/")
    monitor.watch(request)
    request.resume()
    #expect(
      await monitor.events.wait(for: 4) == ["create task", "suspend", "resume task", "suspend task"])
    #expect(request.isSuspended)
    request.cancel()
  }
}
