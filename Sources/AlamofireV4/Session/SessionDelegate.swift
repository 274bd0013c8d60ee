public import Alamofire
public import Foundation
public import FoundationNetworking
import Synchronization

/// Is called when something happens to the tasks of a manager, and decides where there is something to decide.
///
/// There are two ways to have a say: set a closure, which takes the place of what the class does by itself, or
/// override a method and call `super`. Both are called on a queue of the manager's, one at a time, in the order of
/// events. A completion handler that is released without a call stands for what would have been done without you.
///
/// ```swift
/// manager.delegate.taskWillPerformHTTPRedirection = { session, task, response, request in
///   request.url?.host == "example.com" ? request : nil
/// }
/// ```
open class SessionDelegate: Alamofire::SessionDelegate, @unchecked Sendable {
  // Unchecked, as its superclass is: its own properties are constants, and what can be set stands under the lock.

  private struct State {
    var overrides = Boxed(Overrides())
    var courses: [ObjectIdentifier: Known] = [:]
  }

  private struct Known {
    weak var bridge: RequestBridge?
  }

  private let state = Mutex(State())

  /// Makes a delegate for one manager.
  public init() {
    super.init(fileManager: .default)
    wantOnlyWhatIsSet(Overrides())
  }

  /// What users have set.
  var overrides: Overrides { state.withLock { $0.overrides }.value }

  func change(_ change: @escaping (inout Overrides) -> Void) {
    let change = Boxed(change)
    state.withLock { state in
      var new = state.overrides.value
      change.value(&new)
      state.overrides = Boxed(new)
      wantOnlyWhatIsSet(new)
    }
  }

  /// Requests are not held up for closures that nobody has set. A subclass may have overridden anything.
  private func wantOnlyWhatIsSet(_ overrides: Overrides) {
    if type(of: self) == SessionDelegate.self { wantedEvents = overrides.events }
  }

  // MARK: The requests

  /// The request of a task; `nil` when it is over, or not of this manager.
  open subscript(task: URLSessionTask) -> Request? {
    let courses = state.withLock { $0.courses.values.compactMap(\.bridge) }
    for bridge in courses {
      guard let request = bridge.request else { continue }
      if request.task === task || request.core.tasks.contains(where: { $0 === task }) { return request }
    }
    return nil
  }

  func remember(_ bridge: RequestBridge) {
    state.withLock { $0.courses[ObjectIdentifier(bridge)] = Known(bridge: bridge) }
  }

  func forget(_ bridge: RequestBridge) {
    state.withLock { state -> Void in state.courses[ObjectIdentifier(bridge)] = nil }
  }

  /// A request is over and will not be retried.
  func completed(_ request: Request) {
    guard let task = request.task else { return }
    overrides.taskDidComplete?(request.session, task, request.bridge.failure)
    var info: [String: Any] = [Notification.Key.Task: task]
    info[Notification.Key.ResponseData] = request.delegate.data
    NotificationCenter.default.post(name: Notification.Name.Task.DidComplete, object: self, userInfo: info)
  }

  // MARK: The session

  /// Called when the session has ended.
  open override func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
    if let closure = overrides.sessionDidBecomeInvalidWithError { return closure(session, error) }
    super.urlSession(session, didBecomeInvalidWithError: error)
  }

  /// Called with a server's certificates, and when a server asks for one of the client. Without an answer the
  /// ``ServerTrustPolicyManager`` decides, else the trust store.
  open func urlSession(
    _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    let overrides = overrides
    if let closure = overrides.sessionDidReceiveChallengeWithCompletion {
      return closure(session, challenge, completionHandler)
    }
    guard let closure = overrides.sessionDidReceiveChallenge else {
      return completionHandler(.performDefaultHandling, nil)
    }
    let (disposition, credential) = closure(session, challenge)
    completionHandler(disposition, credential)
  }

  /// Never called: transfers end with the process.
  open func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
    overrides.sessionDidFinishEventsForBackgroundURLSession?(session)
  }

  // MARK: Tasks

  /// Called when a redirect is about to be followed. By itself it follows.
  open override func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
  ) {
    let overrides = overrides
    if let closure = overrides.taskWillPerformHTTPRedirectionWithCompletion {
      return closure(session, task, response, request, completionHandler)
    }
    if let closure = overrides.taskWillPerformHTTPRedirection {
      return completionHandler(closure(session, task, response, request))
    }
    super.urlSession(
      session, task: task, willPerformHTTPRedirection: response, newRequest: request,
      completionHandler: completionHandler)
  }

  /// Called with each challenge: of a server that wants a name and a password, and, by way of
  /// ``urlSession(_:didReceive:completionHandler:)`` unless a closure answers before, with those that are about
  /// certificates. By itself it uses the credential of the request.
  open override func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    let overrides = overrides
    let method = challenge.protectionSpace.authenticationMethod
    if method == Alamofire::NSURLAuthenticationMethodServerTrust
      || method == Alamofire::NSURLAuthenticationMethodClientCertificate
    {
      if !overrides.answersTasks || overrides.answersSessions {
        return urlSession(session, didReceive: challenge, completionHandler: completionHandler)
      }
    }
    if let closure = overrides.taskDidReceiveChallengeWithCompletion {
      return closure(session, task, challenge, completionHandler)
    }
    guard let closure = overrides.taskDidReceiveChallenge else {
      self[task]?.bridge.challenged()
      return super.urlSession(
        session, task: task, didReceive: challenge, completionHandler: completionHandler)
    }
    let (disposition, credential) = closure(session, task, challenge)
    completionHandler(disposition, credential)
  }

  /// Called when the stream of an upload is needed. By itself it answers with that of the upload.
  open override func urlSession(
    _ session: URLSession, task: URLSessionTask,
    needNewBodyStream completionHandler: @escaping (InputStream?) -> Void
  ) {
    let overrides = overrides
    if let closure = overrides.taskNeedNewBodyStreamWithCompletion {
      return closure(session, task, completionHandler)
    }
    if let closure = overrides.taskNeedNewBodyStream { return completionHandler(closure(session, task)) }
    super.urlSession(session, task: task, needNewBodyStream: completionHandler)
  }

  /// Called as a body is sent.
  open override func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) {
    if let closure = overrides.taskDidSendBodyData {
      return closure(session, task, bytesSent, totalBytesSent, totalBytesExpectedToSend)
    }
    super.urlSession(
      session, task: task, didSendBodyData: bytesSent, totalBytesSent: totalBytesSent,
      totalBytesExpectedToSend: totalBytesExpectedToSend)
  }

  // MARK: Data tasks

  /// Called with the head of a response. By itself it lets the body come.
  open override func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
  ) {
    let overrides = overrides
    if let closure = overrides.dataTaskDidReceiveResponseWithCompletion {
      return closure(session, dataTask, response, completionHandler)
    }
    if let closure = overrides.dataTaskDidReceiveResponse {
      return completionHandler(closure(session, dataTask, response))
    }
    super.urlSession(
      session, dataTask: dataTask, didReceive: response, completionHandler: completionHandler)
  }

  /// Never called: data tasks stay what they are.
  open func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask
  ) {
    overrides.dataTaskDidBecomeDownloadTask?(session, dataTask, downloadTask)
  }

  /// Called with each piece of a body. The handlers get all of it, whatever is done here.
  open override func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    if let closure = overrides.dataTaskDidReceiveData { return closure(session, dataTask, data) }
    super.urlSession(session, dataTask: dataTask, didReceive: data)
  }

  /// Called before a response is stored. By itself it is.
  open override func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask,
    willCacheResponse proposedResponse: CachedURLResponse,
    completionHandler: @escaping (CachedURLResponse?) -> Void
  ) {
    let overrides = overrides
    if let closure = overrides.dataTaskWillCacheResponseWithCompletion {
      return closure(session, dataTask, proposedResponse, completionHandler)
    }
    if let closure = overrides.dataTaskWillCacheResponse {
      return completionHandler(closure(session, dataTask, proposedResponse))
    }
    super.urlSession(
      session, dataTask: dataTask, willCacheResponse: proposedResponse, completionHandler: completionHandler)
  }

  // MARK: Downloads

  /// Called when a file has come, before it is moved to its destination.
  open override func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
  ) {
    if let closure = overrides.downloadTaskDidFinishDownloadingToURL {
      return closure(session, downloadTask, location)
    }
    super.urlSession(session, downloadTask: downloadTask, didFinishDownloadingTo: location)
  }

  /// Called as a file comes.
  open override func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
    totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
  ) {
    if let closure = overrides.downloadTaskDidWriteData {
      return closure(session, downloadTask, bytesWritten, totalBytesWritten, totalBytesExpectedToWrite)
    }
    super.urlSession(
      session, downloadTask: downloadTask, didWriteData: bytesWritten, totalBytesWritten: totalBytesWritten,
      totalBytesExpectedToWrite: totalBytesExpectedToWrite)
  }

  /// Called when a download goes on where an earlier one ended.
  open override func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
    expectedTotalBytes: Int64
  ) {
    if let closure = overrides.downloadTaskDidResumeAtOffset {
      return closure(session, downloadTask, fileOffset, expectedTotalBytes)
    }
    super.urlSession(
      session, downloadTask: downloadTask, didResumeAtOffset: fileOffset,
      expectedTotalBytes: expectedTotalBytes)
  }
}
