import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// The state of one attempt that its task shows; made on first access.
final class TaskRecord: Sendable {
  /// The properties that a task shows.
  struct View: Sendable {
    var originalRequest: URLRequest?
    var currentRequest: URLRequest?
    var response: URLResponse?
    var error: (any Error)?
    var state = URLSessionTask.State.suspended
    var count = ByteCount()
  }

  private struct State {
    weak var request: Request?
    /// The final view, after the end of the attempt.
    var last: View?
  }

  /// The number of the last task.
  private static let identifiers = Atomic<Int>(0)

  /// Returns an identifier that is unique among tasks of any kind.
  static func nextIdentifier() -> Int { identifiers.wrappingAdd(1, ordering: .relaxed).newValue }

  let identifier = TaskRecord.nextIdentifier()
  /// The results that the task shows and the weak request, for any thread. It takes no other lock.
  private let state: Mutex<State>

  init(of request: Request) {
    state = Mutex(State(request: request))
  }

  /// The request, if it was not released.
  var request: Request? { state.withLock { $0.request } }

  var view: View {
    let (request, last) = state.withLock { ($0.request, $0.last) }
    return last ?? request?.core.taskView ?? View(state: .completed)
  }

  /// Sets the final view. Only the first call has an effect.
  func end(_ view: View) {
    state.withLock { state in
      guard state.last == nil else { return }
      state.last = view
      state.last?.state = .completed
    }
  }

  /// The progress of the response body.
  var progress: Progress { request?.downloadProgress ?? Progress(totalUnitCount: 0) }

  var isOver: Bool { state.withLock { $0.last != nil } }

  /// Calls `body` with the request, unless the attempt has ended, because the request then has another task.
  func withRequest(_ body: (Request) -> Void) {
    let request = state.withLock { state in state.last == nil ? state.request : nil }
    if let request { body(request) }
  }
}

/// A task of Foundation's classes that shows an attempt.
protocol RecordedTask: URLSessionTask {
  var record: TaskRecord { get }
}

extension URLRequest {
  /// Makes the request of the current hop from the user's request: URL, method and fields are those of the hop.
  init?(hop: WireRequest, of original: URLRequest?) {
    guard let original, original.url?.absoluteString != hop.url || original.httpMethod != hop.method else {
      return nil
    }
    let scheme = original.url?.scheme?.lowercased()
    let text = scheme == "ws" || scheme == "wss" ? WebSocketURL.webSocket(hop.url) : hop.url
    guard original.url?.absoluteString != text || original.httpMethod != hop.method,
      let url = URL(wire: text)
    else { return nil }
    self = original
    self.url = url
    httpMethod = hop.method
    allHTTPHeaderFields = nil
    for field in hop.fields { addValue(field.value, forHTTPHeaderField: field.name) }
    if !hop.body.isPresent { httpBody = nil }
  }

  /// Whether both are equal on the wire. Foundation's comparison ignores the fields.
  func isSent(like other: URLRequest) -> Bool {
    url == other.url && httpMethod == other.httpMethod && httpBody == other.httpBody
      && allHTTPHeaderFields == other.allHTTPHeaderFields
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
