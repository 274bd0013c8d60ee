import Alamofire

#if IMPORTS_FOUNDATION
  import Foundation
#endif
#if IMPORTS_FOUNDATION_NETWORKING
  import FoundationNetworking
#endif

/// A monitor that overrides every method.
private final class FullMonitor: ClosureEventMonitor, @unchecked Sendable {
  override func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
    super.urlSession(session, didBecomeInvalidWithError: error)
  }

  override func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
  ) {
    super.urlSession(session, task: task, didReceive: challenge)
  }

  override func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) {
    super.urlSession(
      session, task: task, didSendBodyData: bytesSent, totalBytesSent: totalBytesSent,
      totalBytesExpectedToSend: totalBytesExpectedToSend)
  }

  override func urlSession(_ session: URLSession, taskNeedsNewBodyStream task: URLSessionTask) {
    super.urlSession(session, taskNeedsNewBodyStream: task)
  }

  override func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest
  ) {
    super.urlSession(session, task: task, willPerformHTTPRedirection: response, newRequest: request)
  }

  override func urlSession(
    _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics
  ) {
    super.urlSession(session, task: task, didFinishCollecting: metrics)
  }

  override func urlSession(
    _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
  ) {
    super.urlSession(session, task: task, didCompleteWithError: error)
  }

  override func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
  ) {
    super.urlSession(session, dataTask: dataTask, didReceive: response)
  }

  override func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {
    super.urlSession(session, taskIsWaitingForConnectivity: task)
  }

  override func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    super.urlSession(session, dataTask: dataTask, didReceive: data)
  }

  override func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
  ) {
    super.urlSession(session, dataTask: dataTask, willCacheResponse: proposedResponse)
  }

  override func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
    expectedTotalBytes: Int64
  ) {
    super.urlSession(
      session, downloadTask: downloadTask, didResumeAtOffset: fileOffset,
      expectedTotalBytes: expectedTotalBytes)
  }

  override func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
    totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
  ) {
    super.urlSession(
      session, downloadTask: downloadTask, didWriteData: bytesWritten, totalBytesWritten: totalBytesWritten,
      totalBytesExpectedToWrite: totalBytesExpectedToWrite)
  }

  override func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
  ) {
    super.urlSession(session, downloadTask: downloadTask, didFinishDownloadingTo: location)
  }

  override func request(_ request: Request, didCreateInitialURLRequest urlRequest: URLRequest) {
    super.request(request, didCreateInitialURLRequest: urlRequest)
  }

  override func request(_ request: Request, didFailToCreateURLRequestWithError error: AFError) {
    super.request(request, didFailToCreateURLRequestWithError: error)
  }

  override func request(
    _ request: Request, didAdaptInitialRequest initialRequest: URLRequest, to adaptedRequest: URLRequest
  ) {
    super.request(request, didAdaptInitialRequest: initialRequest, to: adaptedRequest)
  }

  override func request(
    _ request: Request, didFailToAdaptURLRequest initialRequest: URLRequest, withError error: AFError
  ) {
    super.request(request, didFailToAdaptURLRequest: initialRequest, withError: error)
  }

  override func request(_ request: Request, didCreateURLRequest urlRequest: URLRequest) {
    super.request(request, didCreateURLRequest: urlRequest)
  }

  override func request(_ request: Request, didCreateTask task: URLSessionTask) {
    super.request(request, didCreateTask: task)
  }

  override func request(_ request: Request, didGatherMetrics metrics: URLSessionTaskMetrics) {
    super.request(request, didGatherMetrics: metrics)
  }

  override func request(_ request: Request, didFailTask task: URLSessionTask, earlyWithError error: AFError) {
    super.request(request, didFailTask: task, earlyWithError: error)
  }

  override func request(_ request: Request, didCompleteTask task: URLSessionTask, with error: AFError?) {
    super.request(request, didCompleteTask: task, with: error)
  }

  override func requestIsRetrying(_ request: Request) {
    super.requestIsRetrying(request)
  }

  override func requestDidFinish(_ request: Request) {
    super.requestDidFinish(request)
  }

  override func requestDidResume(_ request: Request) {
    super.requestDidResume(request)
  }

  override func request(_ request: Request, didResumeTask task: URLSessionTask) {
    super.request(request, didResumeTask: task)
  }

  override func requestDidSuspend(_ request: Request) {
    super.requestDidSuspend(request)
  }

  override func request(_ request: Request, didSuspendTask task: URLSessionTask) {
    super.request(request, didSuspendTask: task)
  }

  override func requestDidCancel(_ request: Request) {
    super.requestDidCancel(request)
  }

  override func request(_ request: Request, didCancelTask task: URLSessionTask) {
    super.request(request, didCancelTask: task)
  }

  override func request(
    _ request: DataRequest, didValidateRequest urlRequest: URLRequest?, response: HTTPURLResponse,
    data: Data?, withResult result: Request.ValidationResult
  ) {
    super.request(request, didValidateRequest: urlRequest, response: response, data: data, withResult: result)
  }

  override func request(_ request: DataRequest, didParseResponse response: DataResponse<Data?, AFError>) {
    super.request(request, didParseResponse: response)
  }

  override func request(_ request: UploadRequest, didCreateUploadable uploadable: UploadRequest.Uploadable) {
    super.request(request, didCreateUploadable: uploadable)
  }

  override func request(_ request: UploadRequest, didFailToCreateUploadableWithError error: AFError) {
    super.request(request, didFailToCreateUploadableWithError: error)
  }

  override func request(_ request: UploadRequest, didProvideInputStream stream: InputStream) {
    super.request(request, didProvideInputStream: stream)
  }

  override func request(
    _ request: DownloadRequest, didFinishDownloadingUsing task: URLSessionTask,
    with result: Result<URL, AFError>
  ) {
    super.request(request, didFinishDownloadingUsing: task, with: result)
  }

  override func request(_ request: DownloadRequest, didCreateDestinationURL url: URL) {
    super.request(request, didCreateDestinationURL: url)
  }

  override func request(
    _ request: DownloadRequest, didValidateRequest urlRequest: URLRequest?, response: HTTPURLResponse,
    fileURL: URL?, withResult result: Request.ValidationResult
  ) {
    super.request(
      request, didValidateRequest: urlRequest, response: response, fileURL: fileURL, withResult: result)
  }

  override func request(
    _ request: DownloadRequest, didParseResponse response: DownloadResponse<URL?, AFError>
  ) {
    super.request(request, didParseResponse: response)
  }

  override func request(
    _ request: DataStreamRequest, didValidateRequest urlRequest: URLRequest?, response: HTTPURLResponse,
    withResult result: Request.ValidationResult
  ) {
    super.request(request, didValidateRequest: urlRequest, response: response, withResult: result)
  }
}

private func monitors() {
  _ = FullMonitor(queue: .global())
}
