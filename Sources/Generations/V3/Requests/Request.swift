import Alamofire
public import Foundation
public import FoundationNetworking
import Synchronization

/// A request of any kind: data, upload, download, or a stream of bytes. A ``Manager`` makes it, and starts it unless
/// ``Manager/startRequestsImmediately`` is false.
///
/// Every method may be called from any thread and any number of times. Validators and handlers run after the end of
/// the request, in the order in which they were added; those that are added later run then.
public final class Request: Sendable {
  /// The session of the manager that created it. It does not retain the manager.
  public let session: URLSession
  /// The request of the core, to which all calls are forwarded; `nil` for a stream.
  let core: Alamofire::Request?
  /// The stream that does the work, if there is no request.
  let stream: ByteStreamRequest?
  /// The request created from the caller's arguments, or its error.
  let prepared: PreparedRequest
  /// The validators and handlers.
  let completionQueue = CompletionQueue()
  /// The results so far.
  let record = Mutex(RequestRecord())

  init(_ core: Alamofire::Request, _ prepared: PreparedRequest, _ session: URLSession) {
    self.session = session
    self.core = core
    self.prepared = prepared
    stream = nil
    // Weak, because a request that is never started ends with its last reference. A running request is retained by its
    // queue.
    switch core {
    case let download as DownloadRequest:
      download.response(queue: download.underlyingQueue) { [weak self] response in
        self?.record.withLock { $0.file = response.fileURL }
        self?.end(response.response, response.error, nil, response.resumeData, response.metrics)
      }
    case let data as DataRequest:
      data.response(queue: data.underlyingQueue) { [weak self] response in
        self?.end(response.response, response.error, response.data ?? Data(), nil, response.metrics)
      }
    default: preconditionFailure("A manager makes no other kinds of requests: \(core)")
    }
  }

  init(_ stream: ByteStreamRequest, _ session: URLSession) {
    self.session = session
    core = nil
    prepared = .unknown
    self.stream = stream
    // Weak, as with a request.
    stream.onEnd(queue: completionQueue.queue) { [weak self] error in self?.end(nil, error, nil, nil, nil) }
  }

  deinit {
    let (startTime, form) = record.withLock { ($0.startTime, $0.form) }
    guard let core, startTime == nil else { return }
    guard core.isInitialized || core.isSuspended else {
      // Its task has started it, and the step that removes the form ends with the request.
      if let form { (core as? DataRequest)?.response(queue: core.underlyingQueue) { _ in form.remove() } }
      return
    }
    // Without a reference the request can never be started, so that its handlers will not be called.
    core.cancel()
    form?.remove()
  }

  // MARK: Results

  /// The task, which exists as soon as the request is created; `nil` if the request could not be created. The task of a
  /// stream is a ``URLSessionStreamTask``.
  ///
  /// The task does not retain the request. If you start it by its task instead of ``resume()``, retain it until its
  /// handlers are called: they are dropped with the last reference, and a request that is not started yet is cancelled.
  public var task: URLSessionTask? { core?.task ?? stream?.task }

  /// The request as it was created; `nil` if it could not be, and for a stream, which has none.
  public var request: URLRequest? { core?.request ?? prepared.value }

  /// The response; `nil` before it, after a failure without a response, and for a stream.
  public var response: HTTPURLResponse? { record.withLock { $0.response } ?? core?.response }

  /// The progress of the body: of an upload the bytes sent, of any other request the bytes received. The total is −1 if
  /// it is unknown. The progress of a stream never changes.
  public var progress: Progress {
    guard let core else { return Progress(totalUnitCount: 0) }
    return core is UploadRequest ? core.uploadProgress : core.downloadProgress
  }

  /// The data from which a cancelled or interrupted download can be resumed. `nil` while it runs, and if the server
  /// does not support ranges.
  public var resumeData: Data? {
    record.withLock { $0.resumeData } ?? (core as? DownloadRequest)?.resumeData
  }

  // MARK: State

  /// Starts or continues the request, including its handlers.
  public func resume() {
    // Posted first, so that an observer of notifications sees no end without a beginning.
    Notifications.post(Notifications.Task.DidResume, of: self)
    record.withLock { record in
      if record.startTime == nil { record.startTime = Timeline.now }
    }
    completionQueue.start(for: self)
    core?.resume()
    stream?.resume()
    completionQueue.release(for: self)
  }

  /// Holds the request back, and its handlers, also when it is over. If a suspended request ends nevertheless, because
  /// its task was resumed or its manager is gone for example, its handlers are called.
  public func suspend() {
    core?.suspend()
    stream?.suspend()
    completionQueue.hold(for: self)
    Notifications.post(Notifications.Task.DidSuspend, of: self)
  }

  /// Ends the request: its handlers get the error `NSURLErrorCancelled`. A download keeps its resume data.
  public func cancel() {
    // Before its end, as with ``resume()``.
    Notifications.post(Notifications.Task.DidCancel, of: self)
    completionQueue.start(for: self)
    if let download = core as? DownloadRequest {
      download.cancel(producingResumeData: true)
    } else {
      core?.cancel()
      stream?.cancel()
    }
    completionQueue.release(for: self)
  }

  // MARK: Credentials

  /// Answers challenges of the server with a name and a password.
  ///
  /// - Parameters:
  ///   - user: The name.
  ///   - password: The password.
  ///   - persistence: The lifetime of the credentials. Default: for the session.
  @discardableResult
  public func authenticate(
    user: String, password: String, persistence: URLCredential.Persistence = .forSession
  ) -> Self {
    authenticate(usingCredential: URLCredential(user: user, password: password, persistence: persistence))
  }

  /// Answers challenges of the server with `credential`. It has no effect for a stream, nor on a challenge that has
  /// already arrived. The request may have started, so set ``Manager/startRequestsImmediately`` to `false` if that
  /// matters.
  @discardableResult
  public func authenticate(usingCredential credential: URLCredential) -> Self {
    core?.authenticate(with: credential)
    return self
  }

  /// Returns a header field for Basic credentials (RFC 7617), to be merged into others: `["Authorization": "Basic …"]`.
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
    // The task or the end of the manager may have ended a suspended request, which nothing would resume.
    completionQueue.release(for: self)
    completionQueue.open(for: self)
  }
}

/// The results of a request, which are under its lock.
struct RequestRecord: Sendable {
  var response: HTTPURLResponse?
  var data: Data?
  var resumeData: Data?
  /// The error of the transfer, or of the first validator that refused the response.
  var error: NSError?
  /// Whether the body goes to a closure.
  var isStreamed = false
  /// Whether a closure has received bytes.
  var hasStreamedBytes = false
  /// The file of a download.
  var file: URL?
  var startTime: TimeInterval?
  var initialResponseTime: TimeInterval?
  var endTime: TimeInterval?
  /// The body, if it is a form in a temporary file.
  var form: FormFile?

  /// Whether the response is known to have no body.
  var hasEmptyBody: Bool {
    if let file {
      let attributes = try? FileManager.default.attributesOfItem(atPath: file.path)
      return (attributes?[.size] as? NSNumber)?.int64Value == 0
    }
    return isStreamed ? !hasStreamedBytes : data?.isEmpty == true
  }

  /// The points in time, for a serialization that is over now.
  var timeline: Timeline {
    let now = Timeline.now
    let end = endTime ?? now
    return Timeline(
      requestStartTime: startTime ?? end, initialResponseTime: initialResponseTime ?? end,
      requestCompletedTime: end, serializationCompletedTime: now)
  }
}

extension Request: CustomStringConvertible, CustomDebugStringConvertible {
  /// `METHOD URL (status)`, as far as known; `HOST:PORT` for a stream. The URL is shown without its password.
  public var description: String {
    if let stream { return "\(stream.host):\(stream.port)" }
    guard let request else { return "" }
    var parts = [request.httpMethod ?? "GET"]
    if let url = request.url { parts.append(url.textWithoutPassword) }
    if let response { parts.append("(\(response.statusCode))") }
    return parts.joined(separator: " ")
  }

  /// The request as a cURL command, which begins with `$ curl -i`; the method is named unless it is `GET`. The text
  /// holds the secrets of the request. `HOST:PORT` for a stream.
  public var debugDescription: String {
    guard let core else { return description }
    let separator = " \\\n\t"
    let (current, get) = ("$ curl -v" + separator, "-X GET" + separator)
    let text = core.cURLDescription()
    guard text.hasPrefix(current) else { return text }
    let rest = text.dropFirst(current.count)
    return "$ curl -i" + separator + (rest.hasPrefix(get) ? rest.dropFirst(get.count) : rest)
  }
}

/// The notifications of requests.
public struct Notifications: Sendable {
  /// Posted for tasks, with the `URLSessionTask` as their object: the first three by the method of that name, on the
  /// thread that calls it. Not for requests that could not be created, which have no task.
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

extension Request {
  /// Calls `closure` for sent bytes of an upload, and for received bytes of other requests. All added closures are
  /// called, on the queue of the manager's delegate, one at a time with its closures. It has no effect for a stream
  /// of bytes.
  ///
  /// - Parameter closure: Called with the bytes of this chunk, the bytes so far, and the total; −1 if it is unknown.
  @discardableResult
  public func progress(_ closure: ((Int64, Int64, Int64) -> Void)? = nil) -> Self {
    guard let closure, let core else { return self }
    core.transferMonitor(
      ByteWatch(queue: core.underlyingQueue, isUpload: core is UploadRequest, moved: Boxed(closure)))
    return self
  }

  /// Calls `closure` with the chunks of the body, on the queue of the manager's delegate. The body is not stored:
  /// handlers get no data. The server waits for a slow closure. Validators and handlers run after the last chunk.
  /// Chunks received before the closure was added are delivered together; several closures each get the chunks from the
  /// moment they are added. It has no effect for downloads and streams of bytes.
  @discardableResult
  public func stream(_ closure: ((Data) -> Void)? = nil) -> Self {
    guard let closure, let core = core as? DataRequest else { return self }
    let boxed = Boxed(closure)
    record.withLock { record in
      record.isStreamed = true
      // A validator may be running.
      record.hasStreamedBytes = record.data?.isEmpty == false
      record.data = nil
    }
    completionQueue.close(for: self)
    core.responseChunks(on: core.underlyingQueue) { [weak self] chunk in
      if !chunk.isEmpty { self?.record.withLock { $0.hasStreamedBytes = true } }
      boxed.value(chunk)
    }
    .response(queue: core.underlyingQueue) { [weak self] _ in
      guard let self else { return }
      completionQueue.open(for: self)
    }
    return self
  }
}

/// Calls closures of a request for moved bytes.
private final class ByteWatch: EventMonitor {
  let queue: DispatchQueue
  private let isUpload: Bool
  private let moved: Boxed<(Int64, Int64, Int64) -> Void>
  /// The number of received bytes.
  private let received = Atomic<Int64>(0)

  init(queue: DispatchQueue, isUpload: Bool, moved: Boxed<(Int64, Int64, Int64) -> Void>) {
    self.queue = queue
    self.isUpload = isUpload
    self.moved = moved
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) {
    if isUpload { moved.value(bytesSent, totalBytesSent, totalBytesExpectedToSend) }
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    guard !isUpload else { return }
    let count = Int64(data.count)
    let total = received.wrappingAdd(count, ordering: .relaxed).newValue
    let length = (dataTask.response as? HTTPURLResponse)?.bodyLength ?? -1
    moved.value(count, total, length)
  }

  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
    totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
  ) {
    moved.value(bytesWritten, totalBytesWritten, totalBytesExpectedToWrite)
  }
}

extension HTTPURLResponse {
  /// The length of the decoded body; `nil` if it was encoded, or if the response has no `Content-Length`.
  fileprivate var bodyLength: Int64? {
    guard value(forHTTPHeaderField: "Content-Encoding") == nil else { return nil }
    return value(forHTTPHeaderField: "Content-Length").flatMap { Int64($0) }
  }
}

extension Request {
  /// Returns the destination of a downloaded file, for the temporary file and the response. Not called on the main
  /// queue. An existing file or a missing folder is an error: no file is replaced, and no folder created.
  public typealias DownloadFileDestination = (URL, HTTPURLResponse) -> URL

  /// Makes a destination in a folder of the system, under the name that the response suggests. A missing folder is
  /// created.
  ///
  /// - Parameters:
  ///   - directory: The kind of folder. Default: documents.
  ///   - domain: The domain of the folder. Default: the home folder of the user.
  public static func suggestedDownloadDestination(
    directory: FileManager.SearchPathDirectory = .documentDirectory,
    domain: FileManager.SearchPathDomainMask = .userDomainMask
  ) -> DownloadFileDestination {
    let destination = DownloadRequest.suggestedDownloadDestination(for: directory, in: domain)
    return { destination($0, $1).destinationURL }
  }
}
