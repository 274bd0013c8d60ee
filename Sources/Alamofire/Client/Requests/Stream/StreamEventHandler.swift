import Foundation
import HTTPWire
import Synchronization

/// A handler of a stream request.
final class StreamEventHandler<Success: Sendable, Failure: Error>: StreamHandler, EventSink {
  typealias Outcome = Result<Success, Failure>

  private struct State {
    /// `nil` while entries are decoded.
    var decoding: StreamDecoding<Success, Failure>?
    /// Retains the request for the last event, because its other owners may have released it.
    var request: DataStreamRequest?
  }

  let runEnd: RunEnd
  let decodingQueue: DispatchQueue?
  /// Weak, because the request holds this object.
  private weak let request: DataStreamRequest?
  private let handler: DataStreamRequest.Handler<Success, Failure>
  /// The state of the decoding for the handler, for its queues. Values are decoded outside the lock.
  private let state: Mutex<State>

  init(
    _ request: DataStreamRequest, _ decoding: StreamDecoding<Success, Failure>,
    on decodingQueue: DispatchQueue?,
    _ handler: @escaping DataStreamRequest.Handler<Success, Failure>
  ) {
    self.request = request
    self.decodingQueue = decodingQueue
    self.handler = handler
    runEnd = RunEnd(request.flow.delivery)
    state = Mutex(State(decoding: decoding))
  }

  // MARK: Events

  func calls(with entries: [StreamEntry]) -> @Sendable () -> Void {
    let values = runEnd.isMuted ? [] : values(of: entries)
    return { [self] in handOut(values) }
  }

  /// Decodes entries. The decoder is taken out of the state first, because the caller's code must not run under a lock.
  private func values(of entries: [StreamEntry]) -> [Outcome] {
    guard var decoding = state.withLock({ $0.decoding.take() }) else { return [] }
    let values = decoding.values(of: entries)
    state.withLock { $0.decoding = decoding }
    return values
  }

  private func handOut(_ values: [Outcome]) {
    guard !values.isEmpty, let request = state.withLock({ $0.request }) ?? request else { return }
    let token = DataStreamRequest.CancellationToken(request: request, runEnd: runEnd)
    for value in values {
      guard !runEnd.isMuted else { break }
      request.notifyParsed(value)
      if case .failure = value, request.automaticallyCancelOnStreamError { token.cancel() }
      do {
        try handler(.init(event: .stream(value), token: token))
      } catch {
        stop(request, because: error)
      }
    }
  }

  private func stop(_ request: DataStreamRequest, because error: any Error) {
    if !runEnd.isReached {
      request.core.cancel(
        request,
        because: error.asAFError(
          or: .responseSerializationFailed(reason: .customSerializationFailed(error: error))))
    }
    request.flow.mute(runEnd)
  }

  // MARK: The end

  func deliver() {
    guard let request else { return }
    state.withLock { $0.request = request }
    runEnd.reach()
    request.flow.fanout.leave(runEnd, .left(self))
  }

  func complete() {
    guard let request = state.withLock({ $0.request.take() }) else { return }
    let token = DataStreamRequest.CancellationToken(request: request, runEnd: runEnd)
    // The request has already ended, so an error of the handler has no effect.
    try? handler(.init(event: .complete(request.completion(at: runEnd)), token: token))
  }
}

extension DataStreamRequest {
  /// Notifies the monitors of a value that a handler or a loop is about to get. Bytes that were passed on as they
  /// arrived were not parsed.
  func notifyParsed<Success: Sendable, Failure: Error>(_ value: Result<Success, Failure>) {
    guard core.notifiesMonitors, !(value is Result<Data, Never>) else { return }
    let result = value.mapError { error in
      error.asAFError(or: .responseSerializationFailed(reason: .customSerializationFailed(error: error)))
    }
    notifyMonitors { $0.request(self, didParseStream: result) }
  }
}
