public import Foundation
public import FoundationNetworking
import Synchronization

/// Receives the events of a session and its requests, for logs, statistics and tests.
///
/// Every method has an empty default; implement those that matter. The methods are called on ``queue``. If that queue
/// is serial, they are called one after the other in the order of events. Monitors on different queues see no common
/// order. A monitor changes nothing. Interceptors, a ``RedirectHandler`` or a ``SessionDelegate`` decide.
///
/// Tasks and sessions are objects of Foundation's classes that show the work of the engine. Resuming, suspending or
/// cancelling such a task does so to its request. Without monitors, none of them is created.
///
/// ```swift
/// struct Logger: EventMonitor {
///   let queue = DispatchQueue(label: "log")
///
///   func requestDidFinish(_ request: Request) { print(request.description) }
/// }
/// ```
///
/// ```swift
/// let session = Session(eventMonitors: [Logger()])
/// ```
///
/// In a file that imports FoundationNetworking in addition to this module, `URLSessionTaskMetrics` is ambiguous: write
/// ``TaskMetrics`` there.
@preconcurrency
public protocol EventMonitor: Sendable {
  /// The queue on which the methods are called. Default: the main queue.
  var queue: DispatchQueue { get }

  // MARK: Events of the URL session

  /// Called when the session accepts no more requests. `error` is `nil` if the program ended the session.
  func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?)

  /// Called when a server or a proxy sends a challenge.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge)

  /// Called when bytes of the request's body have been sent. A total of −1 is unknown.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64)

  /// Called when a body that is a stream has to be sent again.
  func urlSession(_ session: URLSession, taskNeedsNewBodyStream task: URLSessionTask)

  /// Called when a response redirects to `request`, unless a ``RedirectHandler`` decides otherwise.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest)

  /// Called when the metrics of an attempt are complete.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics)

  /// Called when an attempt has ended. `error` is `nil` if a response was received, whatever its status.
  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?)

  /// Called once when an attempt waits for a network because of `waitsForConnectivity`.
  func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask)

  /// Called when the head of a response was received.
  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse)

  /// Called when a chunk of the body of a response was received, except for redirects that are followed.
  ///
  /// Chunks that the monitor has not received yet stay in memory, without a limit. It should not block its queue.
  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data)

  /// Called when a response may be stored, unless a ``CachedResponseHandler`` decides otherwise.
  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
  )

  /// Called when a download continues at `fileOffset`, in bytes. A total of −1 is unknown.
  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
    expectedTotalBytes: Int64)

  /// Called when bytes of a download were received. A total of −1 is unknown.
  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
    totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64)

  /// Called when a download is complete, in a temporary file.
  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL)

  // MARK: Events of requests

  /// Called when the request has been created, before any adapter.
  func request(_ request: Request, didCreateInitialURLRequest urlRequest: URLRequest)

  /// Called when the request could not be created.
  func request(_ request: Request, didFailToCreateURLRequestWithError error: AFError)

  /// Called when the adapters have changed the request.
  func request(
    _ request: Request, didAdaptInitialRequest initialRequest: URLRequest, to adaptedRequest: URLRequest)

  /// Called when an adapter has failed, or has returned a request that cannot be sent.
  func request(
    _ request: Request, didFailToAdaptURLRequest initialRequest: URLRequest, withError error: AFError)

  /// Called when the request is complete and will be sent.
  func request(_ request: Request, didCreateURLRequest urlRequest: URLRequest)

  /// Called when an attempt begins.
  func request(_ request: Request, didCreateTask task: URLSessionTask)

  /// Called when the metrics of an attempt are complete.
  func request(_ request: Request, didGatherMetrics metrics: URLSessionTaskMetrics)

  /// Called when an attempt has failed before the end of its task, because a server is not trusted.
  func request(_ request: Request, didFailTask task: URLSessionTask, earlyWithError error: AFError)

  /// Called when an attempt has ended, and its validators have run.
  func request(_ request: Request, didCompleteTask task: URLSessionTask, with error: AFError?)

  /// Called when another attempt of the request begins.
  func requestIsRetrying(_ request: Request)

  /// Called when the request has ended, and its state is final. The events of its parsed responses follow, then its
  /// handlers are called. An attempt that is retried because a serializer failed does not end the request. A handler
  /// that is added after the end resumes the request, which then ends again, with the same outcome.
  func requestDidFinish(_ request: Request)

  /// Called when the request was resumed.
  func requestDidResume(_ request: Request)

  /// Called when the task of an attempt runs.
  func request(_ request: Request, didResumeTask task: URLSessionTask)

  /// Called when the request was suspended.
  func requestDidSuspend(_ request: Request)

  /// Called when the task of an attempt was suspended.
  func request(_ request: Request, didSuspendTask task: URLSessionTask)

  /// Called when the request was cancelled.
  func requestDidCancel(_ request: Request)

  /// Called when the task of an attempt was cancelled.
  func request(_ request: Request, didCancelTask task: URLSessionTask)

  /// Called when a validator has evaluated a response.
  func request(
    _ request: DataRequest, didValidateRequest urlRequest: URLRequest?, response: HTTPURLResponse,
    data: Data?, withResult result: Request.ValidationResult)

  /// Called before a handler without serializer is called.
  func request(_ request: DataRequest, didParseResponse response: DataResponse<Data?, AFError>)

  /// Called when a serializer has produced its value or failed.
  func request<Value: Sendable>(
    _ request: DataRequest, didParseResponse response: DataResponse<Value, AFError>)

  /// Called when the body of an upload has been created.
  func request(_ request: UploadRequest, didCreateUploadable uploadable: UploadRequest.Uploadable)

  /// Called when the body of an upload could not be created.
  func request(_ request: UploadRequest, didFailToCreateUploadableWithError error: AFError)

  /// Called before a stream is sent as the body of an upload. Do not read the stream, because it belongs to the upload.
  func request(_ request: UploadRequest, didProvideInputStream stream: InputStream)

  /// Called when the file of a download was moved to its destination, or could not be moved.
  func request(
    _ request: DownloadRequest, didFinishDownloadingUsing task: URLSessionTask,
    with result: Result<URL, AFError>)

  /// Called when the destination of a download is known.
  func request(_ request: DownloadRequest, didCreateDestinationURL url: URL)

  /// Called when a validator has evaluated a download.
  func request(
    _ request: DownloadRequest, didValidateRequest urlRequest: URLRequest?, response: HTTPURLResponse,
    fileURL: URL?, withResult result: Request.ValidationResult)

  /// Called before a handler without serializer is called.
  func request(_ request: DownloadRequest, didParseResponse response: DownloadResponse<URL?, AFError>)

  /// Called when the serializer of a download has produced its value or failed.
  func request<Value: Sendable>(
    _ request: DownloadRequest, didParseResponse response: DownloadResponse<Value, AFError>)

  /// Called when a validator has evaluated the response of a stream.
  func request(
    _ request: DataStreamRequest, didValidateRequest urlRequest: URLRequest?, response: HTTPURLResponse,
    withResult result: Request.ValidationResult)

  /// Called when the serializer of a stream has produced a value or failed, for each handler and each loop. Not called
  /// for bytes that are passed on as they arrive.
  func request<Value: Sendable>(
    _ request: DataStreamRequest, didParseStream result: Result<Value, AFError>)
}

// Every method of a monitor is optional.
extension EventMonitor {
  /// The main queue.
  public var queue: DispatchQueue { .main }

  /// Does nothing.
  public func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {}
  /// Does nothing.
  public func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
  ) {}
  /// Does nothing.
  public func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) {}
  /// Does nothing.
  public func urlSession(_ session: URLSession, taskNeedsNewBodyStream task: URLSessionTask) {}
  /// Does nothing.
  public func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest
  ) {}
  /// Does nothing.
  public func urlSession(
    _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics
  ) {}
  /// Does nothing.
  public func urlSession(
    _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
  ) {}
  /// Does nothing.
  public func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {}
  /// Does nothing.
  public func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
  ) {}
  /// Does nothing.
  public func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {}
  /// Does nothing.
  public func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
  ) {}
  /// Does nothing.
  public func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
    expectedTotalBytes: Int64
  ) {}
  /// Does nothing.
  public func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
    totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
  ) {}
  /// Does nothing.
  public func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
  ) {}
  /// Does nothing.
  public func request(_ request: Request, didCreateInitialURLRequest urlRequest: URLRequest) {}
  /// Does nothing.
  public func request(_ request: Request, didFailToCreateURLRequestWithError error: AFError) {}
  /// Does nothing.
  public func request(
    _ request: Request, didAdaptInitialRequest initialRequest: URLRequest, to adaptedRequest: URLRequest
  ) {}
  /// Does nothing.
  public func request(
    _ request: Request, didFailToAdaptURLRequest initialRequest: URLRequest, withError error: AFError
  ) {}
  /// Does nothing.
  public func request(_ request: Request, didCreateURLRequest urlRequest: URLRequest) {}
  /// Does nothing.
  public func request(_ request: Request, didCreateTask task: URLSessionTask) {}
  /// Does nothing.
  public func request(_ request: Request, didGatherMetrics metrics: URLSessionTaskMetrics) {}
  /// Does nothing.
  public func request(_ request: Request, didFailTask task: URLSessionTask, earlyWithError error: AFError) {}
  /// Does nothing.
  public func request(_ request: Request, didCompleteTask task: URLSessionTask, with error: AFError?) {}
  /// Does nothing.
  public func requestIsRetrying(_ request: Request) {}
  /// Does nothing.
  public func requestDidFinish(_ request: Request) {}
  /// Does nothing.
  public func requestDidResume(_ request: Request) {}
  /// Does nothing.
  public func request(_ request: Request, didResumeTask task: URLSessionTask) {}
  /// Does nothing.
  public func requestDidSuspend(_ request: Request) {}
  /// Does nothing.
  public func request(_ request: Request, didSuspendTask task: URLSessionTask) {}
  /// Does nothing.
  public func requestDidCancel(_ request: Request) {}
  /// Does nothing.
  public func request(_ request: Request, didCancelTask task: URLSessionTask) {}
  /// Does nothing.
  public func request(
    _ request: DataRequest, didValidateRequest urlRequest: URLRequest?, response: HTTPURLResponse,
    data: Data?, withResult result: Request.ValidationResult
  ) {}
  /// Does nothing.
  public func request(_ request: DataRequest, didParseResponse response: DataResponse<Data?, AFError>) {}
  /// Does nothing.
  public func request<Value: Sendable>(
    _ request: DataRequest, didParseResponse response: DataResponse<Value, AFError>
  ) {}
  /// Does nothing.
  public func request(_ request: UploadRequest, didCreateUploadable uploadable: UploadRequest.Uploadable) {}
  /// Does nothing.
  public func request(_ request: UploadRequest, didFailToCreateUploadableWithError error: AFError) {}
  /// Does nothing.
  public func request(_ request: UploadRequest, didProvideInputStream stream: InputStream) {}
  /// Does nothing.
  public func request(
    _ request: DownloadRequest, didFinishDownloadingUsing task: URLSessionTask,
    with result: Result<URL, AFError>
  ) {}
  /// Does nothing.
  public func request(_ request: DownloadRequest, didCreateDestinationURL url: URL) {}
  /// Does nothing.
  public func request(
    _ request: DownloadRequest, didValidateRequest urlRequest: URLRequest?, response: HTTPURLResponse,
    fileURL: URL?, withResult result: Request.ValidationResult
  ) {}
  /// Does nothing.
  public func request(_ request: DownloadRequest, didParseResponse response: DownloadResponse<URL?, AFError>)
  {}
  /// Does nothing.
  public func request<Value: Sendable>(
    _ request: DownloadRequest, didParseResponse response: DownloadResponse<Value, AFError>
  ) {}
  /// Does nothing.
  public func request(
    _ request: DataStreamRequest, didValidateRequest urlRequest: URLRequest?, response: HTTPURLResponse,
    withResult result: Request.ValidationResult
  ) {}
  /// Does nothing.
  public func request<Value: Sendable>(
    _ request: DataStreamRequest, didParseStream result: Result<Value, AFError>
  ) {}
}

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
