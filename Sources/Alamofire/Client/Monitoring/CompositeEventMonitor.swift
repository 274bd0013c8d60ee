public import Foundation
public import FoundationNetworking

/// Passes every event to a list of monitors, each on its own queue. A ``Session`` makes one of its monitors.
public final class CompositeEventMonitor: EventMonitor {
  /// The queue that the protocol requires. It is not used, because each monitor has its own queue.
  public let queue = DispatchQueue(label: "org.alamofire.compositeEventMonitor")
  /// The monitors, in the order in which they are called.
  public let monitors: [any EventMonitor]

  /// Whether there are monitors other than notifications on demand.
  let seesMore: Bool
  /// The monitors that may use the chunks of bodies. The queues of the others would keep them for a while.
  private let chunkMonitors: [any EventMonitor]
  var hearsBodies: Bool { !chunkMonitors.isEmpty }
  /// Whether a monitor observes the bytes of requests on their connections.
  let observesWire: Bool

  init(monitors: [any EventMonitor]) {
    self.monitors = monitors
    chunkMonitors = monitors.filter { !($0 is any ChunklessMonitor) }
    observesWire = monitors.contains { $0 is any WireMonitor }
    seesMore = monitors.contains { !(($0 as? AlamofireNotifications)?.isOnDemand ?? false) }
  }

  /// Whether a monitor uses events at present. Read before an event is created.
  var isActive: Bool { seesMore || (!monitors.isEmpty && NotificationDemand.exists) }

  /// Calls `event` with each monitor; an event with a chunk only with those that may use it.
  func perform(ofChunk: Bool = false, _ event: @escaping @Sendable (any EventMonitor) -> Void) {
    for monitor in ofChunk ? chunkMonitors : monitors {
      monitor.queue.async { event(monitor) }
    }
  }
}

// Each event goes to each monitor, on that monitor's queue.
extension CompositeEventMonitor {
  /// Called when the session accepts no more requests. `error` is `nil` if the program ended the session.
  public func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
    perform { $0.urlSession(session, didBecomeInvalidWithError: error) }
  }

  /// Called when a server or a proxy sends a challenge.
  public func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
  ) {
    perform { $0.urlSession(session, task: task, didReceive: challenge) }
  }

  /// Called when bytes of the request's body have been sent. A total of −1 is unknown.
  public func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) {
    perform {
      $0.urlSession(
        session, task: task, didSendBodyData: bytesSent, totalBytesSent: totalBytesSent,
        totalBytesExpectedToSend: totalBytesExpectedToSend)
    }
  }

  /// Called when a body that is a stream has to be sent again.
  public func urlSession(_ session: URLSession, taskNeedsNewBodyStream task: URLSessionTask) {
    perform { $0.urlSession(session, taskNeedsNewBodyStream: task) }
  }

  /// Called when a response redirects to `request`, unless a ``RedirectHandler`` decides otherwise.
  public func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest
  ) {
    perform { $0.urlSession(session, task: task, willPerformHTTPRedirection: response, newRequest: request) }
  }

  /// Called when the metrics of an attempt are complete.
  public func urlSession(
    _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics
  ) {
    perform { $0.urlSession(session, task: task, didFinishCollecting: metrics) }
  }

  /// Called when an attempt has ended. `error` is `nil` if a response was received, whatever its status.
  public func urlSession(
    _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
  ) {
    perform { $0.urlSession(session, task: task, didCompleteWithError: error) }
  }

  /// Called once when an attempt waits for a network because of `waitsForConnectivity`.
  public func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {
    perform { $0.urlSession(session, taskIsWaitingForConnectivity: task) }
  }

  /// Called when the head of a response was received.
  public func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
  ) {
    perform { $0.urlSession(session, dataTask: dataTask, didReceive: response) }
  }

  /// Called when a chunk of the body of a response was received.
  public func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    perform(ofChunk: true) { $0.urlSession(session, dataTask: dataTask, didReceive: data) }
  }

  /// Called when a response may be stored, unless a ``CachedResponseHandler`` decides otherwise.
  public func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
  ) {
    perform { $0.urlSession(session, dataTask: dataTask, willCacheResponse: proposedResponse) }
  }

  /// Called when a download continues at `fileOffset`, in bytes. A total of −1 is unknown.
  public func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
    expectedTotalBytes: Int64
  ) {
    perform {
      $0.urlSession(
        session, downloadTask: downloadTask, didResumeAtOffset: fileOffset,
        expectedTotalBytes: expectedTotalBytes)
    }
  }

  /// Called when bytes of a download were received. A total of −1 is unknown.
  public func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
    totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
  ) {
    perform {
      $0.urlSession(
        session, downloadTask: downloadTask, didWriteData: bytesWritten, totalBytesWritten: totalBytesWritten,
        totalBytesExpectedToWrite: totalBytesExpectedToWrite)
    }
  }

  /// Called when a download is complete, in a temporary file.
  public func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
  ) {
    perform { $0.urlSession(session, downloadTask: downloadTask, didFinishDownloadingTo: location) }
  }

  /// Called when the request has been created, before any adapter.
  public func request(_ request: Request, didCreateInitialURLRequest urlRequest: URLRequest) {
    perform { $0.request(request, didCreateInitialURLRequest: urlRequest) }
  }

  /// Called when the request could not be created.
  public func request(_ request: Request, didFailToCreateURLRequestWithError error: AFError) {
    perform { $0.request(request, didFailToCreateURLRequestWithError: error) }
  }

  /// Called when the adapters have changed the request.
  public func request(
    _ request: Request, didAdaptInitialRequest initialRequest: URLRequest, to adaptedRequest: URLRequest
  ) {
    perform { $0.request(request, didAdaptInitialRequest: initialRequest, to: adaptedRequest) }
  }

  /// Called when an adapter has failed, or has returned a request that cannot be sent.
  public func request(
    _ request: Request, didFailToAdaptURLRequest initialRequest: URLRequest, withError error: AFError
  ) {
    perform { $0.request(request, didFailToAdaptURLRequest: initialRequest, withError: error) }
  }

  /// Called when the request is complete and will be sent.
  public func request(_ request: Request, didCreateURLRequest urlRequest: URLRequest) {
    perform { $0.request(request, didCreateURLRequest: urlRequest) }
  }

  /// Called when an attempt begins.
  public func request(_ request: Request, didCreateTask task: URLSessionTask) {
    perform { $0.request(request, didCreateTask: task) }
  }

  /// Called when the metrics of an attempt are complete.
  public func request(_ request: Request, didGatherMetrics metrics: URLSessionTaskMetrics) {
    perform { $0.request(request, didGatherMetrics: metrics) }
  }

  /// Called when an attempt has failed before the end of its task, because a server is not trusted.
  public func request(_ request: Request, didFailTask task: URLSessionTask, earlyWithError error: AFError) {
    perform { $0.request(request, didFailTask: task, earlyWithError: error) }
  }

  /// Called when an attempt has ended, and its validators have run.
  public func request(_ request: Request, didCompleteTask task: URLSessionTask, with error: AFError?) {
    perform { $0.request(request, didCompleteTask: task, with: error) }
  }

  /// Called when another attempt of the request begins.
  public func requestIsRetrying(_ request: Request) {
    perform { $0.requestIsRetrying(request) }
  }

  /// Called when the request has ended, before its response handlers are called.
  public func requestDidFinish(_ request: Request) {
    perform { $0.requestDidFinish(request) }
  }

  /// Called when the request was resumed.
  public func requestDidResume(_ request: Request) {
    perform { $0.requestDidResume(request) }
  }

  /// Called when the task of an attempt runs.
  public func request(_ request: Request, didResumeTask task: URLSessionTask) {
    perform { $0.request(request, didResumeTask: task) }
  }

  /// Called when the request was suspended.
  public func requestDidSuspend(_ request: Request) {
    perform { $0.requestDidSuspend(request) }
  }

  /// Called when the task of an attempt was suspended.
  public func request(_ request: Request, didSuspendTask task: URLSessionTask) {
    perform { $0.request(request, didSuspendTask: task) }
  }

  /// Called when the request was cancelled.
  public func requestDidCancel(_ request: Request) {
    perform { $0.requestDidCancel(request) }
  }

  /// Called when the task of an attempt was cancelled.
  public func request(_ request: Request, didCancelTask task: URLSessionTask) {
    perform { $0.request(request, didCancelTask: task) }
  }

  /// Called when a validator has evaluated a response.
  public func request(
    _ request: DataRequest, didValidateRequest urlRequest: URLRequest?, response: HTTPURLResponse,
    data: Data?, withResult result: Request.ValidationResult
  ) {
    perform {
      $0.request(request, didValidateRequest: urlRequest, response: response, data: data, withResult: result)
    }
  }

  /// Called before a handler without serializer is called.
  public func request(_ request: DataRequest, didParseResponse response: DataResponse<Data?, AFError>) {
    perform { $0.request(request, didParseResponse: response) }
  }

  /// Called when a serializer has produced its value or failed.
  public func request<Value: Sendable>(
    _ request: DataRequest, didParseResponse response: DataResponse<Value, AFError>
  ) {
    perform { $0.request(request, didParseResponse: response) }
  }

  /// Called when the body of an upload has been created.
  public func request(_ request: UploadRequest, didCreateUploadable uploadable: UploadRequest.Uploadable) {
    perform { $0.request(request, didCreateUploadable: uploadable) }
  }

  /// Called when the body of an upload could not be created.
  public func request(_ request: UploadRequest, didFailToCreateUploadableWithError error: AFError) {
    perform { $0.request(request, didFailToCreateUploadableWithError: error) }
  }

  /// Called before a stream is sent as the body of an upload. Do not read the stream, because it belongs to the upload.
  public func request(_ request: UploadRequest, didProvideInputStream stream: InputStream) {
    // Shown, not handed over: only the upload reads it.
    nonisolated(unsafe) let stream = stream
    perform { $0.request(request, didProvideInputStream: stream) }
  }

  /// Called when the file of a download was moved to its destination, or could not be moved.
  public func request(
    _ request: DownloadRequest, didFinishDownloadingUsing task: URLSessionTask,
    with result: Result<URL, AFError>
  ) {
    perform { $0.request(request, didFinishDownloadingUsing: task, with: result) }
  }

  /// Called when the destination of a download is known.
  public func request(_ request: DownloadRequest, didCreateDestinationURL url: URL) {
    perform { $0.request(request, didCreateDestinationURL: url) }
  }

  /// Called when a validator has evaluated a download.
  public func request(
    _ request: DownloadRequest, didValidateRequest urlRequest: URLRequest?, response: HTTPURLResponse,
    fileURL: URL?, withResult result: Request.ValidationResult
  ) {
    perform {
      $0.request(
        request, didValidateRequest: urlRequest, response: response, fileURL: fileURL, withResult: result)
    }
  }

  /// Called before a handler without serializer is called.
  public func request(_ request: DownloadRequest, didParseResponse response: DownloadResponse<URL?, AFError>)
  {
    perform { $0.request(request, didParseResponse: response) }
  }

  /// Called when the serializer of a download has produced its value or failed.
  public func request<Value: Sendable>(
    _ request: DownloadRequest, didParseResponse response: DownloadResponse<Value, AFError>
  ) {
    perform { $0.request(request, didParseResponse: response) }
  }

  /// Called when a validator has evaluated the response of a stream.
  public func request(
    _ request: DataStreamRequest, didValidateRequest urlRequest: URLRequest?, response: HTTPURLResponse,
    withResult result: Request.ValidationResult
  ) {
    perform {
      $0.request(request, didValidateRequest: urlRequest, response: response, withResult: result)
    }
  }

  /// Called when the serializer of a stream has produced a value or failed.
  public func request<Value: Sendable>(
    _ request: DataStreamRequest, didParseStream result: Result<Value, AFError>
  ) {
    perform { $0.request(request, didParseStream: result) }
  }
}
