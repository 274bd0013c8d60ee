public import Foundation
public import FoundationNetworking
import Synchronization

/// Is called when something happens to the tasks of a session, and decides where there is something to decide.
///
/// Subclass it, override what matters and hand it to ``Session/init(configuration:delegate:rootQueue:startRequestsImmediately:requestSetup:requestQueue:serializationQueue:interceptor:serverTrustManager:redirectHandler:cachedResponseHandler:eventMonitors:transportOptions:)``.
/// What the base class does is documented with each method; call `super` to have it done. The methods of a
/// subclass are called on the session's ``Session/rootQueue``, one at a time, in the order of events. A
/// completion handler that is released without a call stands for what the base class would have said.
///
/// The monitors of a session are told by the base class: those of a subclass that does not call `super` hear
/// nothing of that event.
///
/// ```swift
/// final class Stricter: SessionDelegate, @unchecked Sendable {
///   override func urlSession(
///     _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
///     newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
///   ) {
///     completionHandler(nil)
///   }
/// }
/// ```
///
/// ```swift
/// let session = Session(delegate: Stricter())
/// ```
///
/// A subclass is called for everything, unless it says what it wants: ``wantedEvents``.
open class SessionDelegate: NSObject, URLSessionDataDelegate, @unchecked Sendable {
  // Unchecked, since the compiler checks no class that can be subclassed: its own properties are constants, and the
  // link stands under its lock, what is wanted changes at once.

  /// For subclasses that move files; nothing here uses it.
  public let fileManager: FileManager

  private let link = Mutex(Link())
  let wanted = Atomic(Events.all.rawValue)

  private struct Link {
    weak var core: SessionCore?
  }

  /// - Parameter fileManager: What ``fileManager`` is to be. Default: the shared one.
  public init(fileManager: FileManager = .default) {
    self.fileManager = fileManager
  }

  /// The session that it works for; the last one that it was given to.
  var core: SessionCore? { link.withLock { $0.core } }

  func serve(_ core: SessionCore) {
    link.withLock { $0.core = core }
  }

  private func request(of task: URLSessionTask) -> Request? {
    (task as? any RecordedTask)?.record.request
  }

  /// Tells the monitors of the session. Those of one request hear of that request, and not of its URL session.
  private func tell(_ task: URLSessionTask, _ event: @escaping @Sendable (any EventMonitor) -> Void) {
    request(of: task)?.core.tellTransfer(event)
  }

  // MARK: The session

  /// Tells the monitors. `error` is `nil` when somebody asked for the end.
  open func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
    core?.eventMonitor.perform { $0.urlSession(session, didBecomeInvalidWithError: error) }
  }

  // MARK: Tasks

  /// Tells the monitors, and leaves it to the default: the credential of the request, if it has one and none of the
  /// delegate's has failed. Called for challenges of the schemes Digest, Basic, NTLM and Negotiate, from the strongest that the
  /// server offers to the weakest, as long as the answer is to reject: not for those to which the request brings a field
  /// `Authorization` of the user's, and not for those of another origin than that of the user's own request. The count of
  /// failures is that of the credentials which the request has brought in vain; one that was refused is not sent again. A
  /// credential that is to be kept (`persistence` other than `.none`) is used for other requests of the session that have
  /// none of their own.
  open func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    tell(task) { $0.urlSession(session, task: task, didReceive: challenge) }
    completionHandler(
      challenge.previousFailureCount > 0 ? .rejectProtectionSpace : .performDefaultHandling, nil)
  }

  /// Tells the monitors.
  open func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) {
    tell(task) {
      $0.urlSession(
        session, task: task, didSendBodyData: bytesSent, totalBytesSent: totalBytesSent,
        totalBytesExpectedToSend: totalBytesExpectedToSend)
    }
  }

  /// Tells the monitors, and answers with the stream of the upload. A subclass may answer with another one;
  /// `nil` ends the request with an error.
  open func urlSession(
    _ session: URLSession, task: URLSessionTask,
    needNewBodyStream completionHandler: @escaping (InputStream?) -> Void
  ) {
    tell(task) { $0.urlSession(session, taskNeedsNewBodyStream: task) }
    guard let upload = request(of: task) as? UploadRequest, let uploadable = upload.uploadable,
      case .stream(let stream) = uploadable
    else { return completionHandler(nil) }
    upload.core.tell { monitor in
      guard case .stream(let stream) = uploadable else { return }
      monitor.request(upload, didProvideInputStream: stream)
    }
    completionHandler(stream)
  }

  /// Tells the monitors, and leaves the decision to the request's ``RedirectHandler``, else to the session's;
  /// without one it follows.
  open func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
  ) {
    tell(task) {
      $0.urlSession(session, task: task, willPerformHTTPRedirection: response, newRequest: request)
    }
    let handler = self.request(of: task)?.redirectHandler ?? core?.redirectHandler
    guard let handler else { return completionHandler(request) }
    // Called by the handler, once, and by nobody else.
    nonisolated(unsafe) let completionHandler = completionHandler
    handler.task(task, willBeRedirectedTo: request, for: response) { completionHandler($0) }
  }

  /// Tells the monitors.
  open func urlSession(
    _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: TaskMetrics
  ) {
    tell(task) { $0.urlSession(session, task: task, didFinishCollecting: metrics) }
    guard let request = request(of: task) else { return }
    request.core.tell { $0.request(request, didGatherMetrics: metrics) }
  }

  /// Tells the monitors. `error` is `nil` when a response has come, whatever its status.
  open func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?)
  {
    tell(task) { $0.urlSession(session, task: task, didCompleteWithError: error) }
  }

  /// Tells the monitors. Called once for an attempt that waits for a network, as `waitsForConnectivity` says.
  open func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {
    tell(task) { $0.urlSession(session, taskIsWaitingForConnectivity: task) }
  }

  // MARK: Data tasks

  /// Tells the monitors, and lets the body come. With `URLSession.ResponseDisposition.cancel` the request ends
  /// as cancelled.
  open func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
  ) {
    tell(dataTask) { $0.urlSession(session, dataTask: dataTask, didReceive: response) }
    completionHandler(.allow)
  }

  /// Tells the monitors. Called with each piece of a body as it comes; bodies of redirects that are followed are not
  /// shown. Who begins to listen while a request runs is told of all that has come, in one piece, at its end.
  open func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    tell(dataTask) { $0.urlSession(session, dataTask: dataTask, didReceive: data) }
  }

  /// Tells the monitors, and leaves the decision to the request's ``CachedResponseHandler``, else to the
  /// session's; without one it stores.
  open func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask,
    willCacheResponse proposedResponse: CachedURLResponse,
    completionHandler: @escaping (CachedURLResponse?) -> Void
  ) {
    tell(dataTask) { $0.urlSession(session, dataTask: dataTask, willCacheResponse: proposedResponse) }
    let handler = request(of: dataTask)?.cachedResponseHandler ?? core?.cachedResponseHandler
    guard let handler else { return completionHandler(proposedResponse) }
    // Called by the handler, once, and by nobody else.
    nonisolated(unsafe) let completionHandler = completionHandler
    handler.dataTask(dataTask, willCacheResponse: proposedResponse) { completionHandler($0) }
  }

  // MARK: Downloads

  /// Tells the monitors.
  open func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
    expectedTotalBytes: Int64
  ) {
    tell(downloadTask) {
      $0.urlSession(
        session, downloadTask: downloadTask, didResumeAtOffset: fileOffset,
        expectedTotalBytes: expectedTotalBytes)
    }
  }

  /// Tells the monitors.
  open func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
    totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
  ) {
    tell(downloadTask) {
      $0.urlSession(
        session, downloadTask: downloadTask, didWriteData: bytesWritten, totalBytesWritten: totalBytesWritten,
        totalBytesExpectedToWrite: totalBytesExpectedToWrite)
    }
  }

  /// Tells the monitors. The file is then moved to the destination of the request, or kept where it is.
  open func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
  ) {
    tell(downloadTask) {
      $0.urlSession(session, downloadTask: downloadTask, didFinishDownloadingTo: location)
    }
  }
}

extension SessionDelegate: URLSessionDownloadDelegate {}
