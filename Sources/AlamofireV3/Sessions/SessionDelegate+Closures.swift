public import Foundation
public import FoundationNetworking

/// The closures of a delegate. Guarded by its lock; they are called outside of it.
struct DelegateClosures {
  var sessionDidBecomeInvalidWithError: ((URLSession, NSError?) -> Void)?
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
  var taskDidComplete: ((URLSession, URLSessionTask, NSError?) -> Void)?
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

  var answersSessions: Bool {
    sessionDidReceiveChallenge != nil || sessionDidReceiveChallengeWithCompletion != nil
  }
  var answersTasks: Bool {
    taskDidReceiveChallenge != nil || taskDidReceiveChallengeWithCompletion != nil
  }

  /// What the delegate has to be called for.
  var events: Manager.SessionDelegate.Events {
    var events: Manager.SessionDelegate.Events = []
    if answersSessions { events.insert(.trust) }
    if answersTasks { events.formUnion([.trust, .authentication]) }
    if taskWillPerformHTTPRedirection != nil || taskWillPerformHTTPRedirectionWithCompletion != nil {
      events.insert(.redirects)
    }
    if dataTaskWillCacheResponse != nil || dataTaskWillCacheResponseWithCompletion != nil {
      events.insert(.caching)
    }
    if seesTransfers { events.insert(.transfers) }
    return events
  }

  private var seesTransfers: Bool {
    taskNeedNewBodyStream != nil || taskNeedNewBodyStreamWithCompletion != nil || taskDidSendBodyData != nil
      || taskDidComplete != nil || dataTaskDidReceiveResponse != nil
      || dataTaskDidReceiveResponseWithCompletion != nil || dataTaskDidReceiveData != nil
      || downloadTaskDidFinishDownloadingToURL != nil || downloadTaskDidWriteData != nil
      || downloadTaskDidResumeAtOffset != nil
  }
}

// Each closure takes the place of what the delegate does by itself. They are called one at a time, away from the main
// queue, in the order of events.
extension Manager.SessionDelegate {
  /// The session has ended.
  public var sessionDidBecomeInvalidWithError: ((URLSession, NSError?) -> Void)? {
    get { closures.sessionDidBecomeInvalidWithError }
    set { change { $0.sessionDidBecomeInvalidWithError = newValue } }
  }

  /// Answers challenges of the connection: about the server's certificates, or the client's.
  public var sessionDidReceiveChallenge:
    ((URLSession, URLAuthenticationChallenge) -> (URLSession.AuthChallengeDisposition, URLCredential?))?
  {
    get { closures.sessionDidReceiveChallenge }
    set { change { $0.sessionDidReceiveChallenge = newValue } }
  }

  /// The same with an answer that may come later; it stands before the other form.
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

  /// Kept for programs that set it: there are no background sessions here, and nobody calls it.
  public var sessionDidFinishEventsForBackgroundURLSession: ((URLSession) -> Void)? {
    get { closures.sessionDidFinishEventsForBackgroundURLSession }
    set { change { $0.sessionDidFinishEventsForBackgroundURLSession = newValue } }
  }

  /// A response leads elsewhere: the request to follow with, or `nil` not to follow.
  public var taskWillPerformHTTPRedirection:
    ((URLSession, URLSessionTask, HTTPURLResponse, URLRequest) -> URLRequest?)?
  {
    get { closures.taskWillPerformHTTPRedirection }
    set { change { $0.taskWillPerformHTTPRedirection = newValue } }
  }

  /// The same with an answer that may come later; it stands before the other form.
  public var taskWillPerformHTTPRedirectionWithCompletion:
    ((URLSession, URLSessionTask, HTTPURLResponse, URLRequest, @escaping (URLRequest?) -> Void) -> Void)?
  {
    get { closures.taskWillPerformHTTPRedirectionWithCompletion }
    set { change { $0.taskWillPerformHTTPRedirectionWithCompletion = newValue } }
  }

  /// Answers challenges that a server or proxy makes to a request.
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

  /// The same with an answer that may come later; it stands before the other form.
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

  /// The stream to send, again perhaps.
  public var taskNeedNewBodyStream: ((URLSession, URLSessionTask) -> InputStream?)? {
    get { closures.taskNeedNewBodyStream }
    set { change { $0.taskNeedNewBodyStream = newValue } }
  }

  /// The same with an answer that may come later; it stands before the other form.
  public var taskNeedNewBodyStreamWithCompletion:
    ((URLSession, URLSessionTask, @escaping (InputStream?) -> Void) -> Void)?
  {
    get { closures.taskNeedNewBodyStreamWithCompletion }
    set { change { $0.taskNeedNewBodyStreamWithCompletion = newValue } }
  }

  /// Bytes were sent: of this piece, so far, and in all.
  public var taskDidSendBodyData: ((URLSession, URLSessionTask, Int64, Int64, Int64) -> Void)? {
    get { closures.taskDidSendBodyData }
    set { change { $0.taskDidSendBodyData = newValue } }
  }

  /// A task is over.
  public var taskDidComplete: ((URLSession, URLSessionTask, NSError?) -> Void)? {
    get { closures.taskDidComplete }
    set { change { $0.taskDidComplete = newValue } }
  }

  /// A response has begun to come: whether it may go on.
  public var dataTaskDidReceiveResponse:
    ((URLSession, URLSessionDataTask, URLResponse) -> URLSession.ResponseDisposition)?
  {
    get { closures.dataTaskDidReceiveResponse }
    set { change { $0.dataTaskDidReceiveResponse = newValue } }
  }

  /// The same with an answer that may come later; it stands before the other form.
  public var dataTaskDidReceiveResponseWithCompletion:
    (
      (URLSession, URLSessionDataTask, URLResponse, @escaping (URLSession.ResponseDisposition) -> Void) ->
        Void
    )?
  {
    get { closures.dataTaskDidReceiveResponseWithCompletion }
    set { change { $0.dataTaskDidReceiveResponseWithCompletion = newValue } }
  }

  /// Kept for programs that set it: tasks do not change their kind here, and nobody calls it.
  public var dataTaskDidBecomeDownloadTask:
    ((URLSession, URLSessionDataTask, URLSessionDownloadTask) -> Void)?
  {
    get { closures.dataTaskDidBecomeDownloadTask }
    set { change { $0.dataTaskDidBecomeDownloadTask = newValue } }
  }

  /// A piece of a body has come. The handlers get all of it, all the same.
  public var dataTaskDidReceiveData: ((URLSession, URLSessionDataTask, Data) -> Void)? {
    get { closures.dataTaskDidReceiveData }
    set { change { $0.dataTaskDidReceiveData = newValue } }
  }

  /// A response is to be stored: what to store, or `nil`.
  public var dataTaskWillCacheResponse:
    ((URLSession, URLSessionDataTask, CachedURLResponse) -> CachedURLResponse?)?
  {
    get { closures.dataTaskWillCacheResponse }
    set { change { $0.dataTaskWillCacheResponse = newValue } }
  }

  /// The same with an answer that may come later; it stands before the other form.
  public var dataTaskWillCacheResponseWithCompletion:
    ((URLSession, URLSessionDataTask, CachedURLResponse, @escaping (CachedURLResponse?) -> Void) -> Void)?
  {
    get { closures.dataTaskWillCacheResponseWithCompletion }
    set { change { $0.dataTaskWillCacheResponseWithCompletion = newValue } }
  }

  /// A file has come, and lies here. It goes to its destination all the same.
  public var downloadTaskDidFinishDownloadingToURL: ((URLSession, URLSessionDownloadTask, URL) -> Void)? {
    get { closures.downloadTaskDidFinishDownloadingToURL }
    set { change { $0.downloadTaskDidFinishDownloadingToURL = newValue } }
  }

  /// Bytes of a file have come: of this piece, so far, and in all.
  public var downloadTaskDidWriteData: ((URLSession, URLSessionDownloadTask, Int64, Int64, Int64) -> Void)? {
    get { closures.downloadTaskDidWriteData }
    set { change { $0.downloadTaskDidWriteData = newValue } }
  }

  /// A download goes on from here, of so many bytes in all.
  public var downloadTaskDidResumeAtOffset: ((URLSession, URLSessionDownloadTask, Int64, Int64) -> Void)? {
    get { closures.downloadTaskDidResumeAtOffset }
    set { change { $0.downloadTaskDidResumeAtOffset = newValue } }
  }
}
