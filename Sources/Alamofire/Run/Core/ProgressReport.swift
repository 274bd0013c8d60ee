import Foundation
import HTTPWire
import Synchronization

/// The progress of the bodies of a request. `Progress` objects are made when a caller gets them.
struct ProgressReport: Sendable {
  typealias Handler = (queue: DispatchQueue, closure: @Sendable (Progress) -> Void)
  fileprivate typealias Counts = (completed: Int64, total: Int64)

  /// The counts for an object that a caller has or is about to get. They are set outside the lock of the request.
  struct Change: Sendable {
    fileprivate let object: SharedProgress
    /// The number of the counts; later ones have a higher number.
    fileprivate let number: Int
    /// `nil` if the object is not to be changed.
    fileprivate let counts: Counts?

    /// Returns the object. It has these counts, or later ones if another thread was faster.
    func applied() -> Progress { object.apply(self) }
  }

  /// A change, and the handler and the sequences that receive the object, if there are any.
  struct Notice: Sendable {
    let change: Change
    let handler: Handler?
    let streams: [AsyncStream<Progress>.Continuation]

    fileprivate func deliver(_ progress: Progress) {
      if let handler { handler.queue.async { handler.closure(progress) } }
      for stream in streams { stream.yield(progress) }
    }
  }

  private var upload: SharedProgress?
  private var download: SharedProgress?
  var uploadHandler: Handler? { didSet { told.sent = 0 } }
  var downloadHandler: Handler? { didSet { told.received = 0 } }
  /// The counts with which the handlers were last called.
  private var told = (sent: Int64(0), received: Int64(0))
  private var last = ByteCount() { didSet { number += 1 } }
  /// The number of the last counts.
  private var number = 0
  /// The counts of the current attempt.
  var count: ByteCount { last }
  /// Whether the current response is a followed redirect or an answered challenge, whose body is not counted.
  var isIntermediate = false

  private var sent: Counts { (last.sent, last.expectedToSend) }
  private var received: Counts { (last.received, last.expectedToReceive) }

  /// Returns the object for the request body, with the last counts.
  mutating func uploadProgress() -> Change {
    let (counts, number) = (last.sent > 0 || last.expectedToSend > 0 ? sent : nil, number)
    return Self.change(of: &upload, to: counts, number)
  }

  /// Returns the object for the response body, with the last counts. It has no total before the first byte.
  mutating func downloadProgress() -> Change {
    let (counts, number) = (last.received > 0 ? received : nil, number)
    return Self.change(of: &download, to: counts, number)
  }

  private static func change(of object: inout SharedProgress?, to counts: Counts?, _ number: Int) -> Change {
    let shared = object ?? SharedProgress()
    object = shared
    return Change(object: shared, number: number, counts: counts)
  }

  /// Takes the counts from the response, if the transfer was not observed.
  ///
  /// - Parameter uploaded: The number of uploaded bytes, if they are more than the last request's.
  mutating func ended(_ exchange: Exchange, uploaded: Int64?, received: Int64, after offset: Int64) {
    guard last == ByteCount() else { return }
    last.sent = uploaded ?? exchange.sentBodyBytes
    last.expectedToSend = last.sent
    last.received = offset + received
    let sum = exchange.announcedLength?.addingReportingOverflow(offset)
    last.expectedToReceive = sum.flatMap { $0.overflow ? nil : $0.partialValue } ?? -1
  }

  /// Returns the changes at the end, with the calls for handlers that were added after the last bytes.
  mutating func completed() -> [Notice] {
    var notices: [Notice] = []
    if last.sent > 0 {
      let handler = told.sent == last.sent ? nil : uploadHandler
      if handler != nil { told.sent = last.sent }
      noteUpload(in: &notices, handler, [])
    }
    if last.received > 0, !isIntermediate {
      let handler = told.received == last.received ? nil : downloadHandler
      if handler != nil { told.received = last.received }
      noteDownload(in: &notices, handler, [])
    }
    return notices
  }

  /// Takes the counts of a transfer. Returns the changes, with the calls for handlers and sequences.
  mutating func moved(_ count: ByteCount, _ listeners: RequestListeners?) -> [Notice] {
    let before = last
    var count = count
    // A request without a body, such as the one after a redirect to a page, does not change what was sent.
    if before.sent > 0, count.sent == 0, count.expectedToSend == 0 {
      (count.sent, count.expectedToSend) = (before.sent, before.expectedToSend)
    }
    last = count
    if isIntermediate { last.received = 0 }
    var notices: [Notice] = []
    if count.sent != before.sent || count.expectedToSend != before.expectedToSend {
      // The length alone is no news.
      let isNews = count.sent > 0
      if isNews, uploadHandler != nil { told.sent = count.sent }
      noteUpload(in: &notices, isNews ? uploadHandler : nil, isNews ? listeners?.uploads : nil)
    }
    if !isIntermediate, count.received != before.received {
      if downloadHandler != nil { told.received = count.received }
      noteDownload(in: &notices, downloadHandler, listeners?.downloads)
    }
    return notices
  }

  /// Adds the change of an object, unless no caller has it and nothing receives it.
  private mutating func noteUpload(
    in notices: inout [Notice], _ handler: Handler?, _ streams: [AsyncStream<Progress>.Continuation]?
  ) {
    let streams = streams ?? []
    guard upload != nil || handler != nil || !streams.isEmpty else { return }
    let (counts, number) = (sent, number)
    let change = Self.change(of: &upload, to: counts, number)
    notices.append(Notice(change: change, handler: handler, streams: streams))
  }

  /// Adds the change of an object, unless no caller has it and nothing receives it.
  private mutating func noteDownload(
    in notices: inout [Notice], _ handler: Handler?, _ streams: [AsyncStream<Progress>.Continuation]?
  ) {
    let streams = streams ?? []
    guard download != nil || handler != nil || !streams.isEmpty else { return }
    let (counts, number) = (received, number)
    let change = Self.change(of: &download, to: counts, number)
    notices.append(Notice(change: change, handler: handler, streams: streams))
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

extension [ProgressReport.Notice] {
  /// Changes the objects, and then calls the handlers and the sequences. Not called under the lock of a request.
  func deliver() {
    let objects = map { $0.change.applied() }
    for (notice, object) in zip(self, objects) { notice.deliver(object) }
  }
}

/// A `Progress` object that callers get, made on first access.
///
/// Foundation's `Progress` has no lock on Linux, and a change of an object changes its parents, too. A caller can
/// combine the objects of several requests and sessions in one tree. So one lock of the process guards all of them.
final class SharedProgress: Sendable {
  /// Guards the objects of all requests, for attempts, loops and callers. The library locks nothing else under it.
  /// Recursive, because Foundation may release a parent under it, whose `deinit` may ask for a progress.
  private static let lock = NSRecursiveLock()
  /// Read and replaced under the lock alone.
  nonisolated(unsafe) private var object: Progress?
  /// The number of the counts that the object has, read and changed under the lock alone.
  nonisolated(unsafe) private var number = 0

  /// Makes the changes of `change`, unless later ones were made. Returns the object.
  fileprivate func apply(_ change: ProgressReport.Change) -> Progress {
    Self.lock.withLock {
      let progress = object ?? Progress(totalUnitCount: 0)
      object = progress
      guard let counts = change.counts, change.number > number else { return progress }
      number = change.number
      // Never zero, see `ProgressReport.reset()`.
      if counts.total != 0, counts.total != progress.totalUnitCount { progress.totalUnitCount = counts.total }
      progress.completedUnitCount = counts.completed
      return progress
    }
  }
}

extension RequestCore {
  /// Returns the object for one direction, and keeps it up to date from now on.
  func progress(_ direction: (inout ProgressReport) -> ProgressReport.Change) -> Progress {
    add(.progress)
    return countedProgress(direction).applied()
  }

  /// Calls the handlers that were not called with the last bytes, if the request succeeded.
  func completeProgress() {
    guard error == nil else { return }
    countedProgress { $0.completed() }.deliver()
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
