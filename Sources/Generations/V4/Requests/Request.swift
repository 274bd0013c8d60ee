import Alamofire
public import Foundation
public import FoundationNetworking
import Synchronization

/// One request and its life: the base of all kinds of requests. A ``SessionManager`` makes it.
///
/// Every method may be called from any thread and any number of times. Handlers may also be added when the request has
/// finished; it is not sent again.
open class Request: @unchecked Sendable {
  // Unchecked, because the compiler checks no class that can be subclassed: its own properties are constants.

  /// Called with the progress of a body.
  public typealias ProgressHandler = (Progress) -> Void

  /// The verdict of a validation.
  public enum ValidationResult: Sendable {
    /// A response that is accepted.
    case success
    /// A response that is refused; the error reaches the handlers unchanged.
    case failure(any Error)
  }

  let core: Alamofire::Request
  let bridge: RequestBridge

  /// The session that sends the request.
  public let session: URLSession

  /// The data and the error of the request, and the queue of its handlers.
  public let delegate: TaskDelegate

  init(_ core: Alamofire::Request, _ bridge: RequestBridge, of manager: SessionManager) {
    self.core = core
    self.bridge = bridge
    session = manager.session
    delegate = TaskDelegate(bridge)
    bridge.bind(self)
    observeEnd()
    if manager.startRequestsImmediately { start() }
  }

  deinit {
    // Without a reference the request can never be started, so that its handlers will not be called.
    guard core.isInitialized, bridge.outcome.value.start == nil else { return }
    bridge.queue.cancelAllOperations()
    core.cancel()
  }

  /// Connects the bridge to the end of the core's request.
  func observeEnd() {}

  // MARK: Results

  /// The task of the last attempt; `nil` when there was nothing to send.
  open var task: URLSessionTask? { core.task }

  /// The `URLRequest` of the last attempt, as the adapter returned it; `nil` if it could not be created.
  open var request: URLRequest? { bridge.abandonedResult?.request ?? core.request ?? bridge.original.request }

  /// The response of the server; `nil` until its head has arrived.
  open var response: HTTPURLResponse? { core.response ?? bridge.abandonedResult?.response }

  /// The number of retries by a ``RequestRetrier``, without the ones that the adapter has refused.
  open var retryCount: UInt { bridge.retryCount }

  // MARK: State

  /// Starts or continues the request. Has no effect after its end.
  open func resume() { start() }

  private func start() {
    bridge.started(self)
    // Before there is anything that could end.
    post(Notification.Name.Task.DidResume)
    startCore()
  }

  /// Starts or continues the request of the core.
  func startCore() { core.resume() }

  /// Holds the request back, which neither sends nor reads until ``resume()``.
  open func suspend() {
    core.suspend()
    post(Notification.Name.Task.DidSuspend)
  }

  /// Ends the request with `URLError.cancelled`, unless it is over.
  open func cancel() {
    core.cancel()
    post(Notification.Name.Task.DidCancel)
  }

  func post(_ name: Notification.Name) {
    guard let task else { return }
    NotificationCenter.default.post(name: name, object: self, userInfo: [Notification.Key.Task: task])
  }

  // MARK: Credentials

  /// Answers challenges of the server with a name and a password. They are sent after a challenge, to that server
  /// only; refused credentials are not sent again. If the server has already sent a challenge, the request is sent
  /// once more, also after its end. Handlers that are added afterwards get the new response. The file of a download
  /// replaces the file of the refused response at the same destination, unless that was changed.
  ///
  /// A POST that was redirected to a GET is not sent again, because the server may have performed it. Its response
  /// stays.
  ///
  /// - Parameters:
  ///   - user:        The user name.
  ///   - password:    The password.
  ///   - persistence: The persistence of the credential. Default: `.forSession`.
  @discardableResult
  open func authenticate(
    user: String, password: String, persistence: URLCredential.Persistence = .forSession
  ) -> Self {
    authenticate(usingCredential: URLCredential(user: user, password: password, persistence: persistence))
  }

  /// Answers challenges of the server with a credential; see ``authenticate(user:password:persistence:)``.
  @discardableResult
  open func authenticate(usingCredential credential: URLCredential) -> Self {
    core.authenticate(with: credential)
    if bridge.authenticated() { observeEnd() }
    return self
  }

  /// Returns the header field that sends a name and a password without a challenge (RFC 7617). The result is never
  /// `nil`.
  ///
  /// ```swift
  /// if let field = Request.authorizationHeader(user: user, password: password) {
  ///   headers[field.key] = field.value
  /// }
  /// ```
  open class func authorizationHeader(user: String, password: String) -> (key: String, value: String)? {
    let header = Alamofire::HTTPHeader.authorization(username: user, password: password)
    return (header.name, header.value)
  }

  // MARK: Descriptions

  /// `METHOD URL (status)`, as far as known. The URL is shown without its password.
  open var description: String {
    let status = response.map { "(\($0.statusCode))" }
    return [request?.httpMethod, request?.url?.textWithoutPassword, status].compactMap { $0 }.joined(
      separator: " ")
  }

  /// The request as a cURL command: the method unless it is GET, credentials, cookies, header fields, body, URL. The
  /// text holds the secrets of the request; do not write it to a log that others read.
  open var debugDescription: String {
    let command = core.cURLDescription()
    let (begin, method, separator) = ("$ curl -v", " \\\n\t-X GET", " \\\n\t")
    guard command.hasPrefix(begin + method + separator) else { return command }
    return begin + command.dropFirst(begin.count + method.count)
  }
}

extension Request: CustomStringConvertible, CustomDebugStringConvertible {}

/// The data and the error of a request, and the queue of its handlers.
open class TaskDelegate: NSObject {
  private let bridge: RequestBridge

  /// The serial queue of operations that run after the end of the request; it is suspended until then. Further
  /// operations may be added.
  public let queue: OperationQueue

  /// The body of the response as it was received; `nil` for downloads, and for requests with
  /// ``DataRequest/stream(closure:)``.
  open var data: Data? { bridge.outcome.value.data }

  /// The error of the request. An error that is set before the end of the request replaces its own error.
  public var error: (any Error)? {
    get { bridge.failure }
    set { bridge.failure = newValue }
  }

  init(_ bridge: RequestBridge) {
    self.bridge = bridge
    queue = bridge.queue
  }
}

extension Notification.Name {
  /// The names of the notifications about the tasks of requests.
  public struct Task: Sendable {
    /// A task runs; the object is the request.
    public static let DidResume = Notification.Name("org.alamofire.notification.name.task.didResume")
    /// A task was suspended; the object is the request.
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

/// Calls a closure of the user's as a body moves, and at least once. A request starts before its caller can add the
/// closure, and a small body may be complete by then.
final class ProgressRelay: Sendable {
  enum Direction { case up, down }

  let direction: Direction
  private let queue: DispatchQueue
  private let closure: Boxed<Request.ProgressHandler>
  private let hasReported = Atomic(false)
  private let isReplaced = Atomic(false)

  init(_ direction: Direction, _ queue: DispatchQueue, _ closure: @escaping Request.ProgressHandler) {
    self.direction = direction
    self.queue = queue
    self.closure = Boxed(closure)
  }

  /// Stops reports, because another closure has replaced this one.
  func replace() { isReplaced.store(true, ordering: .relaxed) }

  /// Called on the queue.
  func report(_ progress: Progress) {
    if isReplaced.load(ordering: .relaxed) { return }
    hasReported.store(true, ordering: .relaxed)
    closure.value(progress)
  }

  /// Reports the last progress when the request has ended, if none was reported before.
  func finish(_ request: Request) {
    let progress = direction == .up ? request.core.uploadProgress : request.core.downloadProgress
    guard progress.completedUnitCount > 0 else { return }
    queue.async { [self] in
      if !hasReported.load(ordering: .relaxed) { report(progress) }
    }
  }
}
