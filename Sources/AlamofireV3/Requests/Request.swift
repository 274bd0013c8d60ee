import Alamofire
public import Foundation
public import FoundationNetworking
import Synchronization

/// One request, of whatever kind: data, upload or download. A ``Manager`` makes it, and starts it at once unless it
/// was told otherwise.
///
/// Every method may be called from any thread and any number of times. Validators and handlers run one after the
/// other, in the order in which they were added, once the request is over; those that are added later run then.
public final class Request: Sendable {
  /// The request that does the work; all that is said here is said to it.
  let core: Alamofire::Request
  /// What was made of the caller's arguments, or why nothing could be made.
  let prepared: PreparedRequest
  /// What is done when it is over.
  let afterwards = Afterwards()
  /// What has come of it.
  let record = Mutex(RequestRecord())

  init(_ core: Alamofire::Request, _ prepared: PreparedRequest) {
    self.core = core
    self.prepared = prepared
    // The core lets go of its handlers, and so of this request, when it is over.
    switch core {
    case let download as DownloadRequest:
      download.response(queue: afterwards.queue) { response in
        self.end(response.response, response.error, nil, response.resumeData, response.metrics)
      }
    case let data as DataRequest:
      data.response(queue: afterwards.queue) { response in
        self.end(response.response, response.error, response.data ?? Data(), nil, response.metrics)
      }
    default: preconditionFailure("A manager makes no other kinds of requests: \(core)")
    }
  }

  // MARK: What it has come to

  /// What does the work; there as soon as the request is made. `nil` when it could not be made.
  public var task: URLSessionTask? { core.task }

  /// The request as it was made; `nil` when it could not be.
  public var request: URLRequest? { core.request ?? prepared.value }

  /// The server's answer; `nil` until it has come, and for failures without one.
  public var response: HTTPURLResponse? { record.withLock { $0.response } ?? core.response }

  /// How far the body has come: that of an upload on its way there, any other on its way back. The total is −1
  /// when it is not known.
  public var progress: Progress {
    core is UploadRequest ? core.uploadProgress : core.downloadProgress
  }

  /// What a download that was cancelled or broken off can go on from; `nil` while it is under way, and where the
  /// server does not allow it.
  public var resumeData: Data? {
    record.withLock { $0.resumeData } ?? (core as? DownloadRequest)?.resumeData
  }

  // MARK: State

  /// Starts the request, or lets it go on; its handlers, too.
  public func resume() {
    record.withLock { if $0.startTime == nil { $0.startTime = Timeline.now } }
    core.resume()
    afterwards.release()
    Notifications.post(Notifications.Task.DidResume, of: self)
  }

  /// Holds the request back, and its handlers, also when it is over.
  public func suspend() {
    core.suspend()
    afterwards.hold()
    Notifications.post(Notifications.Task.DidSuspend, of: self)
  }

  /// Ends the request: its handlers get the error `NSURLErrorCancelled`. A download keeps its resume data.
  public func cancel() {
    if let download = core as? DownloadRequest {
      download.cancel(producingResumeData: true)
    } else {
      core.cancel()
    }
    afterwards.release()
    Notifications.post(Notifications.Task.DidCancel, of: self)
  }

  // MARK: Credentials

  /// Answers challenges of the server with a name and a password.
  ///
  /// - Parameters:
  ///   - user: The name.
  ///   - password: The password.
  ///   - persistence: How long they may be kept. Default: for the session.
  @discardableResult
  public func authenticate(
    user: String, password: String, persistence: URLCredential.Persistence = .forSession
  ) -> Self {
    authenticate(usingCredential: URLCredential(user: user, password: password, persistence: persistence))
  }

  /// Answers challenges of the server with `credential`.
  @discardableResult
  public func authenticate(usingCredential credential: URLCredential) -> Self {
    core.authenticate(with: credential)
    return self
  }

  /// A header field for Basic credentials (RFC 7617), to be merged into others: `["Authorization": "Basic …"]`.
  public static func authorizationHeader(user: String, password: String) -> [String: String] {
    let field = HTTPHeader.authorization(username: user, password: password)
    return [field.name: field.value]
  }

  // MARK: The end

  private func end(
    _ response: HTTPURLResponse?, _ error: AFError?, _ data: Data?, _ resumeData: Data?,
    _ metrics: TaskMetrics?
  ) {
    record.withLock { record in
      let now = Timeline.now
      record.response = response
      record.error = error.map(generationThreeError)
      record.resumeData = resumeData
      record.data = record.isStreamed ? nil : data ?? resumeData
      record.endTime = now
      let began = metrics?.transactionMetrics.last?.responseStartDate
      record.initialResponseTime = began?.timeIntervalSinceReferenceDate ?? now
    }
    Notifications.post(Notifications.Task.DidComplete, of: self)
    afterwards.open()
  }
}

/// What has come of a request. Guarded by its lock.
struct RequestRecord: Sendable {
  var response: HTTPURLResponse?
  var data: Data?
  var resumeData: Data?
  /// That of the transfer, or of the first validator that refused.
  var error: NSError?
  /// Whether the body goes to a closure.
  var isStreamed = false
  var startTime: TimeInterval?
  var initialResponseTime: TimeInterval?
  var endTime: TimeInterval?

  /// The points in time, for a serialization that is over now.
  var timeline: Timeline {
    let now = Timeline.now
    let end = endTime ?? now
    return Timeline(
      requestStartTime: startTime ?? end, initialResponseTime: initialResponseTime ?? end,
      requestCompletedTime: end, serializationCompletedTime: now)
  }
}
