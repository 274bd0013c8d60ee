public import Foundation

extension Request {
  /// The progress of the request body. Its total is −1 if the length is unknown. Each retry has a new object.
  public var uploadProgress: Progress { core.progress { $0.uploadProgress() } }

  /// The progress of the response body. Its total is −1 if the length is unknown, as for a chunked or an encoded
  /// body. Each retry has a new object.
  public var downloadProgress: Progress { core.progress { $0.downloadProgress() } }

  /// The closure and the queue last set by ``uploadProgress(queue:closure:)``.
  public var uploadProgressHandler: (handler: ProgressHandler, queue: DispatchQueue)? {
    core.state.withLock { $0.observed.added.value.progress.uploadHandler }.map { ($0.closure, $0.queue) }
  }

  /// The closure and the queue last set by ``downloadProgress(queue:closure:)``.
  public var downloadProgressHandler: (handler: ProgressHandler, queue: DispatchQueue)? {
    core.state.withLock { $0.observed.added.value.progress.downloadHandler }.map { ($0.closure, $0.queue) }
  }

  /// Calls `closure` on `queue` (default: main) while the request body is sent. The last closure set is used.
  @preconcurrency
  @discardableResult
  public func uploadProgress(queue: DispatchQueue = .main, closure: @escaping ProgressHandler) -> Self {
    core.watchProgress { replace(&$0.uploadHandler, with: (queue, closure)) }
    return self
  }

  /// Calls `closure` on `queue` (default: main) while the response body is received. The last closure set is used.
  @preconcurrency
  @discardableResult
  public func downloadProgress(queue: DispatchQueue = .main, closure: @escaping ProgressHandler) -> Self {
    core.watchProgress { replace(&$0.downloadHandler, with: (queue, closure)) }
    return self
  }
}
