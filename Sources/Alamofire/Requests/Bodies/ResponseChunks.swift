import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// The body of a data request that is handed out as it comes: to whom, and how much of it has gone already.
///
/// There is one from the first reader on. Its lock and that of its flow are never held at once.
package final class ResponseChunks: Sendable {
  private struct State {
    /// How many bytes of the response readers have had, or are about to have.
    var passed: Int64 = 0
    /// Whether they have had a body that had been collected, which they get at the end.
    var hasPassedCollected = false
    /// Whether all readers want to hear of a response that takes the place of one they have seen a part of.
    var maySeeAnother = true

    var isUntouched: Bool { passed == 0 && !hasPassedCollected }
  }

  package let flow: StreamFlow
  private let state = Mutex(State())

  init(executor: (any TaskExecutor)?) {
    flow = StreamFlow(executor: executor)
  }

  func add(
    on queue: DispatchQueue, onRestart: (@Sendable () -> Void)?, _ handler: @escaping @Sendable (Data) -> Void
  ) -> ResponseChunkReader {
    if onRestart == nil { state.withLock { $0.maySeeAnother = false } }
    return flow.add(.called, holdsBack: true, on: queue) { id in
      ResponseChunkReader(self, id: id, queue: queue, onRestart: onRestart, handler: handler)
    }
  }

  /// How many bytes of the response have gone out as they came.
  var passedCount: Int64 { state.withLock { $0.passed } }

  /// Whether another response may come now: nobody has seen a part of this one, or all want to hear of it.
  var mayBeginAgain: Bool { state.withLock { $0.isUntouched || $0.maySeeAnother } }

  /// A response comes whose body is handed out; returns why it cannot be, if a part of another one has been.
  func begin() -> TransportFailure? {
    let (isNew, mayBegin) = state.withLock { state in
      guard !state.isUntouched else { return (true, true) }
      if state.maySeeAnother { state = State() }
      return (false, state.maySeeAnother)
    }
    guard mayBegin else {
      return TransportFailure(
        .connectionLost,
        "A part of the body was handed out already, so that another one cannot follow it. Give responsePieces an onRestart "
          + "if it may begin again.")
    }
    if !isNew { flow.restart() }
    return nil
  }

  /// The same for a body that has been collected, for each of the readers.
  func beginCollected() -> TransportFailure? {
    guard !state.withLock({ $0.hasPassedCollected }) else { return nil }
    if let failure = begin() { return failure }
    state.withLock { $0.hasPassedCollected = true }
    return nil
  }

  /// On the engine's thread.
  func receive(_ bytes: UnsafeRawBufferPointer) -> BodyReception {
    let reception = flow.receive(bytes)
    if case .taken = reception { state.withLock { $0.passed += Int64(bytes.count) } }
    return reception
  }
}

/// One who gets the pieces of a data request's body. Among the handlers of the request it stands for itself: they are
/// served when it has had everything.
final class ResponseChunkReader: StreamReader, ResponseSink {
  /// Weak, since they hold this.
  private weak let pieces: ResponseChunks?
  private let id: Int
  private let queue: DispatchQueue
  private let onRestart: (@Sendable () -> Void)?
  private let handler: @Sendable (Data) -> Void
  /// It is at work in one place at a time.
  private let hasHandedOut = Atomic<Bool>(false)

  init(
    _ pieces: ResponseChunks, id: Int, queue: DispatchQueue, onRestart: (@Sendable () -> Void)?,
    handler: @escaping @Sendable (Data) -> Void
  ) {
    self.pieces = pieces
    self.id = id
    self.queue = queue
    self.onRestart = onRestart
    self.handler = handler
  }

  // MARK: What comes

  func wake() {
    queue.async { [self] in work() }
  }

  private func work() {
    guard let flow = pieces?.flow else { return }
    let (entries, _, isOrdered) = flow.read(id)
    guard !entries.isEmpty else { return }
    for entry in entries {
      switch entry {
      case .begin: restart()
      case .chunk(let data): handOut(data)
      case .end: break
      }
    }
    if isOrdered { flow.handedOut(id) }
    wake()
  }

  private func restart() {
    if hasHandedOut.exchange(false, ordering: .relaxed) { onRestart?() }
  }

  private func handOut(_ data: Data) {
    hasHandedOut.store(true, ordering: .relaxed)
    handler(data)
  }

  /// Waits until all is handed out: what came in pieces, or a body that had been collected before anybody wanted pieces.
  nonisolated(nonsending) func handOutRest(of core: RequestCore) async {
    guard let pieces else { return }
    await pieces.flow.settled()
    guard let collected = core.state.withLock({ $0.data }), !collected.isEmpty else { return }
    if let failure = pieces.beginCollected() { return core.fail(AFError(failure, url: "")) }
    await pieces.flow.settled()
    await withCheckedContinuation { continuation in
      queue.async { [self] in
        handOut(collected)
        continuation.resume()
      }
    }
  }

  // MARK: Among the handlers

  /// Whether the attempt has to wait for the readers.
  var runsUserCode: Bool { true }
  func postpone(_ outcome: RequestOutcome) -> Bool { false }
  func serialize(_ outcome: RequestOutcome) -> AFError? { nil }
  func replaceFailure(with error: AFError) {}
  func announce(to request: Request) {}
  func deliver() { pieces?.flow.remove(id) }
}

extension RequestCore {
  /// Hands the body out from now on.
  func handOutBody(
    of request: Request, on queue: DispatchQueue, onRestart: (@Sendable () -> Void)?,
    _ handler: @escaping @Sendable (Data) -> Void
  ) {
    let pieces = state.withLock { state in
      let pieces = state.extras.pieces ?? ResponseChunks(executor: session.executor)
      state.extras.pieces = pieces
      return pieces
    }
    let reader = pieces.add(on: queue, onRestart: onRestart, handler)
    add(.body)
    add(reader, for: request)
  }

  /// The validators, and what they judge.
  func judged() -> ([Validator], URLRequest?, ValidationBody) {
    let (validators, request, data, pieces) = state.withLock {
      ($0.validators, $0.request, $0.data, $0.hasExtras ? $0.extras.pieces : nil)
    }
    return (validators, request, ValidationBody(data, handedOut: pieces?.passedCount))
  }

  /// Those who get the body as it comes, if there are any.
  package var pieces: ResponseChunks? {
    has(.body) ? state.withLock { $0.extras.pieces } : nil
  }
}
