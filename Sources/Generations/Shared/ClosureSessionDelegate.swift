public import Alamofire
public import Foundation
public import FoundationNetworking

/// The base class of the session delegates of the older generations, which differ in the type of their errors.
///
/// Subclasses may override its methods. A subclass of the user's is called for every event. The class of the generation
/// itself is called for the events that its closures need, so that requests do not wait for other events.
open class ClosureSessionDelegate<Failure>: Alamofire::SessionDelegate, @unchecked Sendable {
  // Unchecked, as its superclass is: its own properties are constants, and the closures are under the lock.

  /// The caller's closures, for any thread.
  private let storage = Mutex(Boxed(DelegateClosures<Failure>()))
  private let ownClass: AnyClass
  private let convertError: @Sendable (any Error) -> Failure
  private let neededEvents: @Sendable (DelegateClosures<Failure>) -> Events

  /// Makes a delegate without closures.
  ///
  /// - Parameters:
  ///   - ownClass:     The delegate class of the generation.
  ///   - neededEvents: Returns the events that the class of the generation has to be called for.
  ///   - convertError: Converts an error of the core to an error of the generation.
  init(
    ownClass: AnyClass, neededEvents: @escaping @Sendable (DelegateClosures<Failure>) -> Events,
    convertError: @escaping @Sendable (any Error) -> Failure
  ) {
    self.ownClass = ownClass
    self.neededEvents = neededEvents
    self.convertError = convertError
    super.init()
    updateWantedEvents(DelegateClosures())
  }

  /// The closures that are set.
  var closures: DelegateClosures<Failure> { storage.withLock { $0 }.value }

  /// Sets the handler of a manager for the end of its background events.
  func setBackgroundCompletionHandler(_ handler: (() -> Void)?) {
    change { $0.backgroundCompletionHandler = handler }
  }

  func change(_ change: @escaping (inout DelegateClosures<Failure>) -> Void) {
    let change = Boxed(change)
    // The closure that is replaced is released outside of the lock.
    _ = storage.withLock { closures in
      let former = closures
      var new = former.value
      change.value(&new)
      closures = Boxed(new)
      updateWantedEvents(new)
      return former
    }
  }

  private func updateWantedEvents(_ closures: DelegateClosures<Failure>) {
    if type(of: self) == ownClass { wantedEvents = neededEvents(closures) }
  }

  // MARK: The session

  /// Called when the session has become invalid.
  open override func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
    super.urlSession(session, didBecomeInvalidWithError: error)
    closures.sessionDidBecomeInvalidWithError?(session, error.map(convertError))
  }

  /// Called with the challenges of connections: the certificates of a server, or its request for a client certificate.
  /// Without a closure the `ServerTrustPolicyManager` of the session decides, or without one the trust store.
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

  /// Calls the closure, or without one the `backgroundCompletionHandler` of the manager on the main queue. It is never
  /// called by the manager, because no transfer survives the process. The method exists for programs that call or
  /// override it.
  open override func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
    let closures = closures
    if let closure = closures.sessionDidFinishEventsForBackgroundURLSession { return closure(session) }
    guard let handler = closures.backgroundCompletionHandler else { return }
    let boxed = Boxed(handler)
    DispatchQueue.main.async { boxed.value() }
  }

  // MARK: Tasks

  /// Called with each challenge of a server or a proxy. The default is the credential of the request.
  ///
  /// Challenges of connections are forwarded to ``urlSession(_:didReceive:completionHandler:)``, unless there are
  /// closures only for challenges of tasks.
  open override func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    let closures = closures
    if challenge.isOfConnection, closures.answersSessions || !closures.answersTasks {
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

  /// Called when a part of a body was sent.
  open override func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) {
    super.urlSession(
      session, task: task, didSendBodyData: bytesSent, totalBytesSent: totalBytesSent,
      totalBytesExpectedToSend: totalBytesExpectedToSend)
    closures.taskDidSendBodyData?(session, task, bytesSent, totalBytesSent, totalBytesExpectedToSend)
  }

  /// Called when the stream of an upload is needed. The default is the stream of the upload.
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

  /// Called before a redirect is followed. The default is to follow it.
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

  // MARK: Data tasks

  /// Called with the head of a response. The default is to read the body.
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

  /// Calls the closure, but is never called, because data tasks do not become downloads. The method exists for
  /// subclasses that override it.
  open func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask
  ) {
    closures.dataTaskDidBecomeDownloadTask?(session, dataTask, downloadTask)
  }

  /// Called with each chunk of a body. Response handlers get the whole body in any case.
  open override func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data
  ) {
    super.urlSession(session, dataTask: dataTask, didReceive: data)
    closures.dataTaskDidReceiveData?(session, dataTask, data)
  }

  /// Called before a response is stored. The default is to store it.
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

  /// Called when a download was resumed.
  open override func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
    expectedTotalBytes: Int64
  ) {
    super.urlSession(
      session, downloadTask: downloadTask, didResumeAtOffset: fileOffset,
      expectedTotalBytes: expectedTotalBytes)
    closures.downloadTaskDidResumeAtOffset?(session, downloadTask, fileOffset, expectedTotalBytes)
  }

  /// Called when a part of a file was received.
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

  /// Called when a file was downloaded, before it is moved to its destination.
  open override func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
  ) {
    super.urlSession(session, downloadTask: downloadTask, didFinishDownloadingTo: location)
    closures.downloadTaskDidFinishDownloadingToURL?(session, downloadTask, location)
  }
}

extension URLAuthenticationChallenge {
  /// Whether it is about the certificates of a connection.
  var isOfConnection: Bool {
    let method = protectionSpace.authenticationMethod
    return method == NSURLAuthenticationMethodServerTrust
      || method == NSURLAuthenticationMethodClientCertificate
  }
}
