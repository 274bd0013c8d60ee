import Alamofire
public import Foundation

/// A request that sends a body from memory, from a file or from a stream; its response is handled as that of a
/// ``DataRequest``.
open class UploadRequest: DataRequest, @unchecked Sendable {
  // Unchecked, as ``Request`` is.

  /// How much of the body has been sent. Its total is −1 when the length is not known.
  open var uploadProgress: Progress { core.uploadProgress }

  /// Calls `closure` on `queue` (default: main) as the body is sent. The last closure given takes the place of
  /// earlier ones.
  @discardableResult
  open func uploadProgress(
    queue: DispatchQueue = DispatchQueue.main, closure: @escaping ProgressHandler
  ) -> Self {
    let relay = ProgressRelay(.up, queue, closure)
    core.uploadProgress(queue: queue) { relay.report($0) }
    bridge.add(relay, of: self)
    return self
  }
}
