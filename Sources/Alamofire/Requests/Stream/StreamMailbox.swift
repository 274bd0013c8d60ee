import Foundation
import HTTPWire
import Synchronization

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
        request.core.tell { $0.request(request, didParseStream: result) }
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
