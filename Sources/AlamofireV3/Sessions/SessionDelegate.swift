public import Alamofire
public import Foundation
public import FoundationNetworking
import Synchronization

extension Manager {
  /// Is called when something happens to the tasks of a manager, and decides where there is something to decide: by
  /// its closures, or as a subclass, whose methods stand before them.
  ///
  /// ```swift
  /// manager.delegate.taskWillPerformHTTPRedirection = { session, task, response, request in nil }
  /// ```
  open class SessionDelegate: Alamofire::SessionDelegate, @unchecked Sendable {
    // Unchecked, as its superclass is: what it adds stands under its lock.
    private let box = Mutex(Boxed(DelegateClosures()))

    /// Makes a delegate without closures.
    public init() {
      super.init()
      wantOnlyWhatIsSet(DelegateClosures())
    }

    var closures: DelegateClosures { box.withLock { $0 }.value }

    func change(_ body: (inout DelegateClosures) -> Void) {
      var closures = closures
      body(&closures)
      let boxed = Boxed(closures)
      box.withLock { $0 = boxed }
      wantOnlyWhatIsSet(closures)
    }

    /// Requests are not held up for closures that nobody has set. A subclass may have overridden anything.
    private func wantOnlyWhatIsSet(_ closures: DelegateClosures) {
      if type(of: self) == Manager.SessionDelegate.self { wantedEvents = closures.events }
    }

    // MARK: The session

    /// The session has ended.
    open override func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
      super.urlSession(session, didBecomeInvalidWithError: error)
      closures.sessionDidBecomeInvalidWithError?(session, error.map(generationThreeError))
    }

    /// A server shows its certificates, or asks for one of the client. Without a closure for it the
    /// ``ServerTrustPolicyManager`` decides, else the certificates that the system trusts.
    open func urlSession(
      _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      let closures = closures
      if let closure = closures.sessionDidReceiveChallengeWithCompletion {
        closure(session, challenge, completionHandler)
      } else if let closure = closures.sessionDidReceiveChallenge {
        let (disposition, credential) = closure(session, challenge)
        completionHandler(disposition, credential)
      } else {
        completionHandler(.performDefaultHandling, nil)
      }
    }

    /// Kept for subclasses that override it: there are no background sessions here, and nobody calls it.
    open func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
      closures.sessionDidFinishEventsForBackgroundURLSession?(session)
    }

    // MARK: Tasks

    /// A server or proxy wants to know who the client is. Challenges of the connection come here, too, and go on to
    /// ``urlSession(_:didReceive:completionHandler:)``, unless there are closures for those of tasks alone.
    open override func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      let closures = closures
      let method = challenge.protectionSpace.authenticationMethod
      let isOfConnection =
        method == Alamofire::NSURLAuthenticationMethodServerTrust
        || method == Alamofire::NSURLAuthenticationMethodClientCertificate
      if isOfConnection, closures.answersSessions || !closures.answersTasks {
        urlSession(session, didReceive: challenge, completionHandler: completionHandler)
      } else if let closure = closures.taskDidReceiveChallengeWithCompletion {
        closure(session, task, challenge, completionHandler)
      } else if let closure = closures.taskDidReceiveChallenge {
        let (disposition, credential) = closure(session, task, challenge)
        completionHandler(disposition, credential)
      } else {
        super.urlSession(session, task: task, didReceive: challenge, completionHandler: completionHandler)
      }
    }

    /// Bytes were sent.
    open override func urlSession(
      _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
      totalBytesExpectedToSend: Int64
    ) {
      super.urlSession(
        session, task: task, didSendBodyData: bytesSent, totalBytesSent: totalBytesSent,
        totalBytesExpectedToSend: totalBytesExpectedToSend)
      closures.taskDidSendBodyData?(session, task, bytesSent, totalBytesSent, totalBytesExpectedToSend)
    }

    /// A stream is to be sent.
    open override func urlSession(
      _ session: URLSession, task: URLSessionTask,
      needNewBodyStream completionHandler: @escaping (InputStream?) -> Void
    ) {
      let closures = closures
      if let closure = closures.taskNeedNewBodyStreamWithCompletion {
        closure(session, task, completionHandler)
      } else if let closure = closures.taskNeedNewBodyStream {
        completionHandler(closure(session, task))
      } else {
        super.urlSession(session, task: task, needNewBodyStream: completionHandler)
      }
    }

    /// A response leads elsewhere.
    open override func urlSession(
      _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
      newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
    ) {
      let closures = closures
      if let closure = closures.taskWillPerformHTTPRedirectionWithCompletion {
        closure(session, task, response, request, completionHandler)
      } else if let closure = closures.taskWillPerformHTTPRedirection {
        completionHandler(closure(session, task, response, request))
      } else {
        super.urlSession(
          session, task: task, willPerformHTTPRedirection: response, newRequest: request,
          completionHandler: completionHandler)
      }
    }

    /// A task is over.
    open override func urlSession(
      _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
      super.urlSession(session, task: task, didCompleteWithError: error)
      closures.taskDidComplete?(session, task, error.map(generationThreeError))
    }

    // MARK: Data tasks

    /// A response has begun to come.
    open override func urlSession(
      _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
      completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
    ) {
      let closures = closures
      if let closure = closures.dataTaskDidReceiveResponseWithCompletion {
        closure(session, dataTask, response, completionHandler)
      } else if let closure = closures.dataTaskDidReceiveResponse {
        completionHandler(closure(session, dataTask, response))
      } else {
        super.urlSession(
          session, dataTask: dataTask, didReceive: response, completionHandler: completionHandler)
      }
    }

    /// Kept for subclasses that override it: tasks do not change their kind here, and nobody calls it.
    open func urlSession(
      _ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask
    ) {
      closures.dataTaskDidBecomeDownloadTask?(session, dataTask, downloadTask)
    }

    /// A piece of a body has come.
    open override func urlSession(
      _ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data
    ) {
      super.urlSession(session, dataTask: dataTask, didReceive: data)
      closures.dataTaskDidReceiveData?(session, dataTask, data)
    }

    /// A response is to be stored.
    open override func urlSession(
      _ session: URLSession, dataTask: URLSessionDataTask,
      willCacheResponse proposedResponse: CachedURLResponse,
      completionHandler: @escaping (CachedURLResponse?) -> Void
    ) {
      let closures = closures
      if let closure = closures.dataTaskWillCacheResponseWithCompletion {
        closure(session, dataTask, proposedResponse, completionHandler)
      } else if let closure = closures.dataTaskWillCacheResponse {
        completionHandler(closure(session, dataTask, proposedResponse))
      } else {
        super.urlSession(
          session, dataTask: dataTask, willCacheResponse: proposedResponse,
          completionHandler: completionHandler)
      }
    }

    // MARK: Downloads

    /// A download goes on from here.
    open override func urlSession(
      _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
      expectedTotalBytes: Int64
    ) {
      super.urlSession(
        session, downloadTask: downloadTask, didResumeAtOffset: fileOffset,
        expectedTotalBytes: expectedTotalBytes)
      closures.downloadTaskDidResumeAtOffset?(session, downloadTask, fileOffset, expectedTotalBytes)
    }

    /// Bytes of a file have come.
    open override func urlSession(
      _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
      totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
      super.urlSession(
        session, downloadTask: downloadTask, didWriteData: bytesWritten, totalBytesWritten: totalBytesWritten,
        totalBytesExpectedToWrite: totalBytesExpectedToWrite)
      closures.downloadTaskDidWriteData?(
        session, downloadTask, bytesWritten, totalBytesWritten, totalBytesExpectedToWrite)
    }

    /// A file has come.
    open override func urlSession(
      _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
      super.urlSession(session, downloadTask: downloadTask, didFinishDownloadingTo: location)
      closures.downloadTaskDidFinishDownloadingToURL?(session, downloadTask, location)
    }
  }
}
