import Alamofire

#if IMPORTS_FOUNDATION
  import Foundation
#endif
#if IMPORTS_FOUNDATION_NETWORKING
  import FoundationNetworking
#endif

// A delegate that overrides every method.

private final class Delegate: SessionDelegate, @unchecked Sendable {
  override func urlSession(_ session: URLSession, didBecomeInvalidWithError error: Error?) {
    super.urlSession(session, didBecomeInvalidWithError: error)
  }

  override func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    super.urlSession(session, task: task, didReceive: challenge, completionHandler: completionHandler)
  }

  override func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) {
    super.urlSession(
      session, task: task, didSendBodyData: bytesSent, totalBytesSent: totalBytesSent,
      totalBytesExpectedToSend: totalBytesExpectedToSend)
  }

  override func urlSession(
    _ session: URLSession, task: URLSessionTask,
    needNewBodyStream completionHandler: @escaping (InputStream?) -> Void
  ) {
    super.urlSession(session, task: task, needNewBodyStream: completionHandler)
  }

  override func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
  ) {
    super.urlSession(
      session, task: task, willPerformHTTPRedirection: response, newRequest: request,
      completionHandler: completionHandler)
  }

  override func urlSession(
    _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics
  ) {
    super.urlSession(session, task: task, didFinishCollecting: metrics)
  }

  override func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: Error?) {
    super.urlSession(session, task: task, didCompleteWithError: error)
  }

  override func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {
    super.urlSession(session, taskIsWaitingForConnectivity: task)
  }

  override func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
  ) {
    super.urlSession(session, dataTask: dataTask, didReceive: response, completionHandler: completionHandler)
  }

  override func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    super.urlSession(session, dataTask: dataTask, didReceive: data)
  }

  override func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask,
    willCacheResponse proposedResponse: CachedURLResponse,
    completionHandler: @escaping (CachedURLResponse?) -> Void
  ) {
    super.urlSession(
      session, dataTask: dataTask, willCacheResponse: proposedResponse, completionHandler: completionHandler)
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
}

private func delegates() {
  _ = Session(delegate: Delegate())
  _ = Session(delegate: Delegate(fileManager: .default))
  let delegate: URLSessionDownloadDelegate = SessionDelegate()
  print(delegate)
}
