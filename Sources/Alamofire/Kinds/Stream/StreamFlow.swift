import Foundation
import HTTPWire
import Synchronization

/// The body of a stream request. It is delivered to all readers, each at its own speed. Bytes that all readers have
/// had are released, and the server waits while one of them is a mebibyte behind.
///
/// It is written on the engine's thread and read on the threads of the readers. It calls only the wake closure of the
/// transport and ``StreamReader/wake()``, both outside of its lock.
package final class StreamFlow: BodySink {
  private struct State {
    var log = ChunkLog(overhead: 64)
    var readers: [Int: any StreamReader] = [:]
    /// The queues of the readers that call handlers, in their order.
    var queues: [(queue: DispatchQueue, reader: Int)] = []
    /// Resumes the transport; `nil` between transfers.
    var wake: (@Sendable () -> Void)?
    /// Called with all bytes as they arrive, whatever is read.
    var watcher: (@Sendable (Data) -> Void)?
    /// Continues the run that waits for the readers.
    var waiter: (@Sendable () -> Void)?
    /// Whether the request was cancelled, so that its end waits for no iterator.
    var readersLeave = false

    func woken(by written: ChunkLog.Written) -> (pauses: Bool, woken: [any StreamReader]) {
      (written.pauses, written.readers.compactMap { readers[$0] })
    }

    /// Returns the writer, the run and the readers that can continue after bytes were read or dropped.
    mutating func awaited(wakesWriter: Bool, _ followers: [Int] = []) -> Awaited {
      var awaited = Awaited(writer: wakesWriter ? wake : nil)
      if !followers.isEmpty { awaited.followers = followers.compactMap { readers[$0] } }
      guard waiter != nil, !log.isBusy else { return awaited }
      defer { waiter = nil }
      awaited.run = waiter
      return awaited
    }
  }

  private struct Awaited {
    var writer: (@Sendable () -> Void)?
    var run: (@Sendable () -> Void)?
    /// Readers that may continue.
    var followers: [any StreamReader] = []

    func proceed() {
      writer?()
      run?()
      for follower in followers { follower.wake() }
    }
  }

  /// Runs tasks after the current turn of the engine; `nil` for an engine without a thread.
  private let executor: (any TaskExecutor)?
  /// Reads the events of the body, which readers get in place of its bytes; `nil` if the body is no event stream.
  let eventSource: EventSource?
  /// The unread chunks, the readers and what waits, for the loop, attempts and readers.
  private let state = Mutex(State())

  init(executor: (any TaskExecutor)?, eventSource: EventSource? = nil) {
    self.executor = executor
    self.eventSource = eventSource
  }

  // MARK: The body

  package func begin(_ head: ResponseHead, wake: @escaping @Sendable () -> Void) -> TransportFailure? {
    eventSource?.begin(head)
    write(.begin, wake: wake)
    return nil
  }

  package func room() -> Int {
    let room = state.withLock { $0.log.roomForWriter() }
    // Nothing is known of the size of events.
    return eventSource == nil ? room : min(room, BodyPiece.size)
  }

  package func receive(_ bytes: UnsafeRawBufferPointer) -> BodyReception {
    guard !bytes.isEmpty else { return .more }
    guard let eventSource else { return write(bytes) { $0.write(bytes) } }
    let (events, failure) = eventSource.read(bytes)
    let reception = write(bytes) { $0.write(events) }
    return failure.map { .failure($0) } ?? reception
  }

  /// Writes bytes, or what was read from them, with one copy for all readers.
  private func write(
    _ bytes: UnsafeRawBufferPointer, _ write: (inout ChunkLog) -> ChunkLog.Written
  ) -> BodyReception {
    let (pauses, woken, watcher) = state.withLock { state in
      let written = state.woken(by: write(&state.log))
      return (written.pauses, written.woken, state.watcher)
    }
    if let watcher { watcher(Data(bytes)) }
    if !woken.isEmpty { wake(woken) }
    return pauses ? .pause : .more
  }

  /// Wakes readers after the current turn of the engine, because one read of a socket gives many small chunks. Woken
  /// at once, the readers would find only the first one and sleep again.
  private func wake(_ readers: [any StreamReader]) {
    guard let executor else {
      for reader in readers { reader.wake() }
      return
    }
    Task(executorPreference: executor) { for reader in readers { reader.wake() } }
  }

  /// Begins a transfer whose bytes follow; `wake` is called when there is room again.
  func open(wake: @escaping @Sendable () -> Void) { state.withLock { $0.wake = wake } }

  /// Marks the beginning of another response, which replaces the earlier one.
  func restart() { write(.begin, wake: nil) }

  package func finish() -> TransportFailure? {
    state.withLock { state in
      state.wake = nil
      state.log.writerLeft()
    }
    return nil
  }

  /// Marks the end of the response.
  func complete() { write(.end, wake: nil) }

  private func write(_ entry: ChunkLog.Entry, wake: (@Sendable () -> Void)?) {
    let woken = state.withLock { state in
      state.wake = wake
      return state.woken(by: state.log.write(entry)).woken
    }
    for reader in woken { reader.wake() }
  }

  /// The number of bytes held for readers; for tests.
  package var heldBytes: Int { state.withLock { $0.log.heldBytes } }

  /// Whether the server has to wait; for tests.
  package var isFull: Bool { state.withLock { $0.log.writerWaits } }

  /// Sets a closure that is called with all bytes on the engine's thread; it does not slow down the server.
  func watch(_ watcher: @escaping @Sendable (Data) -> Void) {
    state.withLock { $0.watcher = watcher }
  }

  // MARK: Readers

  /// Adds the reader that `make` returns for its number.
  ///
  /// - Parameters:
  ///   - queue: The queue on which the reader calls its handler; readers of one serial queue keep their order.
  ///   - highMark: The minimum number of bytes that the reader may be behind.
  func add<Reader: StreamReader>(
    _ kind: ChunkLog.Kind, holdsBack: Bool, on queue: DispatchQueue? = nil, highMark: Int = 0,
    _ make: (Int) -> Reader
  ) -> Reader {
    state.withLock { state in
      state.log.highMark = max(state.log.highMark, highMark)
      let predecessor = queue.flatMap { queue in
        state.queues.last { $0.queue.hasOrder(of: queue) && state.log.hasReader($0.reader) }?.reader
      }
      let id = state.log.addReader(kind, holdsBack: holdsBack, after: predecessor)
      if let queue { state.queues.append((queue, id)) }
      let reader = make(id)
      state.readers[id] = reader
      return reader
    }
  }

  func read(
    _ id: Int, atMost limit: Int = 64
  ) -> (entries: [ChunkLog.Entry], isLast: Bool, isOrdered: Bool) {
    let (reading, awaited) = state.withLock { state in
      let reading = state.log.read(id, atMost: limit)
      if reading.isLast { state.readers[id] = nil }
      return (reading, state.awaited(wakesWriter: reading.wakesWriter, reading.followers))
    }
    awaited.proceed()
    return (reading.entries, reading.isLast, reading.isOrdered)
  }

  /// Called when an ordered reader has delivered all that it read; the next one of its queue may continue.
  func handedOut(_ id: Int) {
    state.withLock { state in
      let followers = state.log.handedOut(id)
      return state.awaited(wakesWriter: false, followers)
    }.proceed()
  }

  /// Called when an iterator is made: from now on the server and the end of the request wait for that reader.
  func beginPulling(_ id: Int) {
    state.withLock { $0.log.begin(id) }
  }

  /// Stops delivery to a reader, except for the end.
  func mute(_ id: Int) {
    state.withLock { state in
      let (wakesWriter, followers) = state.log.mute(id)
      return state.awaited(wakesWriter: wakesWriter, followers)
    }.proceed()
  }

  /// Stops delivery to all readers, except for the end.
  func muteAll() {
    for id in state.withLock({ Array($0.readers.keys) }) { mute(id) }
  }

  func isMuted(_ id: Int) -> Bool { state.withLock { $0.log.isMuted(id) } }

  /// Called when no more bytes will come for the reader.
  func end(_ id: Int) {
    let reader = state.withLock { state in state.log.finish(id) ? state.readers[id] : nil }
    reader?.wake()
  }

  func remove(_ id: Int) {
    let (reader, awaited) = state.withLock { state in
      let reader = state.readers.removeValue(forKey: id)
      let (wakesWriter, followers) = state.log.removeReader(id)
      return (reader, state.awaited(wakesWriter: wakesWriter, followers))
    }
    awaited.proceed()
    // Released outside the lock: this may be the last reference.
    _ = reader
  }

  // MARK: The end

  /// Calls `proceed` once all handlers have had everything, and all iterators ask for more. Returns false, and never
  /// calls `proceed`, if that is so already.
  func settled(_ proceed: @escaping @Sendable () -> Void) -> Bool {
    state.withLock { state in
      if state.readersLeave { state.log.endWithoutPulling() }
      guard state.log.isBusy else { return false }
      state.waiter = proceed
      return true
    }
  }

  /// Notes that the request was cancelled: its end does not wait for iterators.
  func readersLeave() {
    state.withLock { state in
      state.readersLeave = true
      if state.waiter != nil { state.log.endWithoutPulling() }
      return state.awaited(wakesWriter: false)
    }.proceed()
  }

  /// Waits as ``settled(_:)`` does. If the task is cancelled, it does not wait for iterators.
  func settled() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        if !settled({ continuation.resume() }) { continuation.resume() }
      }
    } onCancel: {
      readersLeave()
    }
  }
}

/// A reader of a ``StreamFlow``.
protocol StreamReader: AnyObject, Sendable {
  /// Called when there is something to read, on any thread, including the engine's. It must return at once.
  func wake()
}

extension DispatchQueue {
  /// Whether both are the same serial queue, so that their calls have an order. The system's queues are concurrent.
  fileprivate func hasOrder(of other: DispatchQueue) -> Bool {
    // Foundation makes a new object for the main queue and the global ones at each access.
    if label.hasPrefix("com.apple.root.") { return false }
    return self === other || (label == Self.mainLabel && other.label == Self.mainLabel)
  }

  private static let mainLabel = DispatchQueue.main.label
}

/// A handler of a stream request. It takes all available chunks, decodes them on the serialization queue, calls the
/// handler on its queue, and then takes more.
final class StreamMailbox<Success: Sendable, Failure: Error>: StreamSink {
  typealias Outcome = Result<Success, Failure>

  private struct State {
    /// `nil` while chunks are decoded.
    var decoding: StreamDecoding<Success, Failure>?
    /// Retains the request for the last event, because its other owners may have released it.
    var request: DataStreamRequest?
  }

  let flow: StreamFlow
  let id: Int
  let runEnd = RunEnd()
  /// Weak, because the request holds this object.
  private weak let request: DataStreamRequest?
  private let decodingQueue: DispatchQueue?
  private let queue: DispatchQueue
  private let handler: DataStreamRequest.Handler<Success, Failure>
  /// The state of the decoding for the handler, for its queues. Values are decoded outside the lock.
  private let state: Mutex<State>

  init(
    _ request: DataStreamRequest, id: Int, decoding: StreamDecoding<Success, Failure>,
    decodingQueue: DispatchQueue?, queue: DispatchQueue,
    handler: @escaping DataStreamRequest.Handler<Success, Failure>
  ) {
    flow = request.flow
    self.id = id
    self.request = request
    self.decodingQueue = decodingQueue
    self.queue = queue
    self.handler = handler
    state = Mutex(State(decoding: decoding))
  }

  // MARK: Events

  func wake() {
    (decodingQueue ?? queue).async { [self] in work() }
  }

  private func work() {
    let (entries, isLast, isOrdered) = flow.read(id)
    guard !entries.isEmpty || isLast else { return }
    let values = values(of: entries)
    let handOut: @Sendable () -> Void = { [self] in
      self.handOut(values, isLast)
      // Before it comes for more: the next handler on this queue goes first.
      if isOrdered { flow.handedOut(id) }
      if !isLast { wake() }
    }
    guard decodingQueue != nil else { return handOut() }
    queue.async(execute: handOut)
  }

  /// Decodes entries. The decoder is taken out of the state first, because code of the caller must not run under a
  /// lock.
  private func values(of entries: [ChunkLog.Entry]) -> [Outcome] {
    guard !entries.isEmpty, var decoding = state.withLock({ $0.decoding.take() }) else { return [] }
    let values = decoding.values(of: entries)
    state.withLock { $0.decoding = decoding }
    return values
  }

  private func handOut(_ values: [Outcome], _ isLast: Bool) {
    let kept = state.withLock { $0.request.take() }
    guard let request = kept ?? request else { return }
    let token = DataStreamRequest.CancellationToken(request: request, reader: id, runEnd: runEnd)
    for value in values {
      guard !flow.isMuted(id) else { break }
      if request.core.notifiesMonitors, let result = value as? Result<Success, AFError> {
        request.tell { $0.request(request, didParseStream: result) }
      }
      if case .failure = value, request.automaticallyCancelOnStreamError { token.cancel() }
      do {
        try handler(.init(event: .stream(value), token: token))
      } catch {
        stop(request, because: error)
      }
    }
    guard isLast else { return }
    // Nothing is left that an error could end.
    try? handler(.init(event: .complete(request.completion(at: runEnd)), token: token))
  }

  private func stop(_ request: DataStreamRequest, because error: any Error) {
    if !runEnd.isReached {
      request.core.cancelWhileRunning(
        because: error.asAFError(
          or: .responseSerializationFailed(reason: .customSerializationFailed(error: error))))
    }
    flow.mute(id)
  }

  // MARK: The end

  func deliver() {
    state.withLock { $0.request = request }
    runEnd.reach()
    flow.end(id)
  }
}
