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
