public import Foundation
public import FoundationNetworking

// Every method of a monitor is optional.
extension EventMonitor {
  /// The main queue.
  public var queue: DispatchQueue { .main }

  /// Does nothing.
  public func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {}
  /// Does nothing.
  public func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
  ) {}
  /// Does nothing.
  public func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) {}
  /// Does nothing.
  public func urlSession(_ session: URLSession, taskNeedsNewBodyStream task: URLSessionTask) {}
  /// Does nothing.
  public func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest
  ) {}
  /// Does nothing.
  public func urlSession(
    _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics
  ) {}
  /// Does nothing.
  public func urlSession(
    _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
  ) {}
  /// Does nothing.
  public func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {}
  /// Does nothing.
  public func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
  ) {}
  /// Does nothing.
  public func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {}
  /// Does nothing.
  public func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
  ) {}
  /// Does nothing.
  public func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
    expectedTotalBytes: Int64
  ) {}
  /// Does nothing.
  public func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
    totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
  ) {}
  /// Does nothing.
  public func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
  ) {}
  /// Does nothing.
  public func request(_ request: Request, didCreateInitialURLRequest urlRequest: URLRequest) {}
  /// Does nothing.
  public func request(_ request: Request, didFailToCreateURLRequestWithError error: AFError) {}
  /// Does nothing.
  public func request(
    _ request: Request, didAdaptInitialRequest initialRequest: URLRequest, to adaptedRequest: URLRequest
  ) {}
  /// Does nothing.
  public func request(
    _ request: Request, didFailToAdaptURLRequest initialRequest: URLRequest, withError error: AFError
  ) {}
  /// Does nothing.
  public func request(_ request: Request, didCreateURLRequest urlRequest: URLRequest) {}
  /// Does nothing.
  public func request(_ request: Request, didCreateTask task: URLSessionTask) {}
  /// Does nothing.
  public func request(_ request: Request, didGatherMetrics metrics: URLSessionTaskMetrics) {}
  /// Does nothing.
  public func request(_ request: Request, didFailTask task: URLSessionTask, earlyWithError error: AFError) {}
  /// Does nothing.
  public func request(_ request: Request, didCompleteTask task: URLSessionTask, with error: AFError?) {}
  /// Does nothing.
  public func requestIsRetrying(_ request: Request) {}
  /// Does nothing.
  public func requestDidFinish(_ request: Request) {}
  /// Does nothing.
  public func requestDidResume(_ request: Request) {}
  /// Does nothing.
  public func request(_ request: Request, didResumeTask task: URLSessionTask) {}
  /// Does nothing.
  public func requestDidSuspend(_ request: Request) {}
  /// Does nothing.
  public func request(_ request: Request, didSuspendTask task: URLSessionTask) {}
  /// Does nothing.
  public func requestDidCancel(_ request: Request) {}
  /// Does nothing.
  public func request(_ request: Request, didCancelTask task: URLSessionTask) {}
  /// Does nothing.
  public func request(
    _ request: DataRequest, didValidateRequest urlRequest: URLRequest?, response: HTTPURLResponse,
    data: Data?, withResult result: Request.ValidationResult
  ) {}
  /// Does nothing.
  public func request(_ request: DataRequest, didParseResponse response: DataResponse<Data?, AFError>) {}
  /// Does nothing.
  public func request<Value: Sendable>(
    _ request: DataRequest, didParseResponse response: DataResponse<Value, AFError>
  ) {}
  /// Does nothing.
  public func request(_ request: UploadRequest, didCreateUploadable uploadable: UploadRequest.Uploadable) {}
  /// Does nothing.
  public func request(_ request: UploadRequest, didFailToCreateUploadableWithError error: AFError) {}
  /// Does nothing.
  public func request(_ request: UploadRequest, didProvideInputStream stream: InputStream) {}
  /// Does nothing.
  public func request(
    _ request: DownloadRequest, didFinishDownloadingUsing task: URLSessionTask,
    with result: Result<URL, AFError>
  ) {}
  /// Does nothing.
  public func request(_ request: DownloadRequest, didCreateDestinationURL url: URL) {}
  /// Does nothing.
  public func request(
    _ request: DownloadRequest, didValidateRequest urlRequest: URLRequest?, response: HTTPURLResponse,
    fileURL: URL?, withResult result: Request.ValidationResult
  ) {}
  /// Does nothing.
  public func request(_ request: DownloadRequest, didParseResponse response: DownloadResponse<URL?, AFError>)
  {}
  /// Does nothing.
  public func request<Value: Sendable>(
    _ request: DownloadRequest, didParseResponse response: DownloadResponse<Value, AFError>
  ) {}
  /// Does nothing.
  public func request(
    _ request: DataStreamRequest, didValidateRequest urlRequest: URLRequest?, response: HTTPURLResponse,
    withResult result: Request.ValidationResult
  ) {}
  /// Does nothing.
  public func request<Value: Sendable>(
    _ request: DataStreamRequest, didParseStream result: Result<Value, AFError>
  ) {}
}
