import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// The body of a data request that chunk readers receive as it arrives.
///
/// It is created for the first reader. Its lock and its flow's lock are never held at once.
package final class ResponseChunks: Sendable {
  private struct State {
    /// The number of bytes of the response that the readers received or will receive.
    var passed: Int64 = 0
    /// Whether the readers received a body that was stored before the first reader was added. The readers receive such
    /// a body at the end.
    var hasPassedCollected = false
    /// Whether every reader has a handler for another response after a part of one.
    var maySeeAnother = true

    var isUntouched: Bool { passed == 0 && !hasPassedCollected }
  }

  package let flow: StreamFlow
  /// The delivered bytes and the demand of the readers. It is never held together with the lock of the `StreamFlow`.
  private let state = Mutex(State())

  init(executor: (any TaskExecutor)?) {
    flow = StreamFlow(executor: executor)
  }

  func add(
    on queue: DispatchQueue, onRestart: (@Sendable () -> Void)?, _ handler: @escaping @Sendable (Data) -> Void
  ) -> ResponseChunkReader {
    if onRestart == nil { state.withLock { $0.maySeeAnother = false } }
    let reader = ResponseChunkReader(self, queue: queue, onRestart: onRestart, handler: handler)
    flow.add(reader, on: queue)
    return reader
  }

  /// The number of bytes of the response that were passed on as they arrived.
  var passedCount: Int64 { state.withLock { $0.passed } }

  /// Whether another response may follow: no reader has received a part of this one, or every reader handles that.
  var mayBeginAgain: Bool { state.withLock { $0.isUntouched || $0.maySeeAnother } }

  /// Begins the body of a response. Returns a failure if the readers received a part of another one.
  func begin() -> TransportFailure? {
    let (isNew, mayBegin) = state.withLock { state in
      guard !state.isUntouched else { return (true, true) }
      if state.maySeeAnother { state = State() }
      return (false, state.maySeeAnother)
    }
    guard mayBegin else {
      return TransportFailure(
        .connectionLost,
        "A part of the body was handed out already, so that another one cannot follow it. Give responseChunks an "
          + "onRestart if it may begin again.")
    }
    if !isNew { flow.restart() }
    return nil
  }

  /// Begins a body that was stored before the first reader was added. Called for each of the readers.
  func beginCollected() -> TransportFailure? {
    guard !state.withLock({ $0.hasPassedCollected }) else { return nil }
    if let failure = begin() { return failure }
    state.withLock { $0.hasPassedCollected = true }
    return nil
  }

  /// Called on the loop's thread.
  func receive(_ bytes: UnsafeRawBufferPointer) -> BodyReception {
    state.withLock { $0.passed += Int64(bytes.count) }
    return flow.receive(bytes)
  }
}

/// A handler that receives the chunks of the body of a data request. It is one of the handlers of the request, so that
/// those after it are served when it has received all chunks.
final class ResponseChunkReader: StreamHandler, ResponseSink {
  /// Weak, because its flow retains this reader.
  private weak let chunks: ResponseChunks?
  let runEnd: RunEnd
  private let queue: DispatchQueue
  private let onRestart: (@Sendable () -> Void)?
  private let handler: @Sendable (Data) -> Void
  /// Relaxed, because one thread at a time delivers chunks.
  private let hasHandedOut = Atomic<Bool>(false)

  init(
    _ chunks: ResponseChunks, queue: DispatchQueue, onRestart: (@Sendable () -> Void)?,
    handler: @escaping @Sendable (Data) -> Void
  ) {
    self.chunks = chunks
    runEnd = RunEnd(chunks.flow.delivery)
    self.queue = queue
    self.onRestart = onRestart
    self.handler = handler
  }

  // MARK: Chunks

  var decodingQueue: DispatchQueue? { nil }

  func calls(with entries: [StreamEntry]) -> @Sendable () -> Void {
    { [self] in
      for entry in entries {
        if case .begin = entry { restart() }
        if let data = entry.data { handOut(data) }
      }
    }
  }

  func complete() {}

  private func restart() {
    if hasHandedOut.exchange(false, ordering: .relaxed) { onRestart?() }
  }

  private func handOut(_ data: Data) {
    hasHandedOut.store(true, ordering: .relaxed)
    handler(data)
  }

  /// Waits until all chunks are delivered, then delivers a body that was stored before the first reader was added.
  nonisolated(nonsending) func receiveRest(of core: RequestCore) async {
    guard let chunks else { return }
    await chunks.flow.settled()
    guard let collected = core.state.withLock({ $0.results.data }), !collected.isEmpty else { return }
    if let failure = chunks.beginCollected() { return core.fail(AFError(failure, url: "")) }
    await chunks.flow.settled()
    await withCheckedContinuation { continuation in
      queue.async { [self] in
        handOut(collected)
        continuation.resume()
      }
    }
  }

  // MARK: The handler of a response

  /// Whether the attempt has to wait for the readers.
  var runsUserCode: Bool { true }
  func serialize(_ outcome: RequestOutcome) -> AFError? { nil }
  func replaceFailure(with error: AFError, parsed: AFError?) {}
  func announce(to request: any RunOwner) {}

  // The reader has all chunks: see ``receiveRest(of:)``.
  func deliver() { chunks?.flow.fanout.leave(runEnd, .left(self)) }
}

extension RequestCore {
  /// Passes the body to a handler from now on.
  func handOutBody(
    of request: any RunOwner, on queue: DispatchQueue, onRestart: (@Sendable () -> Void)?,
    _ handler: @escaping @Sendable (Data) -> Void
  ) {
    while true {
      let chunks = state.withLock { state in
        let chunks = state.bodies.value.chunks ?? ResponseChunks(executor: session.executor)
        state.bodies.value.chunks = chunks
        return chunks
      }
      let reader = chunks.add(on: queue, onRestart: onRestart, handler)
      // Another thread may have sent the finished request again, whose body goes to other chunks.
      if add(reader, of: chunks, for: request) { return }
    }
  }

  var hasValidators: Bool { state.withLock { !$0.handlers.validators.isEmpty } }

  /// Returns the validators, and the request and the body that they evaluate.
  func validationInputs() -> ([Validator], URLRequest?, ValidationBody) {
    var (validators, request, data, chunks) = state.withLock {
      ($0.handlers.validators, $0.results.request, $0.results.data, $0.bodies.read { $0.chunks })
    }
    if let last = kind.lastValidator { validators.append(last) }
    return (validators, request, ValidationBody(data, handedOut: chunks?.passedCount))
  }

  /// The chunk readers; `nil` without any.
  package var chunks: ResponseChunks? {
    has(.body) ? state.withLock { $0.bodies.value.chunks } : nil
  }
}
