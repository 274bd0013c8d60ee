import Alamofire
public import Foundation
public import FoundationNetworking
import Synchronization

extension Request {
  /// Calls `closure` for sent bytes of an upload, and for received bytes of other requests. All added closures are
  /// called, on the queue of the manager's delegate, one at a time with its closures. It has no effect for a stream
  /// of bytes.
  ///
  /// - Parameter closure: Called with the bytes of this chunk, the bytes so far, and the total; −1 if it is unknown.
  @discardableResult
  public func progress(_ closure: ((Int64, Int64, Int64) -> Void)? = nil) -> Self {
    guard let closure, let core else { return self }
    core.transferMonitor(
      ByteWatch(queue: core.underlyingQueue, isUpload: core is UploadRequest, moved: Boxed(closure)))
    return self
  }

  /// Calls `closure` with the chunks of the body, on the queue of the manager's delegate. The body is not stored:
  /// handlers get no data. The server waits for a slow closure. Validators and handlers run after the last chunk.
  /// Chunks received before the closure was added are delivered together; several closures each get the chunks from the
  /// moment they are added. It has no effect for downloads and streams of bytes.
  @discardableResult
  public func stream(_ closure: ((Data) -> Void)? = nil) -> Self {
    guard let closure, let core = core as? DataRequest else { return self }
    let boxed = Boxed(closure)
    record.withLock { record in
      record.isStreamed = true
      // A validator may be running.
      record.hasStreamedBytes = record.data?.isEmpty == false
      record.data = nil
    }
    completionQueue.close()
    core.responseChunks(on: core.underlyingQueue) { [weak self] chunk in
      if !chunk.isEmpty { self?.record.withLock { $0.hasStreamedBytes = true } }
      boxed.value(chunk)
    }
    .response(queue: core.underlyingQueue) { [completionQueue] _ in completionQueue.open() }
    return self
  }
}

/// Calls closures of a request for moved bytes.
private final class ByteWatch: EventMonitor {
  let queue: DispatchQueue
  private let isUpload: Bool
  private let moved: Boxed<(Int64, Int64, Int64) -> Void>
  /// The number of received bytes.
  private let received = Atomic<Int64>(0)

  init(queue: DispatchQueue, isUpload: Bool, moved: Boxed<(Int64, Int64, Int64) -> Void>) {
    self.queue = queue
    self.isUpload = isUpload
    self.moved = moved
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) {
    if isUpload { moved.value(bytesSent, totalBytesSent, totalBytesExpectedToSend) }
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    guard !isUpload else { return }
    let count = Int64(data.count)
    let total = received.wrappingAdd(count, ordering: .relaxed).newValue
    let length = (dataTask.response as? HTTPURLResponse)?.bodyLength ?? -1
    moved.value(count, total, length)
  }

  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
    totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
  ) {
    moved.value(bytesWritten, totalBytesWritten, totalBytesExpectedToWrite)
  }
}

extension HTTPURLResponse {
  /// The length of the decoded body; `nil` if it was encoded, or if the response has no `Content-Length`.
  fileprivate var bodyLength: Int64? {
    guard value(forHTTPHeaderField: "Content-Encoding") == nil else { return nil }
    return value(forHTTPHeaderField: "Content-Length").flatMap { Int64($0) }
  }
}

extension Request {
  /// Returns the destination of a downloaded file, for the temporary file and the response. Not called on the main
  /// queue. An existing file or a missing folder is an error: no file is replaced, and no folder created.
  public typealias DownloadFileDestination = (URL, HTTPURLResponse) -> URL

  /// Makes a destination in a folder of the system, under the name that the response suggests. A missing folder is
  /// created.
  ///
  /// - Parameters:
  ///   - directory: The kind of folder. Default: documents.
  ///   - domain: The domain of the folder. Default: the home folder of the user.
  public static func suggestedDownloadDestination(
    directory: FileManager.SearchPathDirectory = .documentDirectory,
    domain: FileManager.SearchPathDomainMask = .userDomainMask
  ) -> DownloadFileDestination {
    let destination = DownloadRequest.suggestedDownloadDestination(for: directory, in: domain)
    return { destination($0, $1).destinationURL }
  }
}
