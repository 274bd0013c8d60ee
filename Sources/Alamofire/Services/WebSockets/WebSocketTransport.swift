import Foundation
import HTTPSystem
import HTTPWire
import Synchronization

/// Opens a WebSocket connection over a stream of bytes, and serves it until its end.
///
/// The handshake is one hop of an attempt, like any transfer: with cookies, credentials and trust evaluation. A status
/// other than 101 is an ordinary response, so that redirects and challenges are answered.
final class WebSocketTransport: Transport {
  private let streams: any ByteStreamTransport
  private let options: WebSocketChannelOptions
  /// The subprotocols of the configuration; without any, the ones in the request's fields.
  private let subprotocols: [String]
  /// The origin of the caller's request.
  private let initialOrigin: Origin
  private let observer: any WebSocketChannelObserver
  private let executor: (any TaskExecutor)?
  private let enqueue: (@Sendable (any LoopWork) -> Void)?

  /// Makes the transport of one attempt.
  ///
  /// - Parameters:
  ///   - executor: The executor of tasks that open connections; `nil` is the pool.
  ///   - enqueue: Runs work on the thread of the engine; `nil` if there is none.
  init(
    _ streams: any ByteStreamTransport, _ options: WebSocketChannelOptions, subprotocols: [String],
    initialOrigin: Origin, observer: any WebSocketChannelObserver, executor: (any TaskExecutor)? = nil,
    enqueue: (@Sendable (any LoopWork) -> Void)? = nil
  ) {
    self.executor = executor
    self.enqueue = enqueue
    self.streams = streams
    self.options = options
    self.subprotocols = subprotocols
    self.initialOrigin = initialOrigin
    self.observer = observer
  }

  /// Opens the connection in a task, which ends when the connection is open.
  func send(
    _ request: WireRequest, observer transferObserver: any TransferObserver,
    completion: any TransferCompletion
  ) {
    Task.detached(executorPreference: executor) { [self] in
      do throws(TransportFailure) {
        switch try await open(request, transferObserver) {
        case .answered(let response): completion.transferEnded(.success(response))
        case .opened(let connection): connection.serve { [self] in end($0, completion) }
        }
      } catch {
        completion.transferEnded(.failure(error))
      }
    }
  }

  /// Ends a transfer on the thread of the engine, because the caller's code may have closed the connection.
  private func end(
    _ outcome: Result<WireResponse, TransportFailure>, _ completion: any TransferCompletion
  ) {
    guard let enqueue else { return completion.transferEnded(outcome) }
    enqueue(EndedTransfer(completion, outcome))
  }

  private final class EndedTransfer: LoopWork {
    private let completion: any TransferCompletion
    private let outcome: Result<WireResponse, TransportFailure>

    init(_ completion: any TransferCompletion, _ outcome: Result<WireResponse, TransportFailure>) {
      self.completion = completion
      self.outcome = outcome
    }

    func runOnLoop() { completion.transferEnded(outcome) }
  }

  private enum Opening {
    /// The server has answered without changing the protocol, and the stream has ended.
    case answered(WireResponse)
    case opened(OpenWebSocket)
  }

  nonisolated(nonsending) private func open(
    _ request: WireRequest, _ transferObserver: any TransferObserver
  ) async throws(TransportFailure) -> Opening {
    guard request.login == nil else {
      throw TransportFailure(
        .unsupportedFeature,
        "NTLM and Negotiate cannot authenticate a WebSocket handshake. Use Basic, Digest or a token.")
    }
    let handshake = try handshake(for: request)
    let link = WebSocketLink()
    let stream = streams.stream(
      request.forConnection, isSecure: request.scheme == "https", watcher: link)
    link.take(stream)
    guard link.begin(transferObserver.transferBegan(link)) else {
      stream.cancel()
      throw Self.cancelled
    }
    let exchange = WebSocketExchange(
      request: request, handshake: handshake, stream: stream, link: link, transferObserver: transferObserver)
    do throws(TransportFailure) {
      let opening = try await shakeHands(exchange)
      if case .answered = opening { exchange.end() }
      return opening
    } catch {
      exchange.end()
      throw error
    }
  }

  nonisolated(nonsending) private func shakeHands(
    _ exchange: WebSocketExchange
  ) async throws(TransportFailure) -> Opening {
    let (request, link) = (exchange.request, exchange.link)
    let head = request.upgradeHead(exchange.handshake)
    link.note { $0.requestHeaderBytes = Int64(head.count) }
    try await exchange.stream.send(head, timeout: request.idleTimeout)
    link.mark(\.requestEnd)
    let answer = try await exchange.response()
    guard let agreement = answer.agreement else {
      return .answered(WireResponse(head: answer.head, body: answer.body, metrics: link.metrics))
    }
    try await validate(answer.head, link)
    let channel = WebSocketChannel(
      exchange.stream, host: request.origin.host, options, deflate: agreement.deflate, input: answer.rest,
      observer: observer)
    return .opened(
      OpenWebSocket(
        channel: channel, head: answer.head, subprotocol: agreement.subprotocol, stream: exchange.stream,
        link: link, transferObserver: exchange.transferObserver))
  }

  nonisolated(nonsending) private func validate(
    _ head: ResponseHead, _ link: WebSocketLink
  ) async throws(TransportFailure) {
    do throws(TransportFailure) {
      try await observer.validate(head)
    } catch {
      throw error.with(metrics: link.metrics).with(partial: .init(head: head, body: nil))
    }
  }

  private static var cancelled: TransportFailure {
    TransportFailure(.cancelled, "The request was cancelled.")
  }

  /// Whether the configuration's subprotocols are sent to the origin of a request, as its fields are.
  private func mayOfferSubprotocols(to request: WireRequest) -> Bool {
    request.origin == initialOrigin
      || RedirectPlan.leavingOrigin(initialOrigin, by: request).keeps("Sec-WebSocket-Protocol")
  }

  private func handshake(
    for request: WireRequest
  ) throws(TransportFailure) -> WebSocketClientHandshake {
    // A redirect handler may have set a field for another origin.
    let isOffered = !subprotocols.isEmpty && mayOfferSubprotocols(to: request)
    let names = isOffered ? subprotocols : request.namedSubprotocols
    do throws(WebSocketHandshakeError) {
      return try WebSocketClientHandshake(
        nonce: (.random(in: .min ... .max), .random(in: .min ... .max)), subprotocols: names,
        deflate: options.compresses ? WebSocketDeflateOptions() : nil)
    } catch {
      throw TransportFailure(.badURL, error.message)
    }
  }
}

/// A connection whose handshake was accepted.
private struct OpenWebSocket {
  let channel: WebSocketChannel
  let head: ResponseHead
  let subprotocol: String?
  let stream: any ByteStream
  let link: WebSocketLink
  let transferObserver: any TransferObserver

  /// Serves the connection until its end. It holds nothing of what has opened it.
  func serve(_ end: @escaping @Sendable (Result<WireResponse, TransportFailure>) -> Void) {
    link.serve(channel, subprotocol: subprotocol) { [head, stream, link, transferObserver] failure in
      let outcome: Result<WireResponse, TransportFailure> =
        if let failure {
          .failure(failure.with(metrics: link.metrics).with(partial: .init(head: head, body: nil)))
        } else {
          .success(WireResponse(head: head, body: nil, metrics: link.metrics))
        }
      transferObserver.transferEnded()
      stream.cancel()
      end(outcome)
    }
  }
}

/// The response to one handshake.
struct WebSocketExchange {
  /// The response, and what follows it.
  struct Answer {
    let head: ResponseHead
    /// The result of the handshake; `nil` for a status other than 101.
    var agreement: WebSocketAgreement?
    var body: Data?
    /// The bytes after the head of a 101.
    var rest = Data()
  }

  let request: WireRequest
  let handshake: WebSocketClientHandshake
  let stream: any ByteStream
  let link: WebSocketLink
  let transferObserver: any TransferObserver

  /// Ends the transfer. The stream is cancelled, which has no effect after its end.
  func end() {
    transferObserver.transferEnded()
    stream.cancel()
  }

  nonisolated(nonsending) func response() async throws(TransportFailure) -> Answer {
    let options = request.profile.options
    var reader = UpgradeResponseReader(
      headerSizeLimit: options.headerSizeLimit, largestBody: options.bodySizeLimit)
    var head: ResponseHead?
    var headCount = 0
    link.startClock()
    while true {
      let bytes = try await receive(isFirst: headCount == 0)
      var position = 0
      while true {
        let step = bytes.data.withUnsafeBytes { reader.read($0, from: &position) }
        if case .head(let new) = step {
          link.mark(\.responseStart)
          link.note { $0.responseHeaderBytes = Int64(headCount + position) }
          // No handler of this kind of request holds the body back. The connection is closed without reading a body
          // that is not needed.
          if transferObserver.headReceived(new) == .discard { return Answer(head: new) }
          guard new.status != 101 else {
            return Answer(
              head: new, agreement: try agreement(new), rest: Data(bytes.data.dropFirst(position)))
          }
          head = new
          continue
        }
        if let answer = try answer(after: step, head, reader) { return answer }
        break
      }
      headCount += bytes.data.count
      guard bytes.isAtEnd else { continue }
      return try lastAnswer(head, reader)
    }
  }

  /// Receives more of the response, as long as the time for all of it lasts. A limit of each read would let a server
  /// send a byte now and then for ever.
  nonisolated(nonsending) private func receive(isFirst: Bool) async throws(TransportFailure) -> StreamedBytes
  {
    let firstByte = isFirst ? request.profile.options.timeLimits.firstByte : nil
    guard let limit = [request.idleTimeout, firstByte].compactMap({ $0 }).min() else {
      return try await stream.receive(timeout: nil)
    }
    let failure = slowAnswer(limit, limit == firstByte ? .firstByte : nil)
    let left = limit - link.answerTime
    guard left > .zero else { throw failure }
    do throws(TransportFailure) {
      return try await stream.receive(timeout: left)
    } catch {
      throw error.kind == .timedOut && error.phase == nil ? failure : error
    }
  }

  private func slowAnswer(_ limit: Duration, _ phase: TransportOptions.TimeLimits.Phase?) -> TransportFailure
  {
    if let phase {
      let message = phase.message(host: request.origin.host, limit: limit)
      return TransportFailure(.timedOut, message, phase: phase)
    }
    return TransportFailure(
      .timedOut,
      "\(request.origin.host) did not complete its response to the WebSocket handshake within "
        + "\(limit.shownSeconds) (\(request.profile.options.timeLimits.idleSetting)).")
  }

  /// Returns the answer if `step` completes it.
  private func answer(
    after step: UpgradeResponseReader.HandshakeStep, _ head: ResponseHead?, _ reader: UpgradeResponseReader
  ) throws(TransportFailure) -> Answer? {
    let options = request.profile.options
    switch step {
    case .needsMore, .head: return nil
    case .end:
      guard let head else { return nil }
      return Answer(head: head, body: reader.body.isEmpty ? nil : reader.body)
    case .refuseHead:
      throw TransportFailure(
        .dataLengthExceedsMaximum,
        "The header of the response is larger than \(options.headerSizeLimit) bytes. "
          + "Raise headerSizeLimit if such responses are expected.")
    case .refuseBody:
      let failure = TransportFailure.tooLarge(options.bodySizeLimit ?? 0)
      throw head.map { failure.with(partial: .init(head: $0, body: nil)) } ?? failure
    case .refuse(let violation):
      throw TransportFailure(
        .badServerResponse, "The response of \(request.origin.host) is not valid HTTP: \(violation.message)")
    }
  }

  /// Returns the response when the server has ended the connection. Throws if the response is not complete.
  private func lastAnswer(
    _ head: ResponseHead?, _ reader: UpgradeResponseReader
  ) throws(TransportFailure) -> Answer {
    guard let head, reader.mayEnd else {
      throw TransportFailure(
        .connectionLost,
        "\(request.origin.host) ended the connection before its response was complete."
          + (request.scheme == "https" ? "" : " If this is a port for TLS, use wss://."))
    }
    return Answer(head: head, body: reader.body.isEmpty ? nil : reader.body)
  }

  private func agreement(_ head: ResponseHead) throws(TransportFailure) -> WebSocketAgreement {
    do throws(WebSocketHandshakeError) {
      return try handshake.verify(head, sha1: OpenSSLHashes.sha1)
    } catch {
      throw TransportFailure(
        .badServerResponse, error.message, metrics: link.metrics,
        partial: TransportFailure.PartialResponse(head: head, body: nil))
    }
  }
}

extension ByteStream {
  fileprivate nonisolated(nonsending) func send(
    _ data: Data, timeout: Duration?
  ) async throws(TransportFailure) {
    try await withCheckedContinuation { continuation in
      write(data, timeout: timeout) { continuation.resume(returning: $0) }
    }.get()
  }

  fileprivate nonisolated(nonsending) func receive(
    timeout: Duration?
  ) async throws(TransportFailure) -> StreamedBytes {
    try await withCheckedContinuation { continuation in
      read(least: 1, most: 65_536, timeout: timeout) { continuation.resume(returning: $0) }
    }.get()
  }
}

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
