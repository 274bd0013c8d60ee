public import Foundation

extension Notification.Name {
  /// What is posted about the tasks of requests.
  public struct Task: Sendable {
    /// A task runs; the object is the request.
    public static let DidResume = Notification.Name("org.alamofire.notification.name.task.didResume")
    /// A task stands still; the object is the request.
    public static let DidSuspend = Notification.Name("org.alamofire.notification.name.task.didSuspend")
    /// A task was cancelled; the object is the request.
    public static let DidCancel = Notification.Name("org.alamofire.notification.name.task.didCancel")
    /// A task has ended; the object is the delegate of the session.
    public static let DidComplete = Notification.Name("org.alamofire.notification.name.task.didComplete")
  }
}

extension Notification {
  /// The keys of `userInfo`.
  public struct Key: Sendable {
    /// The `URLSessionTask`.
    public static let Task = "org.alamofire.notification.key.task"
    /// The body of the response, as `Data`.
    public static let ResponseData = "org.alamofire.notification.key.responseData"
  }
}
