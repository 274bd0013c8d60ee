public import Foundation
public import FoundationNetworking
import Synchronization

extension Request {
  /// Posted when a request is resumed.
  public static var didResumeNotification: Notification.Name { NotificationDemand.name("didResume") }
  /// Posted when a request is suspended.
  public static var didSuspendNotification: Notification.Name { NotificationDemand.name("didSuspend") }
  /// Posted when a request is cancelled.
  public static var didCancelNotification: Notification.Name { NotificationDemand.name("didCancel") }
  /// Posted when a request has ended, before its response handlers are called.
  public static var didFinishNotification: Notification.Name { NotificationDemand.name("didFinish") }
  /// Posted when the task of an attempt runs.
  public static var didResumeTaskNotification: Notification.Name { NotificationDemand.name("didResumeTask") }
  /// Posted when the task of an attempt is suspended.
  public static var didSuspendTaskNotification: Notification.Name {
    NotificationDemand.name("didSuspendTask")
  }
  /// Posted when the task of an attempt is cancelled.
  public static var didCancelTaskNotification: Notification.Name { NotificationDemand.name("didCancelTask") }
  /// Posted when an attempt has ended and its validators have run.
  public static var didCompleteTaskNotification: Notification.Name {
    NotificationDemand.name("didCompleteTask")
  }
}

extension Notification {
  /// The request of the notification; `nil` unless the notification is one that ``Request`` declares.
  public var request: Request? { userInfo?[NotificationDemand.requestKey] as? Request }
}

/// Whether the notifications may have observers. An observer has to use the name of one, so that requests post none
/// before a name is used.
enum NotificationDemand {
  static let requestKey = "org.alamofire.notification.key.request"
  /// Whether a name of a notification was read. It never becomes false again.
  private static let hasBeenNamed = Atomic<Bool>(false)

  static var exists: Bool { hasBeenNamed.load(ordering: .relaxed) }

  static func name(_ event: String) -> Notification.Name {
    if !exists { hasBeenNamed.store(true, ordering: .relaxed) }
    return unobserved(event)
  }

  static func unobserved(_ event: String) -> Notification.Name {
    Notification.Name("org.alamofire.notification.name.request.\(event)")
  }
}

/// Posts the notifications of ``Request``, on the main queue, with the request as `Notification.request` and no
/// object. Every session has one unless it is given other monitors.
///
/// The session's monitor begins to post when a name such as ``Request/didFinishNotification`` is first used in the
/// process, and costs nothing before that. For an observer of all notifications, give the session one that always
/// posts:
///
/// ```swift
/// let session = Session(eventMonitors: [AlamofireNotifications()])
/// ```
public final class AlamofireNotifications: EventMonitor, ChunklessMonitor {
  /// The monitor of a session that is given no others.
  public static let onDemand = AlamofireNotifications(isOnDemand: true)

  let isOnDemand: Bool

  /// Posts always.
  public init() {
    isOnDemand = false
  }

  private init(isOnDemand: Bool) {
    self.isOnDemand = isOnDemand
  }

  /// Posts ``Request/didResumeNotification``.
  public func requestDidResume(_ request: Request) { post("didResume", request) }
  /// Posts ``Request/didSuspendNotification``.
  public func requestDidSuspend(_ request: Request) { post("didSuspend", request) }
  /// Posts ``Request/didCancelNotification``.
  public func requestDidCancel(_ request: Request) { post("didCancel", request) }
  /// Posts ``Request/didFinishNotification``.
  public func requestDidFinish(_ request: Request) { post("didFinish", request) }
  /// Posts ``Request/didResumeTaskNotification``.
  public func request(_ request: Request, didResumeTask task: URLSessionTask) {
    post("didResumeTask", request)
  }
  /// Posts ``Request/didSuspendTaskNotification``.
  public func request(_ request: Request, didSuspendTask task: URLSessionTask) {
    post("didSuspendTask", request)
  }
  /// Posts ``Request/didCancelTaskNotification``.
  public func request(_ request: Request, didCancelTask task: URLSessionTask) {
    post("didCancelTask", request)
  }
  /// Posts ``Request/didCompleteTaskNotification``.
  public func request(_ request: Request, didCompleteTask task: URLSessionTask, with error: AFError?) {
    post("didCompleteTask", request)
  }

  private func post(_ event: String, _ request: Request) {
    NotificationCenter.default.post(
      name: NotificationDemand.unobserved(event), object: nil,
      userInfo: [NotificationDemand.requestKey: request])
  }
}
