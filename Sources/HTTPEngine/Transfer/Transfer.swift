import CCurl
import FoundationEssentials
import Glibc
import HTTPWire

/// One easy handle and its request. Transfers are pooled.
///
/// A transfer belongs to the loop's thread, on which libcurl calls back. Therefore its properties, and those of the
/// loop, have no run-time checks for overlapping access, which cost a percent of a request.
final class Transfer {
  typealias Outcome = Result<WireResponse, TransportFailure>

  /// The completion of a transfer; called exactly once.
  enum Completion {
    case continuation(UnsafeContinuation<Outcome, Never>)
    /// Called on the loop's thread, while the transfer ends.
    case callback(any TransferCompletion)

    func call(with outcome: consuming Outcome) {
      switch self {
      case .continuation(let continuation): continuation.resume(returning: outcome)
      case .callback(let completion): completion.transferEnded(outcome)
      }
    }
  }

  /// The loop of the transfer, which outlives it.
  unowned(unsafe) let loop: LoopCore
  @exclusivity(unchecked) var easy: EasyHandle
  /// The URL of ``easy``, which refers to it.
  let parsedURL = ParsedURL()
  /// The buffer for libcurl's message about a failure.
  let errorText: UnsafeMutablePointer<CChar>
  @exclusivity(unchecked) var applied = AppliedOptions()
  @exclusivity(unchecked) var lists = OptionLists()

  @exclusivity(unchecked) private(set) var ticket: UInt64 = 0
  @exclusivity(unchecked) private(set) var request: WireRequest?
  @exclusivity(unchecked) private(set) var observer: (any TransferObserver)?
  @exclusivity(unchecked) private var completion: Completion?

  @exclusivity(unchecked) var phase = TransferPhase.idle
  @exclusivity(unchecked) var flow = ByteFlow.moving
  @exclusivity(unchecked) private(set) var abortReason: AbortReason?
  /// The attempts to send the request.
  @exclusivity(unchecked) var attempts = SendAttempts(method: "GET")
  @exclusivity(unchecked) var login = LoginExchange()
  @exclusivity(unchecked) var connection = ConnectionSetup()
  @exclusivity(unchecked) var tls = TLSFacts()
  @exclusivity(unchecked) var timing = TransferTiming()
  @exclusivity(unchecked) var count = ByteCount()
  /// The queue that the transfer waits in or was admitted by.
  @exclusivity(unchecked) var hostQueue: HostQueues.Queue?

  @exclusivity(unchecked) var response = ReceivedResponse()
  @exclusivity(unchecked) var destination = BodyDestination.memory
  /// The bytes of a body whose destination is the memory.
  @exclusivity(unchecked) var body = BodyBuffer()

  init?(loop: LoopCore) {
    guard let easy = EasyHandle() else { return nil }
    self.loop = loop
    self.easy = easy
    errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
    errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    setLastingOptions()
    loop.sessions.join(self.easy)
  }

  deinit {
    errorText.deallocate()
  }

  /// Begins the transfer of a request, without sending anything yet.
  func begin(_ request: WireRequest, ticket: UInt64, observer: any TransferObserver, completion: Completion) {
    self.ticket = ticket
    self.observer = observer
    self.completion = completion
    self.request = request
    attempts = SendAttempts(method: request.method)
    setVerbose(false)
    setFresh(false)
    restartResponse()
    phase = .withheld
    abortReason = nil
    login = LoginExchange()
    connection.restart()
    tls = TLSFacts()
    count = ByteCount()
    count.expectedToSend = request.body.count
    errorText[0] = 0
    timing = TransferTiming(
      start: Clock.wall(), now: loop.now, idleLimit: request.idleTimeout.map(Clock.nanoseconds) ?? .max,
      deadline: request.deadline.map { Clock.now(plus: ContinuousClock.now.duration(to: $0)) } ?? .max)
  }

  /// Forgets the bytes that arrived, because another response begins.
  func restartResponse() {
    // The options are large, and a copy of them counts many references.
    guard let profile = request?.profile else { return }
    response.restart(
      headerSizeLimit: profile.options.headerSizeLimit, bodySizeLimit: profile.options.bodySizeLimit)
  }

  /// The time at which silence or the deadline ends the transfer.
  var expiry: UInt64 { timing.expiry(phase, flow) }

  /// Notes why the transfer is given up. Of several reasons, the highest counts.
  func abort(because reason: AbortReason) {
    abortReason = AbortReason.highest(abortReason, reason)
  }

  func abort(with failure: TransportFailure) { abort(because: .failure(failure)) }

  /// Releases everything of the request, once. A sink that cannot finish changes the outcome. Returns the completion.
  func finish(_ outcome: inout Outcome) -> Completion {
    guard let completion else { preconditionFailure("a transfer ended twice") }
    self.completion = nil
    attempts.leaveStream()
    let failure = closeBodies()
    observer?.transferEnded()
    observer = nil
    request = nil
    if let failure, case .success(let response) = outcome {
      outcome = .failure(TransportFailure(failure.kind, failure.message, metrics: response.metrics))
    }
    if case .failure(let failure) = outcome { outcome = .failure(withPartialResponse(failure)) }
    body.clear()
    flow = .moving
    if !phase.isLent { phase = .idle }
    return completion
  }
}

extension Transfer {
  /// Whether other transfers may use the same connection, as far as is known.
  var mayShareConnection: Bool {
    applied.httpVersion == ccurl_http_2_tls && hostQueue?.multiplexes != false
  }

  /// Whether the connection carries many requests at a time; `nil` before the head has arrived.
  var multiplexes: Bool? {
    guard let version = response.assembly.head?.version else { return nil }
    guard !applied.isClosing else { return false }
    return version == .http2 || version == .http3
  }

  /// Returns the failure of a transfer whose time is over.
  func timeout() -> TransportFailure {
    let host = request?.origin.host ?? "The host"
    let message =
      timing.deadline <= loop.now
      ? "The transfer from \(host) was not complete in time (timeoutIntervalForResource)."
      : "\(host) was silent for \(Double(timing.idleLimit / 1_000_000) / 1000) seconds (timeoutIntervalForRequest)."
    return TransportFailure(.timedOut, message, metrics: metricsSoFar())
  }
}
