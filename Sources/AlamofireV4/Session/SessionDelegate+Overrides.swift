public import Foundation
public import FoundationNetworking

/// The closures of a ``SessionDelegate``.
struct Overrides {
  var sessionDidBecomeInvalidWithError: ((URLSession, (any Error)?) -> Void)?
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
  var taskDidComplete: ((URLSession, URLSessionTask, (any Error)?) -> Void)?
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

  /// What the delegate has to be called for. It always hears of challenges, for credentials that come late.
  var events: SessionDelegate.Events {
    var events: SessionDelegate.Events = .authentication
    if answersSessions || answersTasks { events.insert(.trust) }
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
      || dataTaskDidReceiveResponse != nil || dataTaskDidReceiveResponseWithCompletion != nil
      || dataTaskDidReceiveData != nil || downloadTaskDidFinishDownloadingToURL != nil
      || downloadTaskDidWriteData != nil || downloadTaskDidResumeAtOffset != nil
  }
}

// Each closure takes the place of what the class does by itself, unless it says otherwise.
extension SessionDelegate {
  // MARK: The session

  /// The session has ended. Takes the place of ``urlSession(_:didBecomeInvalidWithError:)``.
  public var sessionDidBecomeInvalidWithError: ((URLSession, (any Error)?) -> Void)? {
    get { overrides.sessionDidBecomeInvalidWithError }
    set { change { $0.sessionDidBecomeInvalidWithError = newValue } }
  }

  /// A challenge about certificates, and the answer to it.
  public var sessionDidReceiveChallenge:
    ((URLSession, URLAuthenticationChallenge) -> (URLSession.AuthChallengeDisposition, URLCredential?))?
  {
    get { overrides.sessionDidReceiveChallenge }
    set { change { $0.sessionDidReceiveChallenge = newValue } }
  }

  /// The same with an answer that may come later; goes before the other.
  public var sessionDidReceiveChallengeWithCompletion:
    (
      (
        URLSession, URLAuthenticationChallenge,
        @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
      ) -> Void
    )?
  {
    get { overrides.sessionDidReceiveChallengeWithCompletion }
    set { change { $0.sessionDidReceiveChallengeWithCompletion = newValue } }
  }

  /// Kept for code that sets it; transfers end with the process.
  public var sessionDidFinishEventsForBackgroundURLSession: ((URLSession) -> Void)? {
    get { overrides.sessionDidFinishEventsForBackgroundURLSession }
    set { change { $0.sessionDidFinishEventsForBackgroundURLSession = newValue } }
  }

  // MARK: Tasks

  /// A redirect, and the request to send then; `nil` makes the redirect itself the response.
  public var taskWillPerformHTTPRedirection:
    ((URLSession, URLSessionTask, HTTPURLResponse, URLRequest) -> URLRequest?)?
  {
    get { overrides.taskWillPerformHTTPRedirection }
    set { change { $0.taskWillPerformHTTPRedirection = newValue } }
  }

  /// The same with an answer that may come later; goes before the other.
  public var taskWillPerformHTTPRedirectionWithCompletion:
    ((URLSession, URLSessionTask, HTTPURLResponse, URLRequest, @escaping (URLRequest?) -> Void) -> Void)?
  {
    get { overrides.taskWillPerformHTTPRedirectionWithCompletion }
    set { change { $0.taskWillPerformHTTPRedirectionWithCompletion = newValue } }
  }

  /// A challenge of a server, and the answer to it. Also asked about certificates, unless a closure for the session is.
  public var taskDidReceiveChallenge:
    (
      (URLSession, URLSessionTask, URLAuthenticationChallenge) -> (
        URLSession.AuthChallengeDisposition, URLCredential?
      )
    )?
  {
    get { overrides.taskDidReceiveChallenge }
    set { change { $0.taskDidReceiveChallenge = newValue } }
  }

  /// The same with an answer that may come later; goes before the other.
  public var taskDidReceiveChallengeWithCompletion:
    (
      (
        URLSession, URLSessionTask, URLAuthenticationChallenge,
        @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
      ) -> Void
    )?
  {
    get { overrides.taskDidReceiveChallengeWithCompletion }
    set { change { $0.taskDidReceiveChallengeWithCompletion = newValue } }
  }

  /// The stream of an upload is to be read, for the first time or again; `nil` ends the request with an error.
  public var taskNeedNewBodyStream: ((URLSession, URLSessionTask) -> InputStream?)? {
    get { overrides.taskNeedNewBodyStream }
    set { change { $0.taskNeedNewBodyStream = newValue } }
  }

  /// The same with an answer that may come later; goes before the other.
  public var taskNeedNewBodyStreamWithCompletion:
    ((URLSession, URLSessionTask, @escaping (InputStream?) -> Void) -> Void)?
  {
    get { overrides.taskNeedNewBodyStreamWithCompletion }
    set { change { $0.taskNeedNewBodyStreamWithCompletion = newValue } }
  }

  /// A body is sent: bytes of now, bytes of all, bytes expected (−1 when unknown).
  public var taskDidSendBodyData: ((URLSession, URLSessionTask, Int64, Int64, Int64) -> Void)? {
    get { overrides.taskDidSendBodyData }
    set { change { $0.taskDidSendBodyData = newValue } }
  }

  /// A request is over and will not be retried; called before its handlers, with the error that they get, beside what the
  /// class does.
  public var taskDidComplete: ((URLSession, URLSessionTask, (any Error)?) -> Void)? {
    get { overrides.taskDidComplete }
    set { change { $0.taskDidComplete = newValue } }
  }

  // MARK: Data tasks

  /// The head of a response has come; `.cancel` ends the request.
  public var dataTaskDidReceiveResponse:
    ((URLSession, URLSessionDataTask, URLResponse) -> URLSession.ResponseDisposition)?
  {
    get { overrides.dataTaskDidReceiveResponse }
    set { change { $0.dataTaskDidReceiveResponse = newValue } }
  }

  /// The same with an answer that may come later; goes before the other. The body is read meanwhile.
  public var dataTaskDidReceiveResponseWithCompletion:
    (
      (URLSession, URLSessionDataTask, URLResponse, @escaping (URLSession.ResponseDisposition) -> Void) ->
        Void
    )?
  {
    get { overrides.dataTaskDidReceiveResponseWithCompletion }
    set { change { $0.dataTaskDidReceiveResponseWithCompletion = newValue } }
  }

  /// Kept for code that sets it; data tasks stay what they are.
  public var dataTaskDidBecomeDownloadTask:
    ((URLSession, URLSessionDataTask, URLSessionDownloadTask) -> Void)?
  {
    get { overrides.dataTaskDidBecomeDownloadTask }
    set { change { $0.dataTaskDidBecomeDownloadTask = newValue } }
  }

  /// A piece of a body has come. Handlers and ``DataRequest/stream(closure:)`` get it as well.
  public var dataTaskDidReceiveData: ((URLSession, URLSessionDataTask, Data) -> Void)? {
    get { overrides.dataTaskDidReceiveData }
    set { change { $0.dataTaskDidReceiveData = newValue } }
  }

  /// A response is about to be stored: what to store, or `nil`.
  public var dataTaskWillCacheResponse:
    ((URLSession, URLSessionDataTask, CachedURLResponse) -> CachedURLResponse?)?
  {
    get { overrides.dataTaskWillCacheResponse }
    set { change { $0.dataTaskWillCacheResponse = newValue } }
  }

  /// The same with an answer that may come later; goes before the other.
  public var dataTaskWillCacheResponseWithCompletion:
    ((URLSession, URLSessionDataTask, CachedURLResponse, @escaping (CachedURLResponse?) -> Void) -> Void)?
  {
    get { overrides.dataTaskWillCacheResponseWithCompletion }
    set { change { $0.dataTaskWillCacheResponseWithCompletion = newValue } }
  }

  // MARK: Downloads

  /// A file has come. A closure that moves it away must not be used with a destination.
  public var downloadTaskDidFinishDownloadingToURL: ((URLSession, URLSessionDownloadTask, URL) -> Void)? {
    get { overrides.downloadTaskDidFinishDownloadingToURL }
    set { change { $0.downloadTaskDidFinishDownloadingToURL = newValue } }
  }

  /// A file comes: bytes of now, bytes of all, bytes expected (−1 when unknown).
  public var downloadTaskDidWriteData: ((URLSession, URLSessionDownloadTask, Int64, Int64, Int64) -> Void)? {
    get { overrides.downloadTaskDidWriteData }
    set { change { $0.downloadTaskDidWriteData = newValue } }
  }

  /// A download goes on: from where, and how long it will be (−1 when unknown).
  public var downloadTaskDidResumeAtOffset: ((URLSession, URLSessionDownloadTask, Int64, Int64) -> Void)? {
    get { overrides.downloadTaskDidResumeAtOffset }
    set { change { $0.downloadTaskDidResumeAtOffset = newValue } }
  }

}
