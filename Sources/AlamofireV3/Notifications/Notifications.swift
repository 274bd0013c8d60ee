public import Foundation
import FoundationNetworking

/// The notifications of requests.
public struct Notifications: Sendable {
  /// Posted for tasks, with the `URLSessionTask` as their object: the first three by the method of that name, on the
  /// thread that calls it. Not for requests that could not be made, which have no task.
  public struct Task: Sendable {
    /// A request is resumed. Posted before it starts, so that no end comes before its beginning.
    public static let DidResume = Notification.Name("com.alamofire.notifications.task.didResume")
    /// A request was suspended.
    public static let DidSuspend = Notification.Name("com.alamofire.notifications.task.didSuspend")
    /// A request is cancelled. Posted before it ends.
    public static let DidCancel = Notification.Name("com.alamofire.notifications.task.didCancel")
    /// A request is over; its handlers have not been called yet.
    public static let DidComplete = Notification.Name("com.alamofire.notifications.task.didComplete")
  }

  static func post(_ name: Notification.Name, of request: Request) {
    guard let task = request.task else { return }
    NotificationCenter.default.post(name: name, object: task)
  }
}
