import CCurl
import FoundationEssentials
import Glibc
import HTTPWire

/// One easy handle and its request. Transfers are pooled.
///
/// A transfer belongs to the loop's thread, on which libcurl calls back. Therefore its properties, and those of the
/// loop, have no run-time checks for overlapping access, which cost a percent of a request.
final class Transfer: QueuedRequest {
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
  /// The priority in the queue of the host.
  @exclusivity(unchecked) var priority: Float = 0.5

  @exclusivity(unchecked) var phase = TransferPhase.idle
  @exclusivity(unchecked) var flow = ByteFlow.moving
  @exclusivity(unchecked) private(set) var abortReason: AbortReason?
  /// The attempts to send the request.
  @exclusivity(unchecked) var attempts = SendAttempts(method: "GET")
  @exclusivity(unchecked) var login = LoginExchange()
  @exclusivity(unchecked) var connection = ConnectionSetup()
  @exclusivity(unchecked) var tls = TLSFacts()
  @exclusivity(unchecked) var timing = TransferTiming()
  /// The limits of the phases of the transfer; `nil` without any.
  @exclusivity(unchecked) var phaseTimer: PhaseTimer?
  @exclusivity(unchecked) var earlierResponse = EarlierResponse()
  /// The bandwidth of the transfer; `nil` if neither it nor that of the session is limited.
  @exclusivity(unchecked) var bandwidth: BandwidthMeter?
  /// The place among the transfers that wait for bandwidth; `nil` if bytes have moved since.
  @exclusivity(unchecked) var throttlePlace: UInt64?
  @exclusivity(unchecked) var count = ByteCount()
  /// The queue that the transfer waits in or was admitted by.
  @exclusivity(unchecked) var hostQueue: HostQueues.Queue?

  @exclusivity(unchecked) var response = ReceivedResponse()
  @exclusivity(unchecked) var destination = BodyDestination.memory
  /// The body of the response, if it is not wanted.
  @exclusivity(unchecked) var dropped: DroppedBody?
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
    priority = request.priority
    attempts = SendAttempts(method: request.method)
    setVerbose(false)
    setFresh(false)
    restartResponse()
    phase = .withheld
    dropped = nil
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
    if phaseTimer != nil || request.profile.phaseLimits != nil {
      phaseTimer = request.profile.phaseLimits.map { PhaseTimer($0) }
    }
    if bandwidth != nil || request.profile.isThrottled { beginThrottling(request.profile) }
  }

  /// Forgets the bytes that arrived, because another response begins.
  func restartResponse() {
    // The options are large, and a copy of them counts many references.
    guard let profile = request?.profile else { return }
    response.restart(
      headerSizeLimit: profile.options.headerSizeLimit, bodySizeLimit: profile.options.bodySizeLimit)
  }

  /// The time at which silence, the limit of a phase or the deadline ends the transfer.
  var expiry: UInt64 {
    let expiry = min(timing.expiry(phase, flow), dropped?.deadline ?? .max)
    guard let phaseTimer, phase.isAdded else { return expiry }
    return min(expiry, phaseTimer.expiry)
  }

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
    request?.wireObserver?.wireEnded()
    request = nil
    if let failure, case .success(let response) = outcome {
      outcome = .failure(TransportFailure(failure.kind, failure.message, metrics: response.metrics))
    }
    if case .failure(let failure) = outcome { outcome = .failure(withPartialResponse(failure)) }
    body.clear()
    flow = .moving
    phase = .idle
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

}

/// The phase of a transfer, from the pool and back into it. Pure.
package enum TransferPhase: Equatable, Sendable {
  /// The transfer is in the pool and has no request.
  case idle
  /// The transfer has a request and is in no queue: it has just begun, or it was suspended before its turn.
  case withheld
  /// The transfer is in the queue of its host, or was admitted and is about to start.
  case waiting
  /// The handle belongs to libcurl's multi handle.
  case running(sharesConnection: Bool)

  /// Whether the handle belongs to libcurl's multi handle.
  package var isAdded: Bool {
    switch self {
    case .idle, .withheld, .waiting: false
    case .running: true
    }
  }

  /// Whether other transfers may use the connection at the same time, as far as is known.
  package var sharesConnection: Bool {
    switch self {
    case .idle, .withheld, .waiting: false
    case .running(let shares): shares
    }
  }
}

/// The flow of a transfer's bytes between libcurl and the engine. Pure.
///
/// Callbacks stop the flow by their answer, because libcurl 7.88 can lose bytes when it is told to pause from
/// elsewhere. Therefore a suspended transfer is `stopping` until its next callback.
package enum ByteFlow: Equatable, Sendable {
  /// The reason for which libcurl was told to wait.
  package enum Reason: Equatable, Sendable {
    /// The caller suspended the transfer, or the observer held it back at its head.
    case suspended
    /// The sink has no room for more of the response body.
    case sinkFull
    /// The source has no more of the request body at the moment.
    case sourceEmpty
    /// The decoder has produced as many bytes as one turn of the loop allows.
    case turnExhausted
    /// The bandwidth is exhausted.
    case throttled
  }

  case moving
  /// The transfer is suspended, and libcurl was not told yet.
  case stopping
  /// libcurl was told to wait.
  case stopped(Reason)

  /// Whether the caller or the observer suspended the transfer.
  package var isSuspended: Bool { self == .stopping || self == .stopped(.suspended) }

  /// Whether libcurl was told to wait, and has to be told to continue.
  package var isStopped: Bool {
    if case .stopped = self { true } else { false }
  }

  /// Suspends the flow. Returns false if it is suspended.
  package mutating func suspend() -> Bool {
    guard !isSuspended else { return false }
    self = isStopped ? .stopped(.suspended) : .stopping
    return true
  }

  /// Ends the suspension. Returns whether libcurl has to be told to continue. A sink that is still full stops it again.
  package mutating func resume() -> Bool {
    guard isSuspended else { return false }
    defer { self = .moving }
    return isStopped
  }

  /// Notes that libcurl was told to wait. A suspension outlasts every other reason.
  package mutating func stop(_ reason: Reason) {
    self = .stopped(isSuspended ? .suspended : reason)
  }

  /// Notes that a suspended transfer asked to move bytes, and was told to wait. Returns false if it may move them.
  package mutating func stopIfSuspended() -> Bool {
    guard isSuspended else { return false }
    self = .stopped(.suspended)
    return true
  }

  /// Notes that the sink has room or the source has bytes. Returns whether libcurl has to be told to continue.
  package mutating func proceed() -> Bool {
    guard isStopped, !isSuspended else { return false }
    self = .moving
    return true
  }
}

/// The times and the time limits of one transfer. Pure: the caller reads the clocks.
package struct TransferTiming: Sendable {
  /// The start of the transfer, in seconds since 1970.
  package let start: Double
  /// The start on the monotonic clock, in nanoseconds like the other times.
  package let begun: UInt64
  /// The time at which the transfer left its queue; 0 before.
  package var started: UInt64 = 0
  /// The time at which libcurl had the whole body of the request; 0 without a body that libcurl reads.
  package var bodyEnd: UInt64 = 0
  /// The time of the head of the response to such a request; 0 before.
  package var headTime: UInt64 = 0
  /// The last time at which bytes moved or were allowed to move.
  package var lastActivity: UInt64
  /// The longest silence, in nanoseconds.
  package let idleLimit: UInt64
  /// The end of the whole transfer, on the monotonic clock.
  package let deadline: UInt64

  package init(start: Double = 0, now: UInt64 = 0, idleLimit: UInt64 = .max, deadline: UInt64 = .max) {
    self.start = start
    begun = now
    lastActivity = now
    self.idleLimit = idleLimit
    self.deadline = deadline
  }

  /// Returns the microseconds from the start of the transfer to a time; −1 for 0.
  package func microseconds(_ time: UInt64) -> Int64 {
    time == 0 ? -1 : Int64(clamping: (max(time, begun) - begun) / 1000)
  }

  /// Returns the time at which silence or the deadline ends the transfer. A transfer that waits for the caller, its
  /// queue, its source or its sink is not silent.
  package func expiry(_ phase: TransferPhase, _ flow: ByteFlow) -> UInt64 {
    guard phase.isAdded, flow == .moving else { return deadline }
    let idle = lastActivity.addingReportingOverflow(idleLimit)
    return min(deadline, idle.overflow ? .max : idle.partialValue)
  }
}

// libcurl 7.83 to 8.0 keeps, with a handle, the address of the last field of its previous transfer. A response whose
// first field line begins with white space makes libcurl read and free that memory again. 7.88.1 hands each line of a
// head to the write callback before it stores the line (CURLOPT_HEADER), so such a line is refused in time. With the
// other versions, each transfer gets a new handle. See Documentation/Libcurl.md. In every version a handle can keep
// credentials of a proxy that it does not use any more (CVE-2026-9079, -7168).
extension Transfer {
  /// Replaces the handle if traces of earlier transfers could affect the next one. Returns false without memory.
  func prepareHandle() -> Bool {
    let history = easy.history
    if history.contains(.otherProxy) || (history.contains(.transfer) && CurlLibrary.shared.needsNewHandles) {
      guard replaceHandle() else { return false }
    }
    easy.history.insert(.transfer)
    return true
  }

  private func replaceHandle() -> Bool {
    guard var other = EasyHandle(options: easy) else { return false }
    swap(&easy, &other)
    loop.sessions.join(easy)
    // libcurl drops a copied URL and then serializes its parts again.
    if let url = applied.url { easy.set(CURLOPT_URL, url) }
    if applied.addresses != nil { ccurl_set_list(easy.raw, CURLOPT_RESOLVE, lists.addresses.head) }
    if other.history.contains(.http2) { loop.retiredHandles.retire(other) }
    return true
  }

  /// Keeps the memory of a handle that a connection of HTTP/2 could still touch.
  func retireHandle() {
    guard CurlLibrary.shared.touchesEndedHandles, easy.history.contains(.http2),
      var other = EasyHandle(options: easy)
    else { return }
    swap(&easy, &other)
    loop.retiredHandles.retire(other)
  }
}
