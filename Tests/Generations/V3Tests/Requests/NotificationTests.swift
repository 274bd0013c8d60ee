import AlamofireV3
import Foundation
import FoundationNetworking
import HTTPTestServer
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5))) struct NotificationTests {
  /// Records the notifications of the task of one request. The order is deterministic: once a task has started, its end
  /// may come at any time, so the test lets it come first.
  private final class Watch: Sendable {
    let request: Request
    let notes = Notes()
    private let observers = Mutex<[UncheckedBox<any NSObjectProtocol>]>([])
    private let ended = DispatchSemaphore(value: 0)

    init(_ request: Request) {
      self.request = request
      observe(Notifications.Task.DidResume) { $0.begin("resume") }
      observe(Notifications.Task.DidCancel) { $0.begin("cancel") }
      observe(Notifications.Task.DidComplete) {
        $0.notes.add("complete")
        $0.ended.signal()
      }
    }

    private func observe(_ name: Notification.Name, _ body: @escaping @Sendable (Watch) -> Void) {
      let observer = NotificationCenter.default.addObserver(
        forName: name, object: request.task, queue: nil
      ) { [weak self] _ in
        if let self { body(self) }
      }
      let carried = UncheckedBox(value: observer)
      observers.withLock { $0.append(carried) }
    }

    private func begin(_ name: String) {
      if request.task?.state != .suspended { _ = ended.wait(timeout: .now() + 60) }
      notes.add(name)
    }

    /// Returns the notifications that were posted until the end of the request.
    func lines() async -> [String] {
      #expect(await request.end().error != nil)
      for observer in observers.withLock({ $0 }) { NotificationCenter.default.removeObserver(observer.value) }
      return notes.lines
    }
  }

  @Test("An end is not posted before its cause", arguments: ["resume", "cancel"])
  func order(verb: String) async throws {
    let url = "http://127.0.0.1:\(try HTTPTestServer.refusedPort())/"
    let manager = Manager.isolated(starting: false)
    let made = Mutex<[Watch]>([])
    // On another thread, because the ends need the threads of this test.
    await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        DispatchQueue.concurrentPerform(iterations: 60) { index in
          let request =
            switch index % 3 {
            case 0: manager.request(.GET, url)
            case 1: manager.upload(.POST, url, data: Data("x".utf8))
            default: manager.download(.GET, url, destination: { file, _ in file })
            }
          let watch = Watch(request)
          made.withLock { $0.append(watch) }
          verb == "resume" ? request.resume() : request.cancel()
        }
        continuation.resume()
      }
    }
    for watch in made.withLock({ $0 }) {
      #expect(watch.request.task != nil)
      #expect(await watch.lines() == [verb, "complete"])
    }
  }

  @Test("A request that cannot be created has no task") func creationFailure() async throws {
    let notes = Notes()
    let observer = NotificationCenter.default.addObserver(
      forName: Notifications.Task.DidComplete, object: nil, queue: nil
    ) { note in
      if note.object == nil { notes.add("no task") }
    }
    let end = await Manager.isolated().request(.GET, "http://exa mple.com/<>").end()
    NotificationCenter.default.removeObserver(observer)
    #expect(end.error?.code == NSURLErrorBadURL)
    #expect(notes.lines == [])
  }
}
