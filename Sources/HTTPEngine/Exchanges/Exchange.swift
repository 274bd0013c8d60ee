import FoundationEssentials
import HTTPSystem
import HTTPWire

/// One request and its response, from its submission to its outcome, whatever version of HTTP carries it. Exchanges
/// are pooled.
///
/// An exchange belongs to the loop's thread, so its properties have no run-time checks for overlapping access.
final class Exchange {
  typealias Outcome = Result<WireResponse, TransportFailure>

  enum ExchangePhase {
    /// The exchange is in the pool and has no request.
    case idle
    /// The exchange has a request and is in no queue: it has just begun, or it was suspended before its turn.
    case withheld
    /// The exchange waits in the queue of its host, or was admitted and is about to start.
    case queued
    /// The exchange was admitted, and waits for a connection.
    case connecting
    /// A connection carries the exchange.
    case running

    /// Whether the exchange has left its queue.
    var isAdmitted: Bool {
      switch self {
      case .idle, .withheld, .queued: false
      case .connecting, .running: true
      }
    }
  }

  /// The times of the attempt to send the request that counts, on the monotonic clock; 0 for what has not happened.
  struct Times {
    /// The times at which the steps of a failed connection attempt ended.
    var connecting = ConnectionFacts.Times()
    var requestStart: UInt64 = 0
    /// The time at which the system had accepted the whole request.
    var requestEnd: UInt64 = 0
    /// The time of the first byte of a response.
    var responseStart: UInt64 = 0
    /// The time of the last byte of a response, if it was read together with the first one.
    var responseEnd: UInt64 = 0
  }

  /// The sizes of what was sent and received, in bytes.
  struct Sizes {
    var requestHead: Int64 = 0
    var responseHead: Int64 = 0
    /// The body before decoding, with its framing.
    var responseBody: Int64 = 0
  }

  /// The table that keeps the exchange for other requests, until the loop ends.
  let table: LoopExchanges
  @exclusivity(unchecked) private(set) var ticket: UInt64 = 0
  @exclusivity(unchecked) private(set) var request: WireRequest?
  @exclusivity(unchecked) private(set) var observer: (any TransferObserver)?
  @exclusivity(unchecked) private var completion: (any TransferCompletion)?
  @exclusivity(unchecked) var priority: Float = 0.5
  /// Whether the bytes of the exchange are observed.
  @exclusivity(unchecked) private(set) var isObserved = false

  @exclusivity(unchecked) var phase = ExchangePhase.idle
  @exclusivity(unchecked) var flow = ExchangeFlow()
  @exclusivity(unchecked) var timing = ExchangeTiming()
  @exclusivity(unchecked) var times = Times()
  @exclusivity(unchecked) var sizes = Sizes()
  @exclusivity(unchecked) var count = ByteCount()
  /// The limits of the phases of the exchange; `nil` without any.
  @exclusivity(unchecked) var phaseTimer: PhaseTimer?
  /// The time at which the content is sent without the response 100; `.max` if it does not wait for one.
  @exclusivity(unchecked) var continueTime: UInt64 = .max
  /// The time at which a request that was refused is sent again; `.max` if it was not.
  @exclusivity(unchecked) var repeatTime: UInt64 = .max
  @exclusivity(unchecked) var bandwidth: BandwidthMeter?
  /// The positions among the exchanges that wait for bandwidth. A direction has none if its bytes have moved since.
  @exclusivity(unchecked) var throttlePositions: [BandwidthMeter.Direction: UInt64] = [:]
  @exclusivity(unchecked) var hostQueue: HostQueues.Queue?
  /// The connections that can carry the exchange.
  @exclusivity(unchecked) var pool: Pool?
  /// The connection that carries the exchange.
  @exclusivity(unchecked) var connection: (any Connection)?
  @exclusivity(unchecked) var isReused = false
  /// Whether the connection may have ended for another reason than the request, because it was idle before, or has
  /// carried another exchange.
  @exclusivity(unchecked) var mayFollowAnEnd = false

  @exclusivity(unchecked) var decision = RepeatDecision(method: "GET")
  /// Whether the exchange needs a connection that has carried no other, because one has just ended without a response.
  @exclusivity(unchecked) var needsNewConnection = false
  /// Whether a field of the caller authenticates the connection.
  @exclusivity(unchecked) private var hasFieldOfConnection = false
  /// Whether the server has refused the request over HTTP/2 with HTTP_1_1_REQUIRED.
  @exclusivity(unchecked) var requiresHTTP1 = false
  /// Whether the server has refused `Expect` with 417.
  @exclusivity(unchecked) var omitsExpect = false
  /// The login that the exchange is in; `nil` without one.
  @exclusivity(unchecked) var login: ExchangeLogin?
  /// Whether the source of the body was started, and whether bytes of it were read since.
  @exclusivity(unchecked) var hasStartedSource = false
  @exclusivity(unchecked) var hasReadSource = false
  /// The caller's reply to the request for trailers; `nil` before the content has ended.
  @exclusivity(unchecked) var trailerReply: TrailerReply?
  /// The bytes of the head that was sent, for the observer of the bytes.
  @exclusivity(unchecked) var sentHead: [UInt8] = []

  @exclusivity(unchecked) var head: ResponseHead?
  @exclusivity(unchecked) var destination = BodyDestination.memory
  /// The body of the response, if it is discarded.
  @exclusivity(unchecked) var dropped: DroppedBody?
  @exclusivity(unchecked) var body = BodyBuffer()
  /// The trailer fields of the response; `nil` without any.
  @exclusivity(unchecked) var trailers: FieldBlock?
  @exclusivity(unchecked) var coding = BodyCoding()

  init(_ table: LoopExchanges) { self.table = table }

  /// The loop of the exchange, which outlives it.
  var core: LoopCore { table.core }

  /// Begins the exchange of a request, without sending anything yet.
  func begin(
    _ request: WireRequest, ticket: UInt64, observer: any TransferObserver, completion: any TransferCompletion
  ) {
    self.ticket = ticket
    self.request = request
    self.observer = observer
    self.completion = completion
    priority = request.priority
    phase = .withheld
    flow = ExchangeFlow()
    count = ByteCount()
    count.expectedToSend = request.bodyCount
    isObserved = request.isObserved
    decision = RepeatDecision(method: request.method, isIdempotent: request.isIdempotent)
    hasFieldOfConnection = request.hasFieldOfConnection
    needsNewConnection = hasFieldOfConnection
    omitsExpect = false
    requiresHTTP1 = false
    login = nil
    hasStartedSource = false
    hasReadSource = false
    isReused = false
    mayFollowAnEnd = false
    timing = ExchangeTiming(
      start: Clock.wall(), now: table.now, idleLimit: request.idleTimeout.map(Clock.nanoseconds) ?? .max,
      limitsAnswer: request.isQuestion, deadline: request.deadline?.nanoseconds ?? .max)
    phaseTimer = request.phaseLimits.map { PhaseTimer($0) }
    if bandwidth != nil || request.isThrottled { beginThrottling(request) }
  }

  /// Forgets what was sent and received, because the request is sent again.
  func restart() {
    // The phases start over, and so does the content, whatever its end waited for.
    phaseTimer?.begin()
    flow.proceed()
    alignPhaseTimer()
    // The time for another connection is its own.
    if let addresses = request?.addresses, addresses.searchTime > .zero {
      request = request?.changing { $0.addresses?.searchTime = .zero }
    }
    times = Times()
    sizes = Sizes()
    count.sent = 0
    count.received = 0
    continueTime = .max
    repeatTime = .max
    trailerReply = nil
    head = nil
    trailers = nil
    dropped = nil
    sentHead = []
    coding = BodyCoding()
    body.clear()
  }

  /// Whether HTTP/2 may carry the exchange.
  var mayMultiplex: Bool {
    guard let request, !requiresHTTP1 else { return false }
    return request.mayMultiplex
  }

  /// Whether the connection carries many requests at a time; `nil` before the head has arrived.
  var multiplexes: Bool? { head == nil ? nil : connection?.multiplexes }

  /// Whether the connection is authenticated for this exchange alone, so that no other one may use it.
  var bindsConnection: Bool { hasFieldOfConnection || login?.bindsConnection == true }

  var hostName: String { request?.origin.host ?? "the host" }

  /// The most bytes that the sink gets at a time.
  var pieceLimit: Int {
    guard case .sink(let sink) = destination, !(sink is FileSink) else { return .max }
    return BodyPiece.size
  }

  /// Releases everything of the request, once. A sink that cannot finish changes the outcome. Returns the completion.
  func finish(_ outcome: inout Outcome) -> any TransferCompletion {
    guard let completion else { preconditionFailure("an exchange ended twice") }
    self.completion = nil
    let failure = closeBodies()
    observer?.transferEnded()
    observer = nil
    if isObserved { request?.wireObserver?.wireEnded() }
    request = nil
    if let failure, case .success(let response) = outcome {
      outcome = .failure(TransportFailure(failure.kind, failure.message, metrics: response.metrics))
    }
    if case .failure(let failure) = outcome, let head {
      outcome = .failure(
        failure.with(partial: TransportFailure.PartialResponse(head: head, body: body.take())))
    }
    pool = nil
    connection = nil
    login = nil
    phase = .idle
    restart()
    return completion
  }

  /// Releases source and sink. Returns the failure of a sink that cannot finish.
  private func closeBodies() -> TransportFailure? {
    if let source = request?.source { source.stop() }
    defer { destination = .memory }
    guard case .sink(let sink) = destination else { return nil }
    return sink.finish()
  }

  /// The function that a source calls when it has more bytes, and a sink when it has room. Callable from any thread.
  var wakeUp: @Sendable () -> Void {
    guard let owner = core.owner else { return {} }
    let ticket = ticket
    return { [weak owner] in owner?.post(.proceed(ticket: ticket)) }
  }
}

/// The times and the time limits of one exchange. Pure: the caller reads the clocks.
struct ExchangeTiming: Sendable {
  /// The start of the exchange, in seconds since 1970.
  let start: Double
  /// The start on the monotonic clock, in nanoseconds like the other times.
  let begun: UInt64
  /// The time at which the exchange left its queue; 0 before.
  var started: UInt64 = 0
  /// The last time at which bytes moved or were allowed to move.
  var lastActivity: UInt64
  /// The longest silence, in nanoseconds.
  let idleLimit: UInt64
  /// Whether that limits the whole answer, even if bytes move.
  let limitsAnswer: Bool
  /// The end of the whole exchange, on the monotonic clock.
  let deadline: UInt64

  init(
    start: Double = 0, now: UInt64 = 0, idleLimit: UInt64 = .max, limitsAnswer: Bool = false,
    deadline: UInt64 = .max
  ) {
    self.start = start
    begun = now
    lastActivity = now
    self.idleLimit = idleLimit
    self.limitsAnswer = limitsAnswer
    self.deadline = deadline
  }

  /// Returns the microseconds from the start of the exchange to a time; −1 for 0.
  func microseconds(_ time: UInt64) -> Int64 {
    time == 0 ? -1 : Int64(clamping: (max(time, begun) - begun) / 1000)
  }
}
