import Foundation
import HTTPWire
import Synchronization

/// Where the body of a stream request goes: to all who want it, each at its own pace. Nothing is kept that all
/// have had, and the server waits while one of them is a mebibyte behind.
///
/// Written on the engine's thread, read on the threads of the readers. It calls nobody but the wake closure of the
/// transport and ``StreamReader/wake()``, both outside of its lock.
package final class StreamFlow: BodySink {
  private struct State {
    var log = ChunkLog(overhead: 64)
    var readers: [Int: any StreamReader] = [:]
    /// The queues of the readers that hand out, in their order.
    var queues: [(queue: DispatchQueue, reader: Int)] = []
    /// Makes the transport go on; `nil` between transfers.
    var wake: (@Sendable () -> Void)?
    /// Who is shown the bytes as they come, whoever reads them.
    var watcher: (@Sendable (Data) -> Void)?
    /// The attempt, while it waits for the readers.
    var waiter: CheckedContinuation<Void, Never>?

    func woken(by written: ChunkLog.Written) -> (isTaken: Bool, woken: [any StreamReader]) {
      (written.isTaken, written.readers.compactMap { readers[$0] })
    }

    /// Who waits for what has just been read or given up, if anybody.
    mutating func awaited(wakesWriter: Bool, _ followers: [Int] = []) -> Awaited {
      var awaited = Awaited(writer: wakesWriter ? wake : nil)
      if !followers.isEmpty { awaited.followers = followers.compactMap { readers[$0] } }
      guard waiter != nil, !log.isBusy else { return awaited }
      defer { waiter = nil }
      awaited.attempt = waiter
      return awaited
    }
  }

  private struct Awaited {
    var writer: (@Sendable () -> Void)?
    var attempt: CheckedContinuation<Void, Never>?
    /// Readers that may go on.
    var followers: [any StreamReader] = []

    func proceed() {
      writer?()
      attempt?.resume()
      for follower in followers { follower.wake() }
    }
  }

  /// What runs when the engine has done its turn; `nil` for an engine without a thread.
  private let executor: (any TaskExecutor)?
  private let state = Mutex(State())

  init(executor: (any TaskExecutor)?) {
    self.executor = executor
  }

  // MARK: The body

  package func begin(_ head: ResponseHead, wake: @escaping @Sendable () -> Void) -> TransportFailure? {
    write(.begin, wake: wake)
    return nil
  }

  package func receive(_ bytes: UnsafeRawBufferPointer) -> BodyReception {
    guard !bytes.isEmpty else { return .taken }
    // Copied once, for all readers.
    let (isTaken, woken, watcher) = state.withLock { state in
      let written = state.woken(by: state.log.write(bytes))
      return (written.isTaken, written.woken, state.watcher)
    }
    if isTaken, let watcher { watcher(Data(bytes)) }
    if !woken.isEmpty { wake(woken) }
    return isTaken ? .taken : .full
  }

  /// Bytes come from the engine in many small pieces that were read at once. On its thread, the readers are woken when
  /// it has handed out all of them: else they would find the first piece alone, and sleep again.
  private func wake(_ readers: [any StreamReader]) {
    guard let executor else {
      for reader in readers { reader.wake() }
      return
    }
    Task(executorPreference: executor) { for reader in readers { reader.wake() } }
  }

  /// A response whose bytes come from here on; `wake` is called when there is room again.
  func open(wake: @escaping @Sendable () -> Void) { state.withLock { $0.wake = wake } }

  /// Another response takes the place of the one that has been handed out so far.
  func restart() { write(.begin, wake: nil) }

  package func finish() -> TransportFailure? {
    state.withLock { state in
      state.wake = nil
      state.log.writerLeft()
    }
    return nil
  }

  /// All of the response has come.
  func complete() { write(.end, wake: nil) }

  private func write(_ entry: ChunkLog.Entry, wake: (@Sendable () -> Void)?) {
    let woken = state.withLock { state in
      state.wake = wake
      return state.woken(by: state.log.write(entry)).woken
    }
    for reader in woken { reader.wake() }
  }

  /// How many bytes are held for readers; for tests.
  package var heldBytes: Int { state.withLock { $0.log.heldBytes } }

  /// Whether the server has to wait; for tests.
  package var isFull: Bool { state.withLock { $0.log.writerWaits } }

  /// Shows the bytes to somebody who does not hold the server back; on the engine's thread.
  func watch(_ watcher: @escaping @Sendable (Data) -> Void) {
    state.withLock { $0.watcher = watcher }
  }

  // MARK: Readers

  /// Adds the reader that `make` makes of its number.
  ///
  /// - Parameters:
  ///   - queue: The queue on which the reader hands out; readers of one serial queue keep their order.
  ///   - highMark: How far behind it may be at least.
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

  /// An ordered reader has handed out all that it read: the next one of its queue may.
  func handedOut(_ id: Int) {
    state.withLock { state in
      let followers = state.log.handedOut(id)
      return state.awaited(wakesWriter: false, followers)
    }.proceed()
  }

  /// Somebody has begun to pull: the server and the end of the request wait for that reader from now on.
  func beginPulling(_ id: Int) {
    state.withLock { $0.log.begin(id) }
  }

  /// The reader wants nothing more but to know that it is over.
  func mute(_ id: Int) {
    state.withLock { state in
      let (wakesWriter, followers) = state.log.mute(id)
      return state.awaited(wakesWriter: wakesWriter, followers)
    }.proceed()
  }

  func isMuted(_ id: Int) -> Bool { state.withLock { $0.log.isMuted(id) } }

  /// Nothing more will come for the reader.
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

  /// Waits until whoever is called has had everything, and whoever pulls asks for more. Cancelled, it does not wait
  /// for those who pull.
  nonisolated(nonsending) func settled() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isBusy = state.withLock { state in
          guard state.log.isBusy else { return false }
          state.waiter = continuation
          return true
        }
        if !isBusy { continuation.resume() }
      }
    } onCancel: {
      state.withLock { state in
        state.log.endWithoutPulling()
        return state.awaited(wakesWriter: false)
      }.proceed()
    }
  }
}

/// One who reads a ``StreamFlow``.
protocol StreamReader: AnyObject, Sendable {
  /// There is something to read. Called on any thread, also the engine's: it must return at once.
  func wake()
}

extension DispatchQueue {
  /// Whether what is handed out on both queues may have an order: they are the same one, and not a concurrent one of
  /// the system.
  fileprivate func hasOrder(of other: DispatchQueue) -> Bool {
    // Foundation makes a new object for the main queue and the global ones at each access.
    if label.hasPrefix("com.apple.root.") { return false }
    return self === other || (label == Self.mainLabel && other.label == Self.mainLabel)
  }

  private static let mainLabel = DispatchQueue.main.label
}
