import Foundation
import HTTPWire
import Synchronization

/// The progress of the bodies of a request, as `Progress` objects that are created on first access.
struct ProgressReport: Sendable {
  typealias Handler = (queue: DispatchQueue, closure: @Sendable (Progress) -> Void)

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
  /// The counts with which the handlers were last called.
  private var told = (sent: Int64(0), received: Int64(0))
  private var last = ByteCount()
  /// The counts of the current attempt.
  var count: ByteCount { last }
  /// Whether the current response is a followed redirect or an answered challenge, whose body is not counted.
  var isIntermediate = false

  /// Returns the object for the request body; makes it on first access.
  mutating func uploadProgress() -> Progress {
    if let upload { return upload }
    let progress = Progress.ofBody(completed: last.sent, total: last.expectedToSend)
    upload = progress
    return progress
  }

  /// Returns the object for the response body; makes it on first access.
  mutating func downloadProgress() -> Progress {
    if let download { return download }
    let progress = Progress.ofBody(completed: last.received, total: last.expectedToReceive)
    download = progress
    return progress
  }

  /// Takes the counts from the response, if the transfer was not observed.
  ///
  /// - Parameter uploaded: The number of uploaded bytes, if they are more than the last request's.
  mutating func ended(_ exchange: Exchange, uploaded: Int64?, received: Int64, after offset: Int64) {
    guard last == ByteCount() else { return }
    last.sent = uploaded ?? exchange.transfer?.requestBodyBytes ?? 0
    last.expectedToSend = last.sent
    last.received = offset + received
    let sum = exchange.announcedLength?.addingReportingOverflow(offset)
    last.expectedToReceive = sum.flatMap { $0.overflow ? nil : $0.partialValue } ?? -1
  }

  /// Returns the calls for handlers that were added after the last bytes.
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

  /// Resets all counts. The objects are created again, because Foundation traps if the total of a used one is set back
  /// to zero.
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
  /// Returns the object for one direction, and keeps it up to date from now on.
  func progress(_ direction: (inout ProgressReport) -> Progress) -> Progress {
    add(.progress)
    return countedProgress(direction)
  }

  /// Calls the handlers that were not called with the last bytes, if the request succeeded.
  func completeProgress() {
    guard error == nil else { return }
    for notice in countedProgress({ $0.completed() }) { notice.deliver() }
  }

  /// Applies `body` to the report, after adding the counts of the response.
  private func countedProgress<Value: Sendable>(_ body: (inout ProgressReport) -> Value) -> Value {
    let passed = chunks?.passedCount ?? 0
    let count = state.withLock { $0.results.exchange }.map { kind.count(after: $0) }
    return state.withLock { state in
      if let count, let exchange = state.results.exchange {
        let kept = passed + Int64(state.results.data?.count ?? 0)
        state.observed.added.value.progress.ended(
          exchange, uploaded: count.uploaded, received: count.received ?? kept, after: count.offset)
      }
      return body(&state.observed.added.value.progress)
    }
  }

  /// Changes the report. The handler that `change` returns, because it was replaced, is released outside the lock.
  func watchProgress(_ change: (inout ProgressReport) -> ProgressReport.Handler?) {
    _ = state.withLock { change(&$0.observed.added.value.progress) }
    add(.progress)
  }
}
