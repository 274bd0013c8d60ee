public import Alamofire
public import Foundation
public import FoundationNetworking

/// The closures of a ``ClosureSessionDelegate``.
struct DelegateClosures<Failure> {
  var sessionDidBecomeInvalidWithError: ((URLSession, Failure?) -> Void)?
  var sessionDidReceiveChallenge:
    ((URLSession, URLAuthenticationChallenge) -> (URLSession.AuthChallengeDisposition, URLCredential?))?
  var sessionDidReceiveChallengeWithCompletion:
    (
      (
        URLSession, URLAuthenticationChallenge,
        @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
      ) -> Void
    )?
  var sessionDidFinishEventsForBackgroundURLSession: ((URLSession) -> Void)?
  /// The handler of the manager, for a delegate without that closure.
  var backgroundCompletionHandler: (() -> Void)?
  var taskWillPerformHTTPRedirection:
    ((URLSession, URLSessionTask, HTTPURLResponse, URLRequest) -> URLRequest?)?
  var taskWillPerformHTTPRedirectionWithCompletion:
    ((URLSession, URLSessionTask, HTTPURLResponse, URLRequest, @escaping (URLRequest?) -> Void) -> Void)?
  var taskDidReceiveChallenge:
    (
      (URLSession, URLSessionTask, URLAuthenticationChallenge) -> (
        URLSession.AuthChallengeDisposition, URLCredential?
      )
    )?
  var taskDidReceiveChallengeWithCompletion:
    (
      (
        URLSession, URLSessionTask, URLAuthenticationChallenge,
        @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
      ) -> Void
    )?
  var taskNeedNewBodyStream: ((URLSession, URLSessionTask) -> InputStream?)?
  var taskNeedNewBodyStreamWithCompletion:
    ((URLSession, URLSessionTask, @escaping (InputStream?) -> Void) -> Void)?
  var taskDidSendBodyData: ((URLSession, URLSessionTask, Int64, Int64, Int64) -> Void)?
  var taskDidComplete: ((URLSession, URLSessionTask, Failure?) -> Void)?
  var dataTaskDidReceiveResponse:
    ((URLSession, URLSessionDataTask, URLResponse) -> URLSession.ResponseDisposition)?
  var dataTaskDidReceiveResponseWithCompletion:
    (
      (URLSession, URLSessionDataTask, URLResponse, @escaping (URLSession.ResponseDisposition) -> Void) ->
        Void
    )?
  var dataTaskDidBecomeDownloadTask: ((URLSession, URLSessionDataTask, URLSessionDownloadTask) -> Void)?
  var dataTaskDidReceiveData: ((URLSession, URLSessionDataTask, Data) -> Void)?
  var dataTaskWillCacheResponse: ((URLSession, URLSessionDataTask, CachedURLResponse) -> CachedURLResponse?)?
  var dataTaskWillCacheResponseWithCompletion:
    ((URLSession, URLSessionDataTask, CachedURLResponse, @escaping (CachedURLResponse?) -> Void) -> Void)?
  var downloadTaskDidFinishDownloadingToURL: ((URLSession, URLSessionDownloadTask, URL) -> Void)?
  var downloadTaskDidWriteData: ((URLSession, URLSessionDownloadTask, Int64, Int64, Int64) -> Void)?
  var downloadTaskDidResumeAtOffset: ((URLSession, URLSessionDownloadTask, Int64, Int64) -> Void)?

  /// Whether a closure answers the challenges of connections.
  var answersSessions: Bool {
    sessionDidReceiveChallenge != nil || sessionDidReceiveChallengeWithCompletion != nil
  }
  /// Whether a closure answers the challenges of tasks.
  var answersTasks: Bool {
    taskDidReceiveChallenge != nil || taskDidReceiveChallengeWithCompletion != nil
  }

  /// The events that the closures need, `taskDidComplete` apart.
  var events: Alamofire::SessionDelegate.Events {
    var events: Alamofire::SessionDelegate.Events = []
    if answersSessions { events.insert(.trust) }
    if answersTasks { events.formUnion([.trust, .authentication]) }
    if taskWillPerformHTTPRedirection != nil || taskWillPerformHTTPRedirectionWithCompletion != nil {
      events.insert(.redirects)
    }
    if dataTaskWillCacheResponse != nil || dataTaskWillCacheResponseWithCompletion != nil {
      events.insert(.caching)
    }
    if observesTransfers { events.insert(.transfers) }
    return events
  }

  private var observesTransfers: Bool {
    taskNeedNewBodyStream != nil || taskNeedNewBodyStreamWithCompletion != nil || taskDidSendBodyData != nil
      || dataTaskDidReceiveResponse != nil || dataTaskDidReceiveResponseWithCompletion != nil
      || dataTaskDidReceiveData != nil || downloadTaskDidFinishDownloadingToURL != nil
      || downloadTaskDidWriteData != nil || downloadTaskDidResumeAtOffset != nil
  }
}

// The class calls its closures one at a time, in the order of the events, on a queue of the session. A closure that
// decides replaces the default behavior; every other closure is called after it.
extension ClosureSessionDelegate {
  // MARK: The session

  /// The session has become invalid.
  public var sessionDidBecomeInvalidWithError: ((URLSession, Failure?) -> Void)? {
    get { closures.sessionDidBecomeInvalidWithError }
    set { change { $0.sessionDidBecomeInvalidWithError = newValue } }
  }

  /// Answers the challenges of connections, which are about certificates.
  public var sessionDidReceiveChallenge:
    ((URLSession, URLAuthenticationChallenge) -> (URLSession.AuthChallengeDisposition, URLCredential?))?
  {
    get { closures.sessionDidReceiveChallenge }
    set { change { $0.sessionDidReceiveChallenge = newValue } }
  }

  /// Takes precedence over the closure without a completion handler, which it may call later.
  public var sessionDidReceiveChallengeWithCompletion:
    (
      (
        URLSession, URLAuthenticationChallenge,
        @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
      ) -> Void
    )?
  {
    get { closures.sessionDidReceiveChallengeWithCompletion }
    set { change { $0.sessionDidReceiveChallengeWithCompletion = newValue } }
  }

  /// Called by `urlSessionDidFinishEvents(forBackgroundURLSession:)`, which only programs call.
  public var sessionDidFinishEventsForBackgroundURLSession: ((URLSession) -> Void)? {
    get { closures.sessionDidFinishEventsForBackgroundURLSession }
    set { change { $0.sessionDidFinishEventsForBackgroundURLSession = newValue } }
  }

  // MARK: Tasks

  /// Returns the request that follows a redirect; `nil` makes the redirect itself the response.
  public var taskWillPerformHTTPRedirection:
    ((URLSession, URLSessionTask, HTTPURLResponse, URLRequest) -> URLRequest?)?
  {
    get { closures.taskWillPerformHTTPRedirection }
    set { change { $0.taskWillPerformHTTPRedirection = newValue } }
  }

  /// Takes precedence over the closure without a completion handler, which it may call later.
  public var taskWillPerformHTTPRedirectionWithCompletion:
    ((URLSession, URLSessionTask, HTTPURLResponse, URLRequest, @escaping (URLRequest?) -> Void) -> Void)?
  {
    get { closures.taskWillPerformHTTPRedirectionWithCompletion }
    set { change { $0.taskWillPerformHTTPRedirectionWithCompletion = newValue } }
  }

  /// A closure that answers the challenges of servers and proxies, and challenges of connections if no closure of the
  /// session does.
  public var taskDidReceiveChallenge:
    (
      (URLSession, URLSessionTask, URLAuthenticationChallenge) -> (
        URLSession.AuthChallengeDisposition, URLCredential?
      )
    )?
  {
    get { closures.taskDidReceiveChallenge }
    set { change { $0.taskDidReceiveChallenge = newValue } }
  }

  /// Takes precedence over the closure without a completion handler, which it may call later.
  public var taskDidReceiveChallengeWithCompletion:
    (
      (
        URLSession, URLSessionTask, URLAuthenticationChallenge,
        @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
      ) -> Void
    )?
  {
    get { closures.taskDidReceiveChallengeWithCompletion }
    set { change { $0.taskDidReceiveChallengeWithCompletion = newValue } }
  }

  /// Returns the stream of an upload, for the first attempt and for each later one; `nil` fails the request.
  public var taskNeedNewBodyStream: ((URLSession, URLSessionTask) -> InputStream?)? {
    get { closures.taskNeedNewBodyStream }
    set { change { $0.taskNeedNewBodyStream = newValue } }
  }

  /// Takes precedence over the closure without a completion handler, which it may call later.
  public var taskNeedNewBodyStreamWithCompletion:
    ((URLSession, URLSessionTask, @escaping (InputStream?) -> Void) -> Void)?
  {
    get { closures.taskNeedNewBodyStreamWithCompletion }
    set { change { $0.taskNeedNewBodyStreamWithCompletion = newValue } }
  }

  /// A part of a body was sent: its bytes, all bytes so far, and the bytes expected (−1 if unknown).
  public var taskDidSendBodyData: ((URLSession, URLSessionTask, Int64, Int64, Int64) -> Void)? {
    get { closures.taskDidSendBodyData }
    set { change { $0.taskDidSendBodyData = newValue } }
  }

  /// A task has ended; its handlers were not called yet. In the fourth generation it is called once for each request,
  /// after the last retry.
  public var taskDidComplete: ((URLSession, URLSessionTask, Failure?) -> Void)? {
    get { closures.taskDidComplete }
    set { change { $0.taskDidComplete = newValue } }
  }

  // MARK: Data tasks

  /// Decides after the head of a response whether the body is read; `.cancel` ends the request.
  public var dataTaskDidReceiveResponse:
    ((URLSession, URLSessionDataTask, URLResponse) -> URLSession.ResponseDisposition)?
  {
    get { closures.dataTaskDidReceiveResponse }
    set { change { $0.dataTaskDidReceiveResponse = newValue } }
  }

  /// Takes precedence over the closure without a completion handler, which it may call later.
  /// The body is read in the meantime.
  public var dataTaskDidReceiveResponseWithCompletion:
    (
      (URLSession, URLSessionDataTask, URLResponse, @escaping (URLSession.ResponseDisposition) -> Void) ->
        Void
    )?
  {
    get { closures.dataTaskDidReceiveResponseWithCompletion }
    set { change { $0.dataTaskDidReceiveResponseWithCompletion = newValue } }
  }

  /// Never called, because data tasks do not become downloads. It exists for code that sets it.
  public var dataTaskDidBecomeDownloadTask:
    ((URLSession, URLSessionDataTask, URLSessionDownloadTask) -> Void)?
  {
    get { closures.dataTaskDidBecomeDownloadTask }
    set { change { $0.dataTaskDidBecomeDownloadTask = newValue } }
  }

  /// A chunk of a body was received. Response handlers get it as well.
  public var dataTaskDidReceiveData: ((URLSession, URLSessionDataTask, Data) -> Void)? {
    get { closures.dataTaskDidReceiveData }
    set { change { $0.dataTaskDidReceiveData = newValue } }
  }

  /// Returns the response that the cache stores; `nil` stores nothing.
  public var dataTaskWillCacheResponse:
    ((URLSession, URLSessionDataTask, CachedURLResponse) -> CachedURLResponse?)?
  {
    get { closures.dataTaskWillCacheResponse }
    set { change { $0.dataTaskWillCacheResponse = newValue } }
  }

  /// Takes precedence over the closure without a completion handler, which it may call later.
  public var dataTaskWillCacheResponseWithCompletion:
    ((URLSession, URLSessionDataTask, CachedURLResponse, @escaping (CachedURLResponse?) -> Void) -> Void)?
  {
    get { closures.dataTaskWillCacheResponseWithCompletion }
    set { change { $0.dataTaskWillCacheResponseWithCompletion = newValue } }
  }

  // MARK: Downloads

  /// A file was downloaded. A closure that moves it must not be used with a destination.
  public var downloadTaskDidFinishDownloadingToURL: ((URLSession, URLSessionDownloadTask, URL) -> Void)? {
    get { closures.downloadTaskDidFinishDownloadingToURL }
    set { change { $0.downloadTaskDidFinishDownloadingToURL = newValue } }
  }

  /// A part of a file was received: its bytes, all bytes so far, and the bytes expected (−1 if unknown).
  public var downloadTaskDidWriteData: ((URLSession, URLSessionDownloadTask, Int64, Int64, Int64) -> Void)? {
    get { closures.downloadTaskDidWriteData }
    set { change { $0.downloadTaskDidWriteData = newValue } }
  }

  /// A download was resumed: its offset, and the length of the file (−1 if unknown).
  public var downloadTaskDidResumeAtOffset: ((URLSession, URLSessionDownloadTask, Int64, Int64) -> Void)? {
    get { closures.downloadTaskDidResumeAtOffset }
    set { change { $0.downloadTaskDidResumeAtOffset = newValue } }
  }
}
