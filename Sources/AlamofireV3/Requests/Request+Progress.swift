import Alamofire
public import Foundation
import FoundationNetworking
import Synchronization

extension Request {
  /// Calls `closure` as bytes move: for an upload those that are sent, for any other request those that come. Not on
  /// the main queue. Several closures are all called. Does nothing for a stream of bytes.
  ///
  /// - Parameter closure: Given the bytes of this piece, those so far, and the total; −1 when it is not known.
  @discardableResult
  public func progress(_ closure: ((Int64, Int64, Int64) -> Void)? = nil) -> Self {
    guard let closure, let core else { return self }
    core.eventMonitor(
      ByteWatch(queue: afterwards.queue, isUpload: core is UploadRequest, moved: Boxed(closure), came: nil))
    return self
  }

  /// Calls `closure` with the pieces of the body as they come, away from the main queue. Handlers then get no data.
  /// Not for downloads.
  @discardableResult
  public func stream(_ closure: ((Data) -> Void)? = nil) -> Self {
    guard let closure, let core, !(core is DownloadRequest) else { return self }
    record.withLock { $0.isStreamed = true }
    core.eventMonitor(
      ByteWatch(queue: afterwards.queue, isUpload: false, moved: nil, came: Boxed(closure)))
    return self
  }
}

/// Tells closures of a request what moves.
private final class ByteWatch: EventMonitor {
  let queue: DispatchQueue
  private let isUpload: Bool
  private let moved: Boxed<(Int64, Int64, Int64) -> Void>?
  private let came: Boxed<(Data) -> Void>?
  private let received = Atomic<Int64>(0)

  init(
    queue: DispatchQueue, isUpload: Bool, moved: Boxed<(Int64, Int64, Int64) -> Void>?,
    came: Boxed<(Data) -> Void>?
  ) {
    self.queue = queue
    self.isUpload = isUpload
    self.moved = moved
    self.came = came
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) {
    if isUpload { moved?.value(bytesSent, totalBytesSent, totalBytesExpectedToSend) }
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    came?.value(data)
    guard !isUpload, let moved else { return }
    let count = Int64(data.count)
    let total = received.wrappingAdd(count, ordering: .relaxed).newValue
    let length = (dataTask.response as? HTTPURLResponse)?.bodyLength ?? -1
    moved.value(count, total, length)
  }

  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
    totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
  ) {
    moved?.value(bytesWritten, totalBytesWritten, totalBytesExpectedToWrite)
  }
}

extension HTTPURLResponse {
  /// The length of the body as it reaches the user; `nil` when it was encoded, or nobody has said.
  fileprivate var bodyLength: Int64? {
    guard value(forHTTPHeaderField: "Content-Encoding") == nil else { return nil }
    return value(forHTTPHeaderField: "Content-Length").flatMap { Int64($0) }
  }
}
