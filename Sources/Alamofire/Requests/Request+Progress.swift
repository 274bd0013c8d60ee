public import Foundation
import HTTPWire
import Synchronization

extension Request {
  /// How much of the body of the request has been sent. Its total is −1 when the length is not known.
  /// A retry brings a new object.
  public var uploadProgress: Progress { core.progress { $0.uploadProgress() } }

  /// How much of the body of the response has come. Its total is −1 when the length is not known, as
  /// for a chunked or an encoded body. A retry brings a new object.
  public var downloadProgress: Progress { core.progress { $0.downloadProgress() } }

  /// What was last given to ``uploadProgress(queue:closure:)``.
  public var uploadProgressHandler: (handler: ProgressHandler, queue: DispatchQueue)? {
    core.state.withLock { $0.extras.progress.uploadHandler }.map { ($0.closure, $0.queue) }
  }

  /// What was last given to ``downloadProgress(queue:closure:)``.
  public var downloadProgressHandler: (handler: ProgressHandler, queue: DispatchQueue)? {
    core.state.withLock { $0.extras.progress.downloadHandler }.map { ($0.closure, $0.queue) }
  }

  /// Calls `closure` on `queue` (default: main) as the body of the request is sent. The last closure
  /// given takes the place of earlier ones.
  @preconcurrency
  @discardableResult
  public func uploadProgress(queue: DispatchQueue = .main, closure: @escaping ProgressHandler) -> Self {
    core.watchProgress { $0.uploadHandler = (queue, closure) }
    return self
  }

  /// Calls `closure` on `queue` (default: main) as the body of the response comes. The last closure
  /// given takes the place of earlier ones.
  @preconcurrency
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
    let handler: Handler?
    let streams: [AsyncStream<Progress>.Continuation]
    let progress: Progress

    func deliver() {
      if let handler { handler.queue.async { handler.closure(progress) } }
      for stream in streams { stream.yield(progress) }
    }
  }

  private var upload: Progress?
  private var download: Progress?
  var uploadHandler: Handler? { didSet { told.sent = 0 } }
  var downloadHandler: Handler? { didSet { told.received = 0 } }
  /// The counts of which the handlers were told last.
  private var told = (sent: Int64(0), received: Int64(0))
  private var last = ByteCount()
  /// How far the attempt has come, as far as anybody counted.
  var count: ByteCount { last }
  /// Whether the response that comes is a redirect or a challenge, whose body nobody asked for.
  var isIntermediate = false

  /// The object for the request's body, made when it is first asked for.
  mutating func uploadProgress() -> Progress {
    if let upload { return upload }
    let progress = Progress.ofBody(completed: last.sent, total: last.expectedToSend)
    upload = progress
    return progress
  }

  /// The object for the response's body, made when it is first asked for.
  mutating func downloadProgress() -> Progress {
    if let download { return download }
    let progress = Progress.ofBody(completed: last.received, total: last.expectedToReceive)
    download = progress
    return progress
  }

  /// For who asks when nobody has counted: what the response itself tells.
  mutating func ended(_ exchange: Exchange, received: Int64, after offset: Int64) {
    guard last == ByteCount() else { return }
    last.sent = exchange.hops.last?.metrics.values.requestBodyBytes ?? 0
    last.expectedToSend = last.sent
    last.received = offset + received
    guard let block = exchange.head?.block, !block.contains("Content-Encoding") else { return }
    let length = block.value(of: "Content-Length").flatMap { Int64($0) }
    let sum = length?.addingReportingOverflow(offset)
    last.expectedToReceive = sum.flatMap { $0.overflow ? nil : $0.partialValue } ?? -1
  }

  /// All bytes have moved: returns the calls of handlers that were not told of the last ones, because they were added
  /// later.
  mutating func completed() -> [Notice] {
    var notices: [Notice] = []
    if last.sent > 0 {
      uploadProgress().set(completed: last.sent, total: last.expectedToSend)
      if let uploadHandler, told.sent != last.sent {
        told.sent = last.sent
        notices.append(Notice(handler: uploadHandler, streams: [], progress: uploadProgress()))
      }
    }
    if last.received > 0, !isIntermediate {
      downloadProgress().set(completed: last.received, total: last.expectedToReceive)
      if let downloadHandler, told.received != last.received {
        told.received = last.received
        notices.append(Notice(handler: downloadHandler, streams: [], progress: downloadProgress()))
      }
    }
    return notices
  }

  mutating func moved(_ count: ByteCount, _ listeners: RequestListeners?) -> [Notice] {
    var notices: [Notice] = []
    if count.sent != last.sent || count.expectedToSend != last.expectedToSend {
      let progress = uploadProgress()
      progress.set(completed: count.sent, total: count.expectedToSend)
      if count.sent > 0, uploadHandler != nil || listeners != nil {
        told.sent = uploadHandler == nil ? 0 : count.sent
        notices.append(Notice(handler: uploadHandler, streams: listeners?.uploads ?? [], progress: progress))
      }
    }
    if !isIntermediate, count.received != last.received {
      let progress = downloadProgress()
      progress.set(completed: count.received, total: count.expectedToReceive)
      if downloadHandler != nil || listeners != nil {
        told.received = downloadHandler == nil ? 0 : count.received
        notices.append(
          Notice(handler: downloadHandler, streams: listeners?.downloads ?? [], progress: progress))
      }
    }
    last = count
    if isIntermediate { last.received = 0 }
    return notices
  }

  /// New objects: setting the total of a used one back to zero is a trap in Foundation.
  mutating func reset() {
    upload = nil
    download = nil
    last = ByteCount()
    told = (0, 0)
    isIntermediate = false
  }
}

extension Progress {
  fileprivate static func ofBody(completed: Int64, total: Int64) -> Progress {
    let progress = Progress(totalUnitCount: 0)
    if completed > 0 { progress.set(completed: completed, total: total) }
    return progress
  }

  /// Sets both counts, and never the total to zero.
  fileprivate func set(completed: Int64, total: Int64) {
    if total != 0, total != totalUnitCount { totalUnitCount = total }
    completedUnitCount = completed
  }
}

extension RequestCore {
  /// The object for one direction. From now on it is kept up to date.
  func progress(_ direction: (inout ProgressReport) -> Progress) -> Progress {
    add(.progress)
    return countedProgress(direction)
  }

  /// Calls the handlers that have not heard of the last bytes of a request that has ended well.
  func completeProgress() {
    guard error == nil else { return }
    for notice in countedProgress({ $0.completed() }) { notice.deliver() }
  }

  /// What `body` makes of the report, once it knows what the response tells.
  private func countedProgress<Value: Sendable>(_ body: (inout ProgressReport) -> Value) -> Value {
    let passed = pieces?.passedCount ?? 0
    let offset = download?.offset ?? 0
    let isKept = download == nil && stream == nil
    return state.withLock { state in
      if let exchange = state.exchange {
        let metrics = exchange.hops.last?.metrics.values
        let received = isKept ? passed + Int64(state.data?.count ?? 0) : metrics?.decodedBodyBytes ?? 0
        state.extras.progress.ended(exchange, received: received, after: offset)
      }
      return body(&state.extras.progress)
    }
  }

  func watchProgress(_ change: (inout ProgressReport) -> Void) {
    state.withLock { change(&$0.extras.progress) }
    add(.progress)
  }
}
