import Alamofire
import Foundation
import FoundationNetworking

/// A monitor that records its events by the names of their methods.
final class EventSpy: EventMonitor {
  let queue = DispatchQueue(label: "spy")
  let events = Recorder<String>()

  /// The recorded events, after all dispatched events are delivered.
  var reported: [String] {
    queue.sync {}
    return events.values
  }

  private func note(_ event: String) { events.add(event) }

  func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
    note("didBecomeInvalid")
  }
  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
  ) {
    note("didReceive challenge")
  }
  func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) { note("didSendBodyData \(totalBytesSent)") }
  func urlSession(_ session: URLSession, taskNeedsNewBodyStream task: URLSessionTask) {
    note("taskNeedsNewBodyStream")
  }
  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest
  ) { note("willPerformHTTPRedirection \(response.statusCode) \(request.url?.absoluteString ?? "")") }
  func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: TaskMetrics) {
    note("didFinishCollecting")
  }
  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    note("didCompleteWithError \(error.map { "\(type(of: $0))" } ?? "nil")")
  }
  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse) {
    note("didReceive response \((response as? HTTPURLResponse)?.statusCode ?? 0)")
  }
  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    note("didReceive data \(data.count)")
  }
  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
  ) { note("willCacheResponse \(proposedResponse.data.count)") }
  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
    expectedTotalBytes: Int64
  ) { note("didResumeAtOffset \(fileOffset) \(expectedTotalBytes)") }
  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
    totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
  ) { note("didWriteData \(bytesWritten) \(totalBytesWritten) \(totalBytesExpectedToWrite)") }
  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
  ) { note("didFinishDownloadingTo") }

  func request(_ request: Request, didCreateInitialURLRequest urlRequest: URLRequest) {
    note("didCreateInitialURLRequest")
  }
  func request(_ request: Request, didFailToCreateURLRequestWithError error: AFError) {
    note("didFailToCreateURLRequest")
  }
  func request(_ request: Request, didAdaptInitialRequest initialRequest: URLRequest, to adapted: URLRequest)
  {
    note("didAdaptInitialRequest")
  }
  func request(
    _ request: Request, didFailToAdaptURLRequest initialRequest: URLRequest, withError error: AFError
  ) {
    note("didFailToAdaptURLRequest")
  }
  func request(_ request: Request, didCreateURLRequest urlRequest: URLRequest) { note("didCreateURLRequest") }
  func request(_ request: Request, didCreateTask task: URLSessionTask) { note("didCreateTask") }
  func request(_ request: Request, didGatherMetrics metrics: TaskMetrics) { note("didGatherMetrics") }
  func request(_ request: Request, didCompleteTask task: URLSessionTask, with error: AFError?) {
    note("didCompleteTask \(error == nil ? "nil" : "error")")
  }
  func requestIsRetrying(_ request: Request) { note("requestIsRetrying") }
  func requestDidFinish(_ request: Request) { note("requestDidFinish") }
  func requestDidResume(_ request: Request) { note("requestDidResume") }
  func request(_ request: Request, didResumeTask task: URLSessionTask) { note("didResumeTask") }
  func requestDidSuspend(_ request: Request) { note("requestDidSuspend") }
  func request(_ request: Request, didSuspendTask task: URLSessionTask) { note("didSuspendTask") }
  func requestDidCancel(_ request: Request) { note("requestDidCancel") }
  func request(_ request: Request, didCancelTask task: URLSessionTask) { note("didCancelTask") }

  func request(
    _ request: DataRequest, didValidateRequest urlRequest: URLRequest?, response: HTTPURLResponse,
    data: Data?,
    withResult result: Request.ValidationResult
  ) { note("didValidateRequest \(Self.word(result))") }
  func request(_ request: DataRequest, didParseResponse response: DataResponse<Data?, AFError>) {
    note("didParseResponse Data?")
  }
  func request<Value: Sendable>(
    _ request: DataRequest, didParseResponse response: DataResponse<Value, AFError>
  ) {
    note("didParseResponse \(Value.self)")
  }
  func request(_ request: UploadRequest, didCreateUploadable uploadable: UploadRequest.Uploadable) {
    note("didCreateUploadable")
  }
  func request(_ request: UploadRequest, didFailToCreateUploadableWithError error: AFError) {
    note("didFailToCreateUploadable")
  }
  func request(_ request: UploadRequest, didProvideInputStream stream: InputStream) {
    note("didProvideInputStream")
  }
  func request(
    _ request: DownloadRequest, didFinishDownloadingUsing task: URLSessionTask,
    with result: Result<URL, AFError>
  ) { note("didFinishDownloadingUsing \(Self.word(result))") }
  func request(_ request: DownloadRequest, didCreateDestinationURL url: URL) {
    note("didCreateDestinationURL")
  }
  func request(
    _ request: DownloadRequest, didValidateRequest urlRequest: URLRequest?, response: HTTPURLResponse,
    fileURL: URL?, withResult result: Request.ValidationResult
  ) { note("didValidateDownload \(Self.word(result))") }
  func request(_ request: DownloadRequest, didParseResponse response: DownloadResponse<URL?, AFError>) {
    note("didParseResponse URL?")
  }
  func request<Value: Sendable>(
    _ request: DownloadRequest, didParseResponse response: DownloadResponse<Value, AFError>
  ) { note("didParseResponse \(Value.self)") }

  private static func word<Value, Failure>(_ result: Result<Value, Failure>) -> String {
    if case .success = result { return "success" }
    return "failure"
  }
}
