import CCurl
import FoundationEssentials
import Glibc
import HTTPWire

/// One easy handle and the request that it carries; pooled and used again. Belongs to the loop thread:
/// libcurl calls back on it, and nobody else touches it. For that reason its properties, and those of
/// the loop, go without the run-time checks for overlapping access, which cost a percent of a request.
final class Transfer {
  typealias Outcome = Result<WireResponse, TransportFailure>

  /// The completion of a transfer; called exactly once.
  enum Completion {
    case continuation(UnsafeContinuation<Outcome, Never>)
    /// Called on the thread of the loop, while the transfer ends.
    case callback(any TransferCompletion)

    func call(with outcome: consuming Outcome) {
      switch self {
      case .continuation(let continuation): continuation.resume(returning: outcome)
      case .callback(let completion): completion.transferEnded(outcome)
      }
    }
  }

  /// The loop whose thread this belongs to; it outlives its transfers.
  unowned(unsafe) let loop: LoopCore
  @exclusivity(unchecked) var easy: EasyHandle
  /// The URL that ``easy`` is set to; it reads there.
  let parsedURL = ParsedURL()
  /// Where libcurl writes its own words about a failure.
  let errorText: UnsafeMutablePointer<CChar>
  @exclusivity(unchecked) var applied = AppliedOptions()
  @exclusivity(unchecked) var headers = HeaderList()
  @exclusivity(unchecked) var overrides = HeaderList()
  @exclusivity(unchecked) var addresses = HeaderList()

  @exclusivity(unchecked) private(set) var ticket: UInt64 = 0
  @exclusivity(unchecked) private(set) var request: WireRequest?
  @exclusivity(unchecked) private(set) var observer: (any TransferObserver)?
  @exclusivity(unchecked) private var completion: Completion?

  @exclusivity(unchecked) var assembly = ResponseAssembly()
  /// Whether the last output was a part of a head's line, and not its end.
  @exclusivity(unchecked) var endsInsideLine = false
  @exclusivity(unchecked) var chunks = Chunks()
  @exclusivity(unchecked) var body = BodyBuffer()
  /// Takes the body of the response at hand, if it is not collected.
  @exclusivity(unchecked) var sink: (any BodySink)?
  /// Whether the body of the response at hand is read for nothing.
  @exclusivity(unchecked) var isDiscarding = false
  /// The content codings of the response at hand.
  @exclusivity(unchecked) var coding = BodyCoding()
  /// The end of the connection, if that is to be the end of the body.
  @exclusivity(unchecked) var closure: ConnectionClosure?
  /// Whether the end of the stream is to be the end of the body.
  @exclusivity(unchecked) var endsWithStream = false
  @exclusivity(unchecked) var count = ByteCount()
  /// The head of a 401 that libcurl may answer by itself, on a connection that it authenticates.
  @exclusivity(unchecked) var heldHead: ResponseHead?
  /// How many such heads there have been.
  @exclusivity(unchecked) var heldCount = 0
  /// Why the transfer was broken off by us, when libcurl only knows that a callback refused.
  @exclusivity(unchecked) var failure: TransportFailure?
  /// The attempts to send the request.
  @exclusivity(unchecked) var attempts = SendAttempts(method: "GET")
  /// Whether an address of the host was refused for not being public.
  @exclusivity(unchecked) var hasRefusedAddress = false
  /// Whether the server has asked for a certificate that somebody wants to choose.
  @exclusivity(unchecked) var isAskedForIdentity = false
  /// The sockets that were opened to connect it.
  @exclusivity(unchecked) var newSockets: [Int32] = []
  /// The TLS of a proxy through which it only connects; libcurl's.
  @exclusivity(unchecked) var proxySession: OpaquePointer?
  /// How many TLS handshakes have begun on the newest of them.
  @exclusivity(unchecked) var handshakes = 0
  @exclusivity(unchecked) var hostQueue: HostQueues.Queue?
  @exclusivity(unchecked) var isInMulti = false
  /// Whether somebody uses its connection although the transfer has ended.
  @exclusivity(unchecked) var isLent = false
  /// Whether it was handed to libcurl as one that may share a connection.
  @exclusivity(unchecked) var isSharing = false
  /// The user suspended the transfer, or it was held back at its head.
  @exclusivity(unchecked) var isClosed = false
  /// libcurl was told to stop reading, by ``pause(_:)`` or by a callback's answer.
  @exclusivity(unchecked) var isPaused = false
  @exclusivity(unchecked) private(set) var startTime: Double = 0
  @exclusivity(unchecked) var lastActivity: UInt64 = 0
  @exclusivity(unchecked) private(set) var idleLimit: UInt64 = .max
  @exclusivity(unchecked) private(set) var deadline: UInt64 = .max
  @exclusivity(unchecked) var tlsVersion: UnsafePointer<CChar>?
  @exclusivity(unchecked) var tlsCipher: UInt16?

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

  /// Takes a request in. Nothing is sent yet.
  func begin(_ request: WireRequest, ticket: UInt64, observer: any TransferObserver, completion: Completion) {
    self.ticket = ticket
    self.observer = observer
    self.completion = completion
    self.request = request
    attempts = SendAttempts(method: request.method)
    setVerbose(false)
    hasRefusedAddress = false
    isAskedForIdentity = false
    if !newSockets.isEmpty { newSockets.removeAll(keepingCapacity: true) }
    setFresh(false)
    restartAssembly()
    heldHead = nil
    heldCount = 0
    handshakes = 0
    proxySession = nil
    count = ByteCount()
    count.expectedToSend = request.body.count
    failure = nil
    errorText[0] = 0
    tlsVersion = nil
    tlsCipher = nil
    lastActivity = loop.now
    startTime = Clock.wall()
    idleLimit = request.idleTimeout.map(Clock.nanoseconds) ?? .max
    deadline = request.deadline.map { Clock.now(plus: ContinuousClock.now.duration(to: $0)) } ?? .max
    isClosed = false
  }

  func restartAssembly() {
    // The options are large, and a copy of them counts many references.
    guard let profile = request?.profile else { return }
    assembly.restart(
      headSizeLimit: profile.options.headerSizeLimit, bodySizeLimit: profile.options.bodySizeLimit)
    endsInsideLine = false
    if chunks.hasBegun { chunks = Chunks() }
    coding = BodyCoding()
    closure = nil
    endsWithStream = false
  }

  /// When silence or the deadline ends the transfer; one that waits for us (suspended,
  /// in its queue, for more to send or for room) does not time out.
  var expiry: UInt64 {
    guard isInMulti, !isClosed, !isPaused else { return deadline }
    let idle = lastActivity.addingReportingOverflow(idleLimit)
    return min(deadline, idle.overflow ? .max : idle.partialValue)
  }

  /// Releases everything of the request, once. Returns the completion of the outcome, which may be another one by now.
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
    isClosed = false
    isPaused = false
    return completion
  }
}

extension Transfer {
  /// Whether others may be on its connection, as far as is known.
  var mayShareConnection: Bool {
    applied.httpVersion == ccurl_http_2_tls && hostQueue?.multiplexes != false
  }

  /// Whether the connection carries many requests at a time; `nil` before the head tells.
  var multiplexes: Bool? {
    guard let version = assembly.head?.version else { return nil }
    guard !applied.isClosing else { return false }
    return version == .http2 || version == .http3
  }

  /// What ends the transfer when its time is over.
  func timeout() -> TransportFailure {
    let host = request?.origin.host ?? "The host"
    let message =
      deadline <= loop.now
      ? "The transfer from \(host) was not complete in time (timeoutIntervalForResource)."
      : "\(host) was silent for \(Double(idleLimit / 1_000_000) / 1000) seconds (timeoutIntervalForRequest)."
    return TransportFailure(.timedOut, message, metrics: metricsSoFar())
  }
}
