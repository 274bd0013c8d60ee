import Alamofire

#if IMPORTS_FOUNDATION
  import Foundation
#endif
#if IMPORTS_FOUNDATION_NETWORKING
  import FoundationNetworking
#endif

// Monitors, notifications and delegates.

/// A monitor that implements every event.
private final class Logger: EventMonitor {
  let queue = DispatchQueue(label: "logger")

  func urlSession(_ session: URLSession, didBecomeInvalidWithError error: Error?) {}
  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
  ) {}
  func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) {}
  func urlSession(_ session: URLSession, taskNeedsNewBodyStream task: URLSessionTask) {}
  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest
  ) {}
  func urlSession(
    _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics
  ) {}
  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: Error?) {}
  func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {}
  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse) {}
  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {}
  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
  ) {}
  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
    expectedTotalBytes: Int64
  ) {}
  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
    totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
  ) {}
  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
  ) {}

  func request(_ request: Request, didCreateInitialURLRequest urlRequest: URLRequest) {}
  func request(_ request: Request, didFailToCreateURLRequestWithError error: AFError) {}
  func request(
    _ request: Request, didAdaptInitialRequest initialRequest: URLRequest, to adaptedRequest: URLRequest
  ) {}
  func request(
    _ request: Request, didFailToAdaptURLRequest initialRequest: URLRequest, withError error: AFError
  ) {}
  func request(_ request: Request, didCreateURLRequest urlRequest: URLRequest) {}
  func request(_ request: Request, didCreateTask task: URLSessionTask) {}
  func request(_ request: Request, didGatherMetrics metrics: URLSessionTaskMetrics) {}
  func request(_ request: Request, didFailTask task: URLSessionTask, earlyWithError error: AFError) {}
  func request(_ request: Request, didCompleteTask task: URLSessionTask, with error: AFError?) {}
  func requestIsRetrying(_ request: Request) {}
  func requestDidFinish(_ request: Request) {}
  func requestDidResume(_ request: Request) {}
  func request(_ request: Request, didResumeTask task: URLSessionTask) {}
  func requestDidSuspend(_ request: Request) {}
  func request(_ request: Request, didSuspendTask task: URLSessionTask) {}
  func requestDidCancel(_ request: Request) {}
  func request(_ request: Request, didCancelTask task: URLSessionTask) {}

  func request(
    _ request: DataRequest, didValidateRequest urlRequest: URLRequest?, response: HTTPURLResponse,
    data: Data?, withResult result: Request.ValidationResult
  ) {}
  func request(_ request: DataRequest, didParseResponse response: DataResponse<Data?, AFError>) {}
  func request<Value: Sendable>(
    _ request: DataRequest, didParseResponse response: DataResponse<Value, AFError>
  ) {}
  func request(_ request: UploadRequest, didCreateUploadable uploadable: UploadRequest.Uploadable) {}
  func request(_ request: UploadRequest, didFailToCreateUploadableWithError error: AFError) {}
  func request(_ request: UploadRequest, didProvideInputStream stream: InputStream) {}
  func request(
    _ request: DownloadRequest, didFinishDownloadingUsing task: URLSessionTask,
    with result: Result<URL, AFError>
  ) {}
  func request(_ request: DownloadRequest, didCreateDestinationURL url: URL) {}
  func request(
    _ request: DownloadRequest, didValidateRequest urlRequest: URLRequest?, response: HTTPURLResponse,
    fileURL: URL?, withResult result: Request.ValidationResult
  ) {}
  func request(_ request: DownloadRequest, didParseResponse response: DownloadResponse<URL?, AFError>) {}
  func request<Value: Sendable>(
    _ request: DownloadRequest, didParseResponse response: DownloadResponse<Value, AFError>
  ) {}
}

#if swift(<6)
  /// A monitor from before values were `Sendable`.
  private class OldLogger: EventMonitor, @unchecked Sendable {
    var count = 0
    func requestDidFinish(_ request: Request) {
      count += 1
      print(request.description)
    }
    func request<Value>(_ request: DataRequest, didParseResponse response: DataResponse<Value, AFError>) {
      debugPrint(response)
    }
  }
#endif

/// A monitor that implements the end of a request only.
private struct Ending: EventMonitor {
  func requestDidFinish(_ request: Request) { print(request) }
}

private func monitors() {
  _ = Session(eventMonitors: [Logger(), Ending(), AlamofireNotifications()])
  print(Ending().queue)
  AF.request("http://localhost").eventMonitor(Logger()).response { _ in }
}

private func sessionClosures(_ monitor: ClosureEventMonitor) {
  monitor.sessionDidBecomeInvalidWithError = { _, _ in }
  monitor.taskDidReceiveChallenge = { _, _, _ in }
  monitor.taskDidSendBodyData = { _, _, _, _, _ in }
  monitor.taskNeedNewBodyStream = { _, _ in }
  monitor.taskWillPerformHTTPRedirection = { _, _, _, _ in }
  monitor.taskDidFinishCollectingMetrics = { _, _, metrics in print(metrics.taskInterval) }
  monitor.taskDidComplete = { _, _, error in print(error as Any) }
  monitor.taskIsWaitingForConnectivity = { _, _ in }
  monitor.dataTaskDidReceiveResponse = { _, _, response in print(response) }
  monitor.dataTaskDidReceiveData = { _, _, data in print(data) }
  monitor.dataTaskWillCacheResponse = { _, _, _ in }
  monitor.downloadTaskDidFinishDownloadingToURL = { _, _, url in print(url) }
  monitor.downloadTaskDidWriteData = { _, _, _, _, _ in }
  monitor.downloadTaskDidResumeAtOffset = { _, _, _, _ in }
}

private func requestClosures(_ monitor: ClosureEventMonitor) {
  monitor.requestDidCreateInitialURLRequest = { _, _ in }
  monitor.requestDidFailToCreateURLRequestWithError = { _, _ in }
  monitor.requestDidAdaptInitialRequestToAdaptedRequest = { _, _, _ in }
  monitor.requestDidFailToAdaptURLRequestWithError = { _, _, _ in }
  monitor.requestDidCreateURLRequest = { request, urlRequest in print(request, urlRequest) }
  monitor.requestDidCreateTask = { _, _ in }
  monitor.requestDidGatherMetrics = { _, metrics in print(metrics.redirectCount) }
  monitor.requestDidFailTaskEarlyWithError = { _, _, _ in }
  monitor.requestDidCompleteTaskWithError = { _, _, _ in }
  monitor.requestIsRetrying = { _ in }
  monitor.requestDidFinish = { print($0) }
  monitor.requestDidResume = { _ in }
  monitor.requestDidResumeTask = { _, _ in }
  monitor.requestDidSuspend = { _ in }
  monitor.requestDidSuspendTask = { _, _ in }
  monitor.requestDidCancel = { _ in }
  monitor.requestDidCancelTask = { _, _ in }
  monitor.requestDidValidateRequestResponseDataWithResult = { _, _, _, _, _ in }
  monitor.requestDidParseResponse = { _, response in print(response) }
  monitor.requestDidCreateUploadable = { _, _ in }
  monitor.requestDidFailToCreateUploadableWithError = { _, _ in }
  monitor.requestDidProvideInputStream = { _, _ in }
  monitor.requestDidFinishDownloadingUsingTaskWithResult = { _, _, _ in }
  monitor.requestDidCreateDestinationURL = { _, _ in }
  monitor.requestDidValidateRequestResponseFileURLWithResult = { _, _, _, _, _ in }
  monitor.requestDidParseDownloadResponse = { _, response in print(response) }
  _ = ClosureEventMonitor(queue: .global())
}

private final class LoudMonitor: ClosureEventMonitor, @unchecked Sendable {
  override func requestDidFinish(_ request: Request) {
    super.requestDidFinish(request)
    print(request)
  }
}

private func subclass() {
  _ = LoudMonitor(queue: .main)
  _ = LoudMonitor()
}

private func notifications() {
  let names: [Notification.Name] = [
    Request.didResumeNotification, Request.didSuspendNotification, Request.didCancelNotification,
    Request.didFinishNotification, Request.didResumeTaskNotification, Request.didSuspendTaskNotification,
    Request.didCancelTaskNotification, Request.didCompleteTaskNotification,
  ]
  for name in names {
    _ = NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) { notification in
      let request: Request? = notification.request
      print(request as Any)
    }
  }
}
