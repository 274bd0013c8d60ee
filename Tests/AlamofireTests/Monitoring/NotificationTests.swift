import Alamofire
import Foundation
import FoundationNetworking
import Testing

@Suite("Notifications", .timeLimit(.minutes(5)))
struct NotificationTests {
  private final class Observer: @unchecked Sendable {
    private var tokens: [any NSObjectProtocol] = []
    let names = Recorder<String>()

    /// Observes one request only, because other tests run concurrently.
    init(of request: Request, _ names: [Notification.Name]) {
      for name in names {
        tokens.append(
          NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) {
            [names = self.names] in
            if $0.request == request { names.add($0.name.rawValue) }
          })
      }
    }

    deinit { for token in tokens { NotificationCenter.default.removeObserver(token) } }
  }

  private static let prefix = "org.alamofire.notification.name.request."

  @Test("Notifications are posted once their names are used")
  func named() async {
    let session = Session.retained(fake: FakeTransport())
    let request = session.request("http://a.test/")
    let observer = Observer(
      of: request,
      [
        Request.didResumeNotification, Request.didResumeTaskNotification, Request.didCompleteTaskNotification,
        Request.didFinishNotification,
      ])
    _ = await request.end()
    let names = await observer.names.wait(for: 4)
    #expect(names == ["didResume", "didResumeTask", "didCompleteTask", "didFinish"].map { Self.prefix + $0 })
  }

  @Test("Suspending and cancelling post notifications")
  func cancelled() async {
    let session = Session.retained(fake: FakeTransport())
    let request = session.request("http://a.test/")
    let observer = Observer(of: request, [Request.didSuspendNotification, Request.didCancelNotification])
    request.suspend()
    request.cancel()
    let names = await observer.names.wait(for: 2)
    #expect(names == ["didSuspend", "didCancel"].map { Self.prefix + $0 })
  }

  @Test("A session without monitors posts none")
  func without() async {
    let session = Session.retained(fake: FakeTransport(), observers: SessionObservers(eventMonitors: []))
    let (silent, loud) = (
      session.request("http://a.test/"), Session.retained(fake: FakeTransport()).request("http://a.test/")
    )
    let observers = [silent, loud].map { Observer(of: $0, [Request.didFinishNotification]) }
    _ = await silent.end()
    _ = await loud.end()
    await observers[1].names.wait(for: 1)
    #expect(observers[0].names.values.isEmpty)
  }

  @available(*, deprecated)
  @Test("The default monitors of a session post notifications beside other monitors")
  func defaultMonitors() async {
    let monitors = Session().defaultEventMonitors + [EventSpy()]
    let session = Session.retained(
      fake: FakeTransport(), observers: SessionObservers(eventMonitors: monitors))
    let request = session.request("http://a.test/")
    let observer = Observer(of: request, [Request.didFinishNotification])
    _ = await request.end()
    #expect(await observer.names.wait(for: 1) == [Self.prefix + "didFinish"])
  }

  @Test("Other notifications have no request")
  func others() {
    #expect(Notification(name: Notification.Name("x")).request == nil)
  }
}
