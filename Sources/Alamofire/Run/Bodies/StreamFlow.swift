import Foundation
import HTTPWire
import Synchronization

/// An element of the mailbox of a reader of a stream request.
enum StreamElement: Sendable {
  case entry(StreamEntry)
  /// The handler gets the entries that follow.
  case joined(any StreamHandler)
  /// The handler gets its completion, and no more entries.
  case left(any StreamHandler)

  /// The entry; `nil` for the others.
  var entry: StreamEntry? {
    if case .entry(let entry) = self { entry } else { nil }
  }
}

/// An object that reads the events of a body, which readers get instead of its bytes.
protocol EventReading: Sendable {
  /// Begins the body of a response.
  func begin(_ head: ResponseHead)

  /// Reads a part of the body. Returns its events, and the failure after which nothing more is read.
  func read(_ bytes: UnsafeRawBufferPointer) -> (events: [ServerSentEvent], failure: TransportFailure?)
}

/// The body of a stream request. It is delivered to all readers, each at its own speed. Bytes that all readers have
/// received are released, and the server waits while one of them is a mebibyte behind.
///
/// It is written on the engine's thread and read on the threads of the readers.
package final class StreamFlow: BodySink {
  /// The weight of an entry in addition to its bytes, which limits the number of small ones.
  private static let overhead = 64

  private struct State {
    /// Called with all bytes as they arrive, whatever is read.
    var watcher: (@Sendable (UnsafeRawBufferPointer) -> Void)?
    var delivery = EventDelivery()
  }

  /// Runs tasks after the current turn of the engine; `nil` for an engine without a thread.
  private let executor: (any TaskExecutor)?
  /// The object that reads the events of the body, which readers get instead of its bytes; `nil` for any other body.
  private let eventSource: (any EventReading)?
  /// The mailboxes of the readers.
  let fanout = Fanout<StreamElement>()
  private let memory = ChunkMemory()
  /// The watcher and the delivery of the current run, for the loop and the threads of users.
  private let state = Mutex(State())

  init(executor: (any TaskExecutor)?, eventSource: (any EventReading)? = nil) {
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
    let room = fanout.room()
    // The size of events is not known.
    return eventSource == nil ? room : min(room, BodyPiece.size)
  }

  package func receive(_ bytes: UnsafeRawBufferPointer) -> BodyReception {
    guard !bytes.isEmpty else { return .more }
    var failure: TransportFailure?
    var written = Fanout<StreamElement>.Written()
    if let eventSource {
      let read = eventSource.read(bytes)
      failure = read.failure
      if !read.events.isEmpty {
        written = fanout.write(weight: Self.weight(of: read.events)) { _ in
          .whole(.entry(.events(read.events)))
        }
      }
    } else {
      written = fanout.write(weight: bytes.count + Self.overhead) { chunk(of: bytes, after: $0) }
    }
    if let watcher = state.withLock({ $0.watcher }) { watcher(bytes) }
    if !written.sleepers.isEmpty { wake(written.sleepers) }
    return failure.map { .failure($0) } ?? (written.pauses ? .pause : .more)
  }

  /// Copies bytes once for all readers. A large piece is joined with the following one, until a reader takes them.
  private func chunk(
    of bytes: UnsafeRawBufferPointer, after last: StreamElement?
  ) -> Fanout<StreamElement>.Addition {
    if case .entry(.growing(let chunk))? = last, chunk.append(bytes) { return .grown }
    guard GrowingChunk.mayBegin(with: bytes) else { return .whole(.entry(.chunk(Data(bytes)))) }
    let chunk = GrowingChunk(in: memory)
    _ = chunk.append(bytes)
    return .growing(.entry(.growing(chunk)))
  }

  private static func weight(of events: [ServerSentEvent]) -> Int {
    events.reduce(0) { $0 + $1.data.utf8.count + $1.type.utf8.count + $1.id.utf8.count + overhead }
  }

  /// Wakes readers after the current turn of the engine, because one read of a socket gives many small chunks. Woken
  /// at once, the readers would find only the first one and sleep again.
  private func wake(_ readers: [any MailboxConsumer<StreamElement>]) {
    guard let executor else {
      for reader in readers { reader.wake(fanout) }
      return
    }
    Task(executorPreference: executor) { [fanout] in for reader in readers { reader.wake(fanout) } }
  }

  /// Begins a transfer whose bytes follow; `wake` is called when there is room again.
  func open(wake: @escaping @Sendable () -> Void) { fanout.open(resume: wake) }

  /// Marks the beginning of another response, which replaces the earlier one.
  func restart() { write(.begin, wake: nil) }

  package func finish() -> TransportFailure? {
    fanout.close()
    return nil
  }

  /// Marks the end of the response.
  func complete() { write(.end, wake: nil) }

  private func write(_ entry: StreamEntry, wake: (@Sendable () -> Void)?) {
    fanout.open(resume: wake)
    let written = fanout.write(weight: Self.overhead) { _ in .whole(.entry(entry)) }
    for reader in written.sleepers { reader.wake(fanout) }
  }

  /// The weight of what is held for the slowest reader; for tests.
  package var heldBytes: Int { fanout.unreadWeight }

  /// Whether the server has to wait; for tests.
  package var isFull: Bool { fanout.isFull }

  /// Sets a closure that is called with all bytes on the engine's thread; it does not slow down the server.
  func watch(_ watcher: @escaping @Sendable (UnsafeRawBufferPointer) -> Void) {
    state.withLock { $0.watcher = watcher }
  }

  // MARK: Readers

  /// Adds a handler, which is called on `queue`. Handlers of one serial queue are called in the order in which they
  /// were added.
  func add(_ handler: any StreamHandler, on queue: DispatchQueue) {
    fanout.join(handler.runEnd, .joined(handler), new: QueueReader(queue, for: handler)) { reader in
      (reader as? QueueReader)?.hasOrder(with: queue) ?? false
    }
  }

  /// Stops the events of a reader, except for the completion.
  func mute(_ reader: RunEnd) {
    reader.mute()
    fanout.mute(reader)
  }

  /// The delivery of the current run.
  var delivery: EventDelivery { state.withLock { $0.delivery } }

  /// Stops delivery to all readers of this run, except for the end.
  func endDelivery() { delivery.end() }

  /// Begins another run, because the finished request is sent again. It has its own readers.
  func beginAgain() { state.withLock { $0.delivery = EventDelivery() } }

  // MARK: The end

  /// Calls `proceed` once all handlers have had everything, and all iterators ask for more. Returns false, and never
  /// calls `proceed`, if that is so already.
  func settled(_ proceed: @escaping @Sendable () -> Void) -> Bool { fanout.settled(proceed) }

  /// Notes that the request was cancelled: its end does not wait for iterators.
  func readersLeave() { fanout.endWithoutLoops() }

  /// Blocks until all handlers have had everything, but not for longer than some seconds.
  func waitForHandlers() {
    let areDone = DispatchSemaphore(value: 0)
    if settled({ areDone.signal() }) { _ = areDone.wait(timeout: .now() + 10) }
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

/// A handler of the entries of a stream.
protocol StreamHandler: AnyObject, Sendable {
  /// The member of the mailbox.
  var runEnd: RunEnd { get }
  /// The queue on which values are created; `nil` if they are created on the handler's queue.
  var decodingQueue: DispatchQueue? { get }

  /// Makes values of entries. Returns the calls with them, which the queue of the handler makes.
  func calls(with entries: [StreamEntry]) -> @Sendable () -> Void

  /// Makes the last call, on the queue of the handler.
  func complete()
}

/// Calls the handlers of a serial queue in turn for each entry of their mailbox, so that their order needs no other
/// code. A handler on a queue without an order has its own reader.
///
/// It takes all available entries, makes values of them on the decoding queue, calls the handlers on their queue, and
/// then takes more.
final class QueueReader: MailboxConsumer {
  private let queue: DispatchQueue
  /// The handlers that get entries, for the queues. One of the queues works at a time.
  private let handlers: Mutex<[any StreamHandler]>

  init(_ queue: DispatchQueue, for handler: any StreamHandler) {
    self.queue = queue
    handlers = Mutex([handler])
  }

  /// Whether handlers on `other` are ordered relative to this reader's handlers.
  func hasOrder(with other: DispatchQueue) -> Bool { queue.hasOrder(of: other) }

  func wake(_ fanout: Fanout<StreamElement>) {
    let decodingQueue = handlers.withLock { $0.lazy.compactMap(\.decodingQueue).first }
    (decodingQueue ?? queue).async { [self] in work(fanout, isDecoding: decodingQueue != nil) }
  }

  private func work(_ fanout: Fanout<StreamElement>, isDecoding: Bool) {
    let elements = fanout.take(self, atMost: 64).elements
    guard !elements.isEmpty else { return }
    if !isDecoding, let decodingQueue = elements.lazy.compactMap(\.decodingQueue).first {
      decodingQueue.async { [self] in handOut(elements, fanout, isDecoding: true) }
    } else {
      handOut(elements, fanout, isDecoding: isDecoding)
    }
  }

  private func handOut(_ elements: [StreamElement], _ fanout: Fanout<StreamElement>, isDecoding: Bool) {
    let calls = calls(with: elements)
    let handOut: @Sendable () -> Void = { [self] in
      for call in calls { call() }
      // In a new work item, so that other work of the queue can run in between.
      if fanout.finish(self) { wake(fanout) }
    }
    if isDecoding { queue.async(execute: handOut) } else { handOut() }
  }

  /// Returns the calls of the handlers in their order. Only a single handler gets several entries at once.
  private func calls(with elements: [StreamElement]) -> [@Sendable () -> Void] {
    var current = handlers.withLock { $0 }
    var calls: [@Sendable () -> Void] = []
    var together: [StreamEntry] = []
    func flush() {
      if let handler = current.first, !together.isEmpty { calls.append(handler.calls(with: together)) }
      together = []
    }
    for element in elements {
      switch element {
      case .joined(let handler):
        flush()
        current.append(handler)
      case .left(let handler):
        flush()
        current.removeAll { $0 === handler }
        calls.append { handler.complete() }
      case .entry(let entry):
        guard current.count > 1 else {
          together.append(entry)
          continue
        }
        for part in entry.parts { calls += current.map { $0.calls(with: [part]) } }
      }
    }
    flush()
    handlers.withLock { $0 = current }
    return calls
  }
}

extension StreamEntry {
  /// The entry for several handlers, of which each has an event before the next one has it.
  fileprivate var parts: [StreamEntry] {
    guard case .events(let events) = self else { return [self] }
    return events.map { .events([$0]) }
  }
}

extension StreamElement {
  /// The queue on which a handler that joins makes its values.
  fileprivate var decodingQueue: DispatchQueue? {
    guard case .joined(let handler) = self else { return nil }
    return handler.decodingQueue
  }
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
