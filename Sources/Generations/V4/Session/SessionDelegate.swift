import Foundation
import FoundationNetworking

/// The delegate of a manager: it is called for events of tasks, and decides about some of them.
///
/// Set a closure, which replaces the behaviour of the class, or override a method and call `super`. Both are called
/// on a queue of the manager, one at a time, in the order of events. If a completion handler is released without a
/// call, the behaviour of the class is used.
///
/// ```swift
/// manager.delegate.taskWillPerformHTTPRedirection = { session, task, response, request in
///   request.url?.host == "example.com" ? request : nil
/// }
/// ```
open class SessionDelegate: ClosureSessionDelegate<any Error>, @unchecked Sendable {
  // Unchecked, as its superclass is: its own properties have a lock.

  private struct KnownBridge {
    weak var bridge: RequestBridge?
  }

  /// The bridges of running requests, for any thread.
  private let bridges = Mutex<[ObjectIdentifier: KnownBridge]>([:])

  /// Makes a delegate for one manager.
  public init() {
    // The delegate is always called for challenges, because credentials may be added to a request after its challenge.
    super.init(
      ownClass: SessionDelegate.self, neededEvents: { $0.events.union(.authentication) },
      convertError: { $0 })
  }

  // MARK: The requests

  /// The request of a task; `nil` when it is over, or not of this manager.
  open subscript(task: URLSessionTask) -> Request? {
    for bridge in bridges.withLock({ $0.values.compactMap(\.bridge) }) {
      guard let request = bridge.request else { continue }
      if request.task === task || request.core.tasks.contains(where: { $0 === task }) { return request }
    }
    return nil
  }

  func remember(_ bridge: RequestBridge) {
    bridges.withLock { $0[ObjectIdentifier(bridge)] = KnownBridge(bridge: bridge) }
  }

  func forget(_ bridge: RequestBridge) {
    bridges.withLock { bridges -> Void in bridges[ObjectIdentifier(bridge)] = nil }
  }

  /// Called when a request has ended and will not be retried.
  func completed(_ request: Request) {
    guard let task = request.task else { return }
    taskDidComplete?(request.session, task, request.bridge.failure)
    var info: [String: Any] = [Notification.Key.Task: task]
    info[Notification.Key.ResponseData] = request.delegate.data
    NotificationCenter.default.post(name: Notification.Name.Task.DidComplete, object: self, userInfo: info)
  }

  // MARK: Challenges

  /// Called with each challenge of a server or a proxy. The default is the credential of the request.
  open override func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    // Credentials may be added after this challenge; the request is then sent again.
    if !challenge.isOfConnection, !closures.answersTasks { self[task]?.bridge.challenged() }
    super.urlSession(session, task: task, didReceive: challenge, completionHandler: completionHandler)
  }
}
