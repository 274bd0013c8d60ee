import Foundation
import HTTPWire
import Synchronization

/// The connection of one handshake, for its transport: it owns the stream, and the channel once there is one.
final class WebSocketLink: Sendable {
  /// Guarded by the lock of this class.
  private struct State {
    var stream: (any ByteStream)?
    var channel: WebSocketChannel?
    /// The outcome of the stream, once it has ended.
    var end: WebSocketChannel.StreamEnd?
    var resumptions = 0
    var isSuspended = false
    var metrics = TransferMetrics.Values()
    /// The time in which the server could answer the handshake before the request was last suspended.
    var answerTime = Duration.zero
    /// The time since when it can; `nil` while the request is suspended.
    var answerStart: ContinuousClock.Instant?

    mutating func stopClock() {
      if let start = answerStart { answerTime += start.duration(to: .now) }
      answerStart = nil
    }
  }

  /// The stream and the channel of the handshake and its metrics, for the loop and attempts.
  private let state = Mutex(State())
  private let beginning = ContinuousClock.now

  init() { state.withLock { $0.metrics.start = Date().timeIntervalSince1970 } }

  /// Takes the stream, before the observer can suspend or cancel it.
  func take(_ stream: any ByteStream) { state.withLock { $0.stream = stream } }

  /// Begins as the observer decides. Returns false if the request was cancelled.
  func begin(_ start: TransferStart) -> Bool {
    state.withLock { state in
      // The request may have been resumed since the observer has returned.
      guard start == .hold, state.resumptions == 0 else { return }
      state.isSuspended = true
      state.stream?.suspend()
    }
    return start != .refuse
  }

  /// Passes the end of the stream to the channel, and starts it.
  func serve(
    _ channel: WebSocketChannel, subprotocol: String?, _ end: @escaping WebSocketChannel.End
  ) {
    let streamEnd = state.withLock { state in
      state.channel = channel
      return state.end
    }
    align(channel)
    channel.start(subprotocol: subprotocol, end)
    if let streamEnd { channel.streamEnded(streamEnd.failure) }
  }

  /// Suspends a new channel whose request is suspended. Otherwise it would wait for the response to a ping that is not
  /// sent. The request may be resumed and suspended before that.
  private func align(_ channel: WebSocketChannel) {
    var isSuspended = false
    while case let requested = state.withLock({ $0.isSuspended }), requested != isSuspended {
      if requested { channel.suspend() } else { channel.resume() }
      isSuspended = requested
    }
  }

  // MARK: The time of the handshake

  /// Begins to measure the time for the response to the handshake. It does not run while the request is suspended.
  func startClock() {
    state.withLock { state in
      state.answerTime = .zero
      state.answerStart = state.isSuspended ? nil : .now
    }
  }

  /// The time that was measured.
  var answerTime: Duration {
    state.withLock { $0.answerTime + ($0.answerStart?.duration(to: .now) ?? .zero) }
  }

  // MARK: Metrics

  func mark(_ time: any WritableKeyPath<TransferMetrics.Values, Int64> & Sendable) {
    let microseconds = Int64(beginning.duration(to: .now) / .microseconds(1))
    state.withLock { $0.metrics[keyPath: time] = microseconds }
  }

  func note(_ change: (inout TransferMetrics.Values) -> Void) { state.withLock { change(&$0.metrics) } }

  /// The metrics until now.
  var metrics: TransferMetrics {
    mark(\.end)
    return TransferMetrics(values: state.withLock { $0.metrics })
  }
}

extension WebSocketLink: TransferControl {
  func suspend() {
    let (stream, channel) = state.withLock { state in
      state.isSuspended = true
      state.stopClock()
      return (state.stream, state.channel)
    }
    if let channel { channel.suspend() } else { stream?.suspend() }
  }

  func resume() {
    let (stream, channel) = state.withLock { state in
      state.resumptions += 1
      state.isSuspended = false
      if state.answerStart == nil { state.answerStart = .now }
      return (state.stream, state.channel)
    }
    if let channel { channel.resume() } else { stream?.resume() }
  }

  func cancel() { state.withLock { $0.stream }?.cancel() }
}

extension WebSocketLink: ByteStreamWatcher {
  /// Fails the handshake, so that the attempt evaluates the server outside of it and sends the request again.
  func evaluate(_ chain: PresentedChain) async -> TransportFailure? {
    TransportFailure(
      .trustUndecided, "The certificates of \(chain.host) have to be evaluated first.", chain: chain)
  }

  func identity() async -> Result<ClientIdentity?, TransportFailure> {
    .failure(TransportFailure(.identityUndecided, "The client certificate has to be chosen first."))
  }

  func streamOpened() {
    mark(\.connectEnd)
    mark(\.requestStart)
  }

  func streamEnded(_ failure: TransportFailure?) {
    let channel = state.withLock { state in
      state.end = WebSocketChannel.StreamEnd(failure: failure)
      return state.channel
    }
    channel?.streamEnded(failure)
  }
}
