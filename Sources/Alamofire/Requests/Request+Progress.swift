public import Foundation
import HTTPWire
import Synchronization

extension Request {
  /// How much of the body of the request has been sent. Its total is −1 when the length is not known.
  /// A retry brings a new object.
  public var uploadProgress: Progress { core.progress(\.upload) }

  /// How much of the body of the response has come. Its total is −1 when the length is not known, as
  /// for a chunked or an encoded body. A retry brings a new object.
  public var downloadProgress: Progress { core.progress(\.download) }

  /// Calls `closure` on `queue` (default: main) as the body of the request is sent. The last closure
  /// given takes the place of earlier ones.
  @discardableResult
  public func uploadProgress(queue: DispatchQueue = .main, closure: @escaping ProgressHandler) -> Self {
    core.watchProgress { $0.uploadHandler = (queue, closure) }
    return self
  }

  /// Calls `closure` on `queue` (default: main) as the body of the response comes. The last closure
  /// given takes the place of earlier ones.
  @discardableResult
  public func downloadProgress(queue: DispatchQueue = .main, closure: @escaping ProgressHandler) -> Self {
    core.watchProgress { $0.downloadHandler = (queue, closure) }
    return self
  }
}

/// How far the bodies of a request have come, as `Progress` objects that are made when somebody asks.
struct ProgressReport: Sendable {
  typealias Handler = (queue: DispatchQueue, closure: Request.ProgressHandler)

  /// One call of a handler, made outside the lock.
  struct Notice: Sendable {
    let handler: Handler
    let progress: Progress

    func deliver() {
      handler.queue.async { handler.closure(progress) }
    }
  }

  private(set) var upload = Progress.ofBody()
  private(set) var download = Progress.ofBody()
  var uploadHandler: Handler?
  var downloadHandler: Handler?
  private var last = ByteCount()

  mutating func moved(_ count: ByteCount) -> [Notice] {
    var notices: [Notice] = []
    if count.sent != last.sent || count.expectedToSend != last.expectedToSend {
      upload.set(completed: count.sent, total: count.expectedToSend)
      if let uploadHandler, count.sent > 0 { notices.append(Notice(handler: uploadHandler, progress: upload)) }
    }
    if count.received != last.received {
      download.set(completed: count.received, total: count.expectedToReceive)
      if let downloadHandler { notices.append(Notice(handler: downloadHandler, progress: download)) }
    }
    last = count
    return notices
  }

  /// New objects: setting the total of a used one back to zero is a trap in Foundation.
  mutating func reset() {
    upload = Progress.ofBody()
    download = Progress.ofBody()
    last = ByteCount()
  }
}

extension Progress {
  fileprivate static func ofBody() -> Progress { Progress(totalUnitCount: 0) }

  /// Sets both counts, and never the total to zero.
  fileprivate func set(completed: Int64, total: Int64) {
    if total != 0, total != totalUnitCount { totalUnitCount = total }
    completedUnitCount = completed
  }
}

extension RequestCore {
  /// The object for one direction. From now on it is kept up to date.
  func progress(_ direction: KeyPath<ProgressReport, Progress> & Sendable) -> Progress {
    isProgressWanted.store(true, ordering: .relaxed)
    return state.withLock { $0.progress[keyPath: direction] }
  }

  func watchProgress(_ change: (inout ProgressReport) -> Void) {
    state.withLock { change(&$0.progress) }
    isProgressWanted.store(true, ordering: .relaxed)
  }
}
