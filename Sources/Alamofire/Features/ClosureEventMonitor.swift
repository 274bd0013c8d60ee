public import Foundation
public import FoundationNetworking

/// An event monitor that calls closures, for programs that do not need their own type.
///
/// Set the closures before the monitor is given to a session or request: they are read on ``queue`` without a lock.
/// There are no closures for the events of streams, or of serializers that are generic over their value.
///
/// ```swift
/// let monitor = ClosureEventMonitor()
/// monitor.requestDidFinish = { request in print(request.description) }
/// let session = Session(eventMonitors: [monitor])
/// ```
open class ClosureEventMonitor: EventMonitor, @unchecked Sendable {
  // Unchecked: the closures are set before the monitor is handed over, and only read from then on.

  /// The queue on which the closures are called.
  public let queue: DispatchQueue

  /// Makes a monitor without closures.
  ///
  /// - Parameter queue: The queue on which the closures are called. Default: the main queue.
  public init(queue: DispatchQueue = .main) {
    self.queue = queue
  }

  /// Called when the session accepts no more requests. `error` is `nil` if the program ended the session.
  open var sessionDidBecomeInvalidWithError: (@Sendable (URLSession, (any Error)?) -> Void)?
  /// Called when a server or a proxy sends a challenge.
  open var taskDidReceiveChallenge:
    (@Sendable (URLSession, URLSessionTask, URLAuthenticationChallenge) -> Void)?
  /// Called when bytes of the request's body have been sent. A total of −1 is unknown.
  open var taskDidSendBodyData: (@Sendable (URLSession, URLSessionTask, Int64, Int64, Int64) -> Void)?
  /// Called when a body that is a stream has to be sent again.
  open var taskNeedNewBodyStream: (@Sendable (URLSession, URLSessionTask) -> Void)?
  /// Called when a response redirects to `request`, unless a ``RedirectHandler`` decides otherwise.
  open var taskWillPerformHTTPRedirection:
    (@Sendable (URLSession, URLSessionTask, HTTPURLResponse, URLRequest) -> Void)?
  /// Called when the metrics of an attempt are complete.
  open var taskDidFinishCollectingMetrics:
    (@Sendable (URLSession, URLSessionTask, URLSessionTaskMetrics) -> Void)?
  /// Called when an attempt has ended. `error` is `nil` if a response was received, whatever its status.
  open var taskDidComplete: (@Sendable (URLSession, URLSessionTask, (any Error)?) -> Void)?
  /// Called once when an attempt waits for a network because of `waitsForConnectivity`.
  open var taskIsWaitingForConnectivity: (@Sendable (URLSession, URLSessionTask) -> Void)?
  /// Called when the head of a response was received.
  open var dataTaskDidReceiveResponse: (@Sendable (URLSession, URLSessionDataTask, URLResponse) -> Void)?
  /// Called when a chunk of the body of a response was received.
  open var dataTaskDidReceiveData: (@Sendable (URLSession, URLSessionDataTask, Data) -> Void)?
  /// Called when a response may be stored, unless a ``CachedResponseHandler`` decides otherwise.
  open var dataTaskWillCacheResponse: (@Sendable (URLSession, URLSessionDataTask, CachedURLResponse) -> Void)?
  /// Called when a download continues at `fileOffset`, in bytes. A total of −1 is unknown.
  open var downloadTaskDidResumeAtOffset:
    (@Sendable (URLSession, URLSessionDownloadTask, Int64, Int64) -> Void)?
  /// Called when bytes of a download were received. A total of −1 is unknown.
  open var downloadTaskDidWriteData:
    (@Sendable (URLSession, URLSessionDownloadTask, Int64, Int64, Int64) -> Void)?
  /// Called when a download is complete, in a temporary file.
  open var downloadTaskDidFinishDownloadingToURL:
    (@Sendable (URLSession, URLSessionDownloadTask, URL) -> Void)?
  /// Called when the request has been created, before any adapter.
  open var requestDidCreateInitialURLRequest: (@Sendable (Request, URLRequest) -> Void)?
  /// Called when the request could not be created.
  open var requestDidFailToCreateURLRequestWithError: (@Sendable (Request, AFError) -> Void)?
  /// Called when the adapters have changed the request.
  open var requestDidAdaptInitialRequestToAdaptedRequest:
    (@Sendable (Request, URLRequest, URLRequest) -> Void)?
  /// Called when an adapter has failed, or has returned a request that cannot be sent.
  open var requestDidFailToAdaptURLRequestWithError: (@Sendable (Request, URLRequest, AFError) -> Void)?
  /// Called when the request is complete and will be sent.
  open var requestDidCreateURLRequest: (@Sendable (Request, URLRequest) -> Void)?
  /// Called when an attempt begins.
  open var requestDidCreateTask: (@Sendable (Request, URLSessionTask) -> Void)?
  /// Called when the metrics of an attempt are complete.
  open var requestDidGatherMetrics: (@Sendable (Request, URLSessionTaskMetrics) -> Void)?
  /// Called when an attempt has failed before the end of its task, because a server is not trusted.
  open var requestDidFailTaskEarlyWithError: (@Sendable (Request, URLSessionTask, AFError) -> Void)?
  /// Called when an attempt has ended, and its validators have run.
  open var requestDidCompleteTaskWithError: (@Sendable (Request, URLSessionTask, AFError?) -> Void)?
  /// Called when another attempt of the request begins.
  open var requestIsRetrying: (@Sendable (Request) -> Void)?
  /// Called when the request has ended, before its response handlers are called.
  open var requestDidFinish: (@Sendable (Request) -> Void)?
  /// Called when the request was resumed.
  open var requestDidResume: (@Sendable (Request) -> Void)?
  /// Called when the task of an attempt runs.
  open var requestDidResumeTask: (@Sendable (Request, URLSessionTask) -> Void)?
  /// Called when the request was suspended.
  open var requestDidSuspend: (@Sendable (Request) -> Void)?
  /// Called when the task of an attempt was suspended.
  open var requestDidSuspendTask: (@Sendable (Request, URLSessionTask) -> Void)?
  /// Called when the request was cancelled.
  open var requestDidCancel: (@Sendable (Request) -> Void)?
  /// Called when the task of an attempt was cancelled.
  open var requestDidCancelTask: (@Sendable (Request, URLSessionTask) -> Void)?
  /// Called when a validator has evaluated a response.
  open var requestDidValidateRequestResponseDataWithResult:
    (@Sendable (DataRequest, URLRequest?, HTTPURLResponse, Data?, Request.ValidationResult) -> Void)?
  /// Called before a handler without serializer is called.
  open var requestDidParseResponse: (@Sendable (DataRequest, DataResponse<Data?, AFError>) -> Void)?
  /// Called when a validator has evaluated the response of a stream.
  open var requestDidValidateRequestResponseWithResult:
    (@Sendable (DataStreamRequest, URLRequest?, HTTPURLResponse, Request.ValidationResult) -> Void)?

  /// Called when the body of an upload has been created.
  open var requestDidCreateUploadable: (@Sendable (UploadRequest, UploadRequest.Uploadable) -> Void)?
  /// Called when the body of an upload could not be created.
  open var requestDidFailToCreateUploadableWithError: (@Sendable (UploadRequest, AFError) -> Void)?
  /// Called before a stream is sent as the body of an upload. Do not read the stream, because it belongs to the upload.
  open var requestDidProvideInputStream: (@Sendable (UploadRequest, InputStream) -> Void)?
  /// Called when the file of a download was moved to its destination, or could not be moved.
  open var requestDidFinishDownloadingUsingTaskWithResult:
    (@Sendable (DownloadRequest, URLSessionTask, Result<URL, AFError>) -> Void)?
  /// Called when the destination of a download is known.
  open var requestDidCreateDestinationURL: (@Sendable (DownloadRequest, URL) -> Void)?
  /// Called when a validator has evaluated a download.
  open var requestDidValidateRequestResponseFileURLWithResult:
    (@Sendable (DownloadRequest, URLRequest?, HTTPURLResponse, URL?, Request.ValidationResult) -> Void)?
  /// Called before a handler without serializer is called.
  open var requestDidParseDownloadResponse:
    (@Sendable (DownloadRequest, DownloadResponse<URL?, AFError>) -> Void)?

  /// Calls ``sessionDidBecomeInvalidWithError``.
  open func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
    sessionDidBecomeInvalidWithError?(session, error)
  }

  /// Calls ``taskDidReceiveChallenge``.
  open func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
  ) {
    taskDidReceiveChallenge?(session, task, challenge)
  }

  /// Calls ``taskDidSendBodyData``.
  open func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) {
    taskDidSendBodyData?(session, task, bytesSent, totalBytesSent, totalBytesExpectedToSend)
  }

  /// Calls ``taskNeedNewBodyStream``.
  open func urlSession(_ session: URLSession, taskNeedsNewBodyStream task: URLSessionTask) {
    taskNeedNewBodyStream?(session, task)
  }

  /// Calls ``taskWillPerformHTTPRedirection``.
  open func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest
  ) {
    taskWillPerformHTTPRedirection?(session, task, response, request)
  }

  /// Calls ``taskDidFinishCollectingMetrics``.
  open func urlSession(
    _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics
  ) {
    taskDidFinishCollectingMetrics?(session, task, metrics)
  }

  /// Calls ``taskDidComplete``.
  open func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?)
  {
    taskDidComplete?(session, task, error)
  }

  /// Calls ``taskIsWaitingForConnectivity``.
  open func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {
    taskIsWaitingForConnectivity?(session, task)
  }

  /// Calls ``dataTaskDidReceiveResponse``.
  open func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse)
  {
    dataTaskDidReceiveResponse?(session, dataTask, response)
  }

  /// Calls ``dataTaskDidReceiveData``.
  open func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    dataTaskDidReceiveData?(session, dataTask, data)
  }

  /// Calls ``dataTaskWillCacheResponse``.
  open func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
  ) {
    dataTaskWillCacheResponse?(session, dataTask, proposedResponse)
  }

  /// Calls ``downloadTaskDidResumeAtOffset``.
  open func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
    expectedTotalBytes: Int64
  ) {
    downloadTaskDidResumeAtOffset?(session, downloadTask, fileOffset, expectedTotalBytes)
  }

  /// Calls ``downloadTaskDidWriteData``.
  open func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
    totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
  ) {
    downloadTaskDidWriteData?(
      session, downloadTask, bytesWritten, totalBytesWritten, totalBytesExpectedToWrite)
  }

  /// Calls ``downloadTaskDidFinishDownloadingToURL``.
  open func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
  ) {
    downloadTaskDidFinishDownloadingToURL?(session, downloadTask, location)
  }

  /// Calls ``requestDidCreateInitialURLRequest``.
  open func request(_ request: Request, didCreateInitialURLRequest urlRequest: URLRequest) {
    requestDidCreateInitialURLRequest?(request, urlRequest)
  }

  /// Calls ``requestDidFailToCreateURLRequestWithError``.
  open func request(_ request: Request, didFailToCreateURLRequestWithError error: AFError) {
    requestDidFailToCreateURLRequestWithError?(request, error)
  }

  /// Calls ``requestDidAdaptInitialRequestToAdaptedRequest``.
  open func request(
    _ request: Request, didAdaptInitialRequest initialRequest: URLRequest, to adaptedRequest: URLRequest
  ) {
    requestDidAdaptInitialRequestToAdaptedRequest?(request, initialRequest, adaptedRequest)
  }

  /// Calls ``requestDidFailToAdaptURLRequestWithError``.
  open func request(
    _ request: Request, didFailToAdaptURLRequest initialRequest: URLRequest, withError error: AFError
  ) {
    requestDidFailToAdaptURLRequestWithError?(request, initialRequest, error)
  }

  /// Calls ``requestDidCreateURLRequest``.
  open func request(_ request: Request, didCreateURLRequest urlRequest: URLRequest) {
    requestDidCreateURLRequest?(request, urlRequest)
  }

  /// Calls ``requestDidCreateTask``.
  open func request(_ request: Request, didCreateTask task: URLSessionTask) {
    requestDidCreateTask?(request, task)
  }

  /// Calls ``requestDidGatherMetrics``.
  open func request(_ request: Request, didGatherMetrics metrics: URLSessionTaskMetrics) {
    requestDidGatherMetrics?(request, metrics)
  }

  /// Calls ``requestDidFailTaskEarlyWithError``.
  open func request(_ request: Request, didFailTask task: URLSessionTask, earlyWithError error: AFError) {
    requestDidFailTaskEarlyWithError?(request, task, error)
  }

  /// Calls ``requestDidCompleteTaskWithError``.
  open func request(_ request: Request, didCompleteTask task: URLSessionTask, with error: AFError?) {
    requestDidCompleteTaskWithError?(request, task, error)
  }

  /// Calls ``requestIsRetrying``.
  open func requestIsRetrying(_ request: Request) {
    requestIsRetrying?(request)
  }

  /// Calls ``requestDidFinish``.
  open func requestDidFinish(_ request: Request) {
    requestDidFinish?(request)
  }

  /// Calls ``requestDidResume``.
  open func requestDidResume(_ request: Request) {
    requestDidResume?(request)
  }

  /// Calls ``requestDidResumeTask``.
  open func request(_ request: Request, didResumeTask task: URLSessionTask) {
    requestDidResumeTask?(request, task)
  }

  /// Calls ``requestDidSuspend``.
  open func requestDidSuspend(_ request: Request) {
    requestDidSuspend?(request)
  }

  /// Calls ``requestDidSuspendTask``.
  open func request(_ request: Request, didSuspendTask task: URLSessionTask) {
    requestDidSuspendTask?(request, task)
  }

  /// Calls ``requestDidCancel``.
  open func requestDidCancel(_ request: Request) {
    requestDidCancel?(request)
  }

  /// Calls ``requestDidCancelTask``.
  open func request(_ request: Request, didCancelTask task: URLSessionTask) {
    requestDidCancelTask?(request, task)
  }

  /// Calls ``requestDidValidateRequestResponseDataWithResult``.
  open func request(
    _ request: DataRequest, didValidateRequest urlRequest: URLRequest?, response: HTTPURLResponse,
    data: Data?, withResult result: Request.ValidationResult
  ) {
    requestDidValidateRequestResponseDataWithResult?(request, urlRequest, response, data, result)
  }

  /// Calls ``requestDidParseResponse``.
  open func request(_ request: DataRequest, didParseResponse response: DataResponse<Data?, AFError>) {
    requestDidParseResponse?(request, response)
  }

  /// Calls ``requestDidCreateUploadable``.
  open func request(_ request: UploadRequest, didCreateUploadable uploadable: UploadRequest.Uploadable) {
    requestDidCreateUploadable?(request, uploadable)
  }

  /// Calls ``requestDidFailToCreateUploadableWithError``.
  open func request(_ request: UploadRequest, didFailToCreateUploadableWithError error: AFError) {
    requestDidFailToCreateUploadableWithError?(request, error)
  }

  /// Calls ``requestDidProvideInputStream``.
  open func request(_ request: UploadRequest, didProvideInputStream stream: InputStream) {
    requestDidProvideInputStream?(request, stream)
  }

  /// Calls ``requestDidFinishDownloadingUsingTaskWithResult``.
  open func request(
    _ request: DownloadRequest, didFinishDownloadingUsing task: URLSessionTask,
    with result: Result<URL, AFError>
  ) {
    requestDidFinishDownloadingUsingTaskWithResult?(request, task, result)
  }

  /// Calls ``requestDidCreateDestinationURL``.
  open func request(_ request: DownloadRequest, didCreateDestinationURL url: URL) {
    requestDidCreateDestinationURL?(request, url)
  }

  /// Calls ``requestDidValidateRequestResponseFileURLWithResult``.
  open func request(
    _ request: DownloadRequest, didValidateRequest urlRequest: URLRequest?, response: HTTPURLResponse,
    fileURL: URL?, withResult result: Request.ValidationResult
  ) {
    requestDidValidateRequestResponseFileURLWithResult?(request, urlRequest, response, fileURL, result)
  }

  /// Calls ``requestDidParseDownloadResponse``.
  open func request(_ request: DownloadRequest, didParseResponse response: DownloadResponse<URL?, AFError>) {
    requestDidParseDownloadResponse?(request, response)
  }

  /// Calls ``requestDidValidateRequestResponseWithResult``.
  open func request(
    _ request: DataStreamRequest, didValidateRequest urlRequest: URLRequest?, response: HTTPURLResponse,
    withResult result: Request.ValidationResult
  ) {
    requestDidValidateRequestResponseWithResult?(request, urlRequest, response, result)
  }
}
