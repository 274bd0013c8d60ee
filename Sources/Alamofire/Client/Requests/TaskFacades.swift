import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

extension Request {
  func makeTask(_ record: TaskRecord) -> URLSessionTask {
    switch self {
    case is UploadRequest: UploadTaskFacade(record)
    case is DownloadRequest: DownloadTaskFacade(record)
    case is WebSocketRequest: WebSocketTaskFacade(record)
    default: DataTaskFacade(record)
    }
  }
}

extension TaskRecord {
  /// The request, if it was not released.
  var request: Request? { owner as? Request }

  /// The progress of the response body.
  var progress: Progress { request?.downloadProgress ?? Progress(totalUnitCount: 0) }

  /// Calls `body` with the request, unless the attempt has ended, because the request then has another task.
  func withRequest(_ body: (Request) -> Void) {
    if let request = currentOwner as? Request { body(request) }
  }
}

/// The task of a data request's attempt: an object of Foundation's class for a transfer of the engine.
///
/// Unchecked, as Foundation's class is: its own property is constant. The kinds of tasks repeat their members,
/// because Foundation's classes allow no common superclass between.
final class DataTaskFacade: URLSessionDataTask, RecordedTask, @unchecked Sendable {
  let record: TaskRecord

  init(_ record: TaskRecord) {
    self.record = record
    super.init()
  }

  override var taskIdentifier: Int {
    get { record.identifier }
    set {}
  }
  override var originalRequest: URLRequest? {
    get { record.view.originalRequest }
    set {}
  }
  override var currentRequest: URLRequest? {
    get { record.view.currentRequest }
    set {}
  }
  override var response: URLResponse? {
    get { record.view.response }
    set {}
  }
  override var error: (any Error)? {
    get { record.view.error }
    set {}
  }
  override var state: URLSessionTask.State {
    get { record.view.state }
    set {}
  }
  override var countOfBytesSent: Int64 {
    get { record.view.count.sent }
    set {}
  }
  override var countOfBytesReceived: Int64 {
    get { record.view.count.received }
    set {}
  }
  override var countOfBytesExpectedToSend: Int64 {
    get { record.view.count.expectedToSend }
    set {}
  }
  override var countOfBytesExpectedToReceive: Int64 {
    get { record.view.count.expectedToReceive }
    set {}
  }
  override var progress: Progress {
    get { record.progress }
    set {}
  }

  override var priority: Float {
    get { record.request?.priority ?? URLSessionTask.defaultPriority }
    set { record.withRequest { $0.priority = newValue } }
  }

  override func resume() { record.withRequest { $0.resume() } }
  override func suspend() { record.withRequest { $0.suspend() } }
  override func cancel() { record.withRequest { $0.cancel() } }
}

/// The task of an upload's attempt: an object of Foundation's class for a transfer of the engine.
///
/// Unchecked, as Foundation's class is: its own property is constant. The kinds of tasks repeat their members,
/// because Foundation's classes allow no common superclass between.
final class UploadTaskFacade: URLSessionUploadTask, RecordedTask, @unchecked Sendable {
  let record: TaskRecord

  init(_ record: TaskRecord) {
    self.record = record
    super.init()
  }

  override var taskIdentifier: Int {
    get { record.identifier }
    set {}
  }
  override var originalRequest: URLRequest? {
    get { record.view.originalRequest }
    set {}
  }
  override var currentRequest: URLRequest? {
    get { record.view.currentRequest }
    set {}
  }
  override var response: URLResponse? {
    get { record.view.response }
    set {}
  }
  override var error: (any Error)? {
    get { record.view.error }
    set {}
  }
  override var state: URLSessionTask.State {
    get { record.view.state }
    set {}
  }
  override var countOfBytesSent: Int64 {
    get { record.view.count.sent }
    set {}
  }
  override var countOfBytesReceived: Int64 {
    get { record.view.count.received }
    set {}
  }
  override var countOfBytesExpectedToSend: Int64 {
    get { record.view.count.expectedToSend }
    set {}
  }
  override var countOfBytesExpectedToReceive: Int64 {
    get { record.view.count.expectedToReceive }
    set {}
  }
  override var progress: Progress {
    get { record.progress }
    set {}
  }

  override var priority: Float {
    get { record.request?.priority ?? URLSessionTask.defaultPriority }
    set { record.withRequest { $0.priority = newValue } }
  }

  override func resume() { record.withRequest { $0.resume() } }
  override func suspend() { record.withRequest { $0.suspend() } }
  override func cancel() { record.withRequest { $0.cancel() } }
}

/// The task of a download's attempt: an object of Foundation's class for a transfer of the engine.
///
/// Unchecked, as Foundation's class is: its own property is constant. The kinds of tasks repeat their members,
/// because Foundation's classes allow no common superclass between.
final class DownloadTaskFacade: URLSessionDownloadTask, RecordedTask, @unchecked Sendable {
  let record: TaskRecord

  init(_ record: TaskRecord) {
    self.record = record
    super.init()
  }

  override var taskIdentifier: Int {
    get { record.identifier }
    set {}
  }
  override var originalRequest: URLRequest? {
    get { record.view.originalRequest }
    set {}
  }
  override var currentRequest: URLRequest? {
    get { record.view.currentRequest }
    set {}
  }
  override var response: URLResponse? {
    get { record.view.response }
    set {}
  }
  override var error: (any Error)? {
    get { record.view.error }
    set {}
  }
  override var state: URLSessionTask.State {
    get { record.view.state }
    set {}
  }
  override var countOfBytesSent: Int64 {
    get { record.view.count.sent }
    set {}
  }
  override var countOfBytesReceived: Int64 {
    get { record.view.count.received }
    set {}
  }
  override var countOfBytesExpectedToSend: Int64 {
    get { record.view.count.expectedToSend }
    set {}
  }
  override var countOfBytesExpectedToReceive: Int64 {
    get { record.view.count.expectedToReceive }
    set {}
  }
  override var progress: Progress {
    get { record.progress }
    set {}
  }

  override var priority: Float {
    get { record.request?.priority ?? URLSessionTask.defaultPriority }
    set { record.withRequest { $0.priority = newValue } }
  }

  override func resume() { record.withRequest { $0.resume() } }
  override func suspend() { record.withRequest { $0.suspend() } }
  override func cancel() { record.withRequest { $0.cancel() } }

  override func cancel(byProducingResumeData completionHandler: @escaping (Data?) -> Void) {
    guard let download = record.isOver ? nil : record.request as? DownloadRequest else {
      return completionHandler(nil)
    }
    // Unchecked: Foundation's closure is called once, by this call only.
    nonisolated(unsafe) let completionHandler = completionHandler
    download.cancel { completionHandler($0) }
  }
}

/// The task of a WebSocket request's attempt: an object of Foundation's class for a transfer of the engine.
///
/// Unchecked, as Foundation's class is: its own property is constant. The kinds of tasks repeat their members,
/// because Foundation's classes allow no common superclass between. Messages are
/// sent by the request, because the methods of Foundation's class cannot be overridden.
final class WebSocketTaskFacade: URLSessionWebSocketTask, RecordedTask, @unchecked Sendable {
  let record: TaskRecord

  init(_ record: TaskRecord) {
    self.record = record
    super.init()
  }

  override var taskIdentifier: Int {
    get { record.identifier }
    set {}
  }
  override var originalRequest: URLRequest? {
    get { record.view.originalRequest }
    set {}
  }
  override var currentRequest: URLRequest? {
    get { record.view.currentRequest }
    set {}
  }
  override var response: URLResponse? {
    get { record.view.response }
    set {}
  }
  override var error: (any Error)? {
    get { record.view.error }
    set {}
  }
  override var state: URLSessionTask.State {
    get { record.view.state }
    set {}
  }
  override var countOfBytesSent: Int64 {
    get { record.view.count.sent }
    set {}
  }
  override var countOfBytesReceived: Int64 {
    get { record.view.count.received }
    set {}
  }
  override var countOfBytesExpectedToSend: Int64 {
    get { record.view.count.expectedToSend }
    set {}
  }
  override var countOfBytesExpectedToReceive: Int64 {
    get { record.view.count.expectedToReceive }
    set {}
  }
  override var progress: Progress {
    get { record.progress }
    set {}
  }

  override var priority: Float {
    get { record.request?.priority ?? URLSessionTask.defaultPriority }
    set { record.withRequest { $0.priority = newValue } }
  }

  override func resume() { record.withRequest { $0.resume() } }
  override func suspend() { record.withRequest { $0.suspend() } }
  override func cancel() { record.withRequest { $0.cancel() } }
}

/// The session that delegates, monitors and users see: an object of Foundation's class for the engine of a
/// ``Session``.
///
/// Tasks that are created with its `dataTask(with:)` and similar methods are Foundation's, except for resumed
/// downloads, which Foundation on Linux does not support. Unchecked, as Foundation's class is: its own properties are
/// constants.
final class SessionFacade: URLSession, @unchecked Sendable {
  private let core = WeakSessionCore()
  /// The plan of a session that has not been created yet.
  private let plan: Mutex<SessionPlan?>

  init(_ plan: SessionPlan, delegate: (any URLSessionDelegate)?) {
    self.plan = Mutex(plan)
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = 1
    super.init(configuration: plan.configuration, delegate: delegate, delegateQueue: queue)
  }

  /// Returns the plan, once.
  func takePlan() -> SessionPlan? { plan.withLock { $0.take() } }

  /// Makes this the facade of `core`.
  func serve(_ core: SessionCore) {
    self.core.set(core)
    delegateQueue.underlyingQueue = core.rootQueue
    delegateQueue.name = "\(core.rootQueue.label).sessionDelegate"
  }

  // Foundation's own session has no tasks, and would report its end to the delegate a second time.
  override func invalidateAndCancel() { core.value?.invalidate(.sessionInvalidated(error: nil)) }

  override func finishTasksAndInvalidate() { core.value?.refuseMore() }

  override var configuration: URLSessionConfiguration {
    core.value?.configuration.duplicated() ?? super.configuration
  }

  override func downloadTask(withResumeData resumeData: Data) -> URLSessionDownloadTask {
    core.value?.owner?.downloadTask(resuming: resumeData) ?? super.downloadTask(withResumeData: resumeData)
  }

  override func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) {
    let core = core.value
    delegateQueue.addOperation { completionHandler(core?.runningTasks ?? []) }
  }

  override func getTasksWithCompletionHandler(
    _ completionHandler:
      @escaping @Sendable (
        [URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]
      ) -> Void
  ) {
    getAllTasks { tasks in
      let uploads = tasks.compactMap { $0 as? URLSessionUploadTask }
      let downloads = tasks.compactMap { $0 as? URLSessionDownloadTask }
      let datas = tasks.compactMap { $0 is URLSessionUploadTask ? nil : $0 as? URLSessionDataTask }
      completionHandler(datas, uploads, downloads)
    }
  }
}

/// The values of a session that its designated initialiser has no parameters for. A facade carries them there.
struct SessionPlan: Sendable {
  let configuration: URLSessionConfiguration
  var transportOptions = TransportOptions()
  var engine = Engine.standard()
  /// The delegate, the handlers and the monitors, instead of the ones passed to the initialiser.
  var observers: SessionObservers?
  /// The caller's session, which is shown instead of the facade.
  var shown: URLSession?
}

/// A session's inside, as long as the session lives.
private final class WeakSessionCore: Sendable {
  private struct Weak { weak var core: SessionCore? }

  /// The weak reference, for any thread.
  private let core = Mutex(Weak())

  var value: SessionCore? { core.withLock { $0.core } }

  func set(_ new: SessionCore) { core.withLock { $0.core = new } }
}

extension Session {
  /// Returns a task that continues a download when it is resumed. Until then the session retains it, as Foundation's
  /// does.
  func downloadTask(resuming data: Data) -> URLSessionDownloadTask? {
    let request = download(
      ResumedRequest(data: data), runsUserCode: false, nil, false, nil, .resumeData(data))
    request.core.showTask(of: request)
    let task = request.core.tasks(of: request).first
    request.core.setUp(request, isEager: true)
    return task as? URLSessionDownloadTask
  }
}
