public import Foundation
import FoundationNetworking

/// The notifications of requests.
public struct Notifications: Sendable {
  /// Posted for tasks, with the `URLSessionTask` as their object: the first three by the method of that name, on the
  /// thread that calls it.
  public struct Task: Sendable {
    /// A request was resumed.
    public static let DidResume = Notification.Name("com.alamofire.notifications.task.didResume")
    /// A request was suspended.
    public static let DidSuspend = Notification.Name("com.alamofire.notifications.task.didSuspend")
    /// A request was cancelled.
    public static let DidCancel = Notification.Name("com.alamofire.notifications.task.didCancel")
    /// A request is over; its handlers have not been called yet.
    public static let DidComplete = Notification.Name("com.alamofire.notifications.task.didComplete")
  }

  static func post(_ name: Notification.Name, of request: Request) {
    NotificationCenter.default.post(name: name, object: request.task)
  }
}
