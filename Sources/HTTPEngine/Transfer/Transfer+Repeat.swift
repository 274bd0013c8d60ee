import CCurl
import HTTPWire

/// The attempts to send the request of one transfer.
struct SendAttempts {
  /// The reason for which a connection that libcurl chose is not used. Nothing was sent on it.
  enum UnusableConnection {
    /// The connection has unread bytes, or the server has closed it.
    case unreadInput
    /// The connection speaks HTTP/2, and the server requires HTTP/1.1.
    case needsHTTP1
  }

  var decision: RepeatDecision
  /// Whether an attempt was allowed since the handle was given to libcurl.
  var isUnderWay = false
  /// Whether the connection of the attempt speaks HTTP/2.
  var isHTTP2 = false
  /// The number of bytes of requests that were sent before the attempt.
  var bytesBefore = 0
  /// Whether libcurl reported that the server did not process the request.
  var isRefused = false
  var unusableConnection: UnusableConnection?
  /// Whether the server reset the stream with HTTP_1_1_REQUIRED.
  var requiresHTTP1 = false
  /// The head of the attempt, if it is observed.
  var sentHead: [UInt8] = []

  /// The frames of the connection of the attempt, if they are observed.
  private(set) var connection: ConnectionRecord?
  private(set) var stream: StreamRecord?
  /// The number of turns without bytes since the stream is over.
  var idleTurns = 0
  /// Whether libcurl is opening a connection for the next attempt.
  var isConnecting = false

  init(method: String) { decision = RepeatDecision(method: method) }

  /// Observes the stream that libcurl is about to open on a connection.
  mutating func observe(_ connection: ConnectionRecord?) {
    leaveStream()
    idleTurns = 0
    isConnecting = false
    self.connection = connection
    stream = connection?.add()
  }

  /// Removes the stream of the attempt from its connection.
  mutating func leaveStream() {
    if let connection, let stream { connection.remove(stream) }
    connection = nil
    stream = nil
  }

  /// Begins again with a handle that has sent nothing.
  mutating func restart() {
    leaveStream()
    isConnecting = false
    isUnderWay = false
    isRefused = false
    unusableConnection = nil
  }
}

// A server may close a connection at any moment between two requests (RFC 9112 §9.6), or refuse streams without
// processing them (RFC 9113 §8.7). The engine decides whether such a request is sent again, because libcurl would
// repeat any request that got no response on a reused connection.
extension Transfer {
  /// Decides whether the request may be sent on a connection. Called before each attempt of libcurl to send it.
  func attemptMayBegin(on ports: RetainedSockets.Ports) -> Bool {
    if attempts.isUnderWay, !mayContinue() { return false }
    let isHTTP2 = speaksHTTP2
    connection.ports = ports
    if isHTTP2, ccurl_new_connections(easy.raw) > 0 { noteConnection(ports) }
    attempts.unusableConnection = unusability(isHTTP2, ports)
    guard attempts.unusableConnection == nil, rewindBody() else { return false }
    if isHTTP2 { easy.history.insert(.http2) }
    attempts.isUnderWay = true
    attempts.isHTTP2 = isHTTP2
    attempts.isRefused = false
    attempts.bytesBefore = ccurl_request_bytes(easy.raw)
    attempts.observe(isHTTP2 ? frames : nil)
    // If frames are not observed, only libcurl's messages show whether a stream was refused. Reading them costs time.
    if isHTTP2, attempts.stream == nil, !attempts.decision.isIdempotent || attempts.decision.hasRepeated {
      setVerbose(true)
    }
    beginWire()
    return true
  }

  /// The record of the frames of the connection, if they are observed.
  private var frames: ConnectionRecord? {
    ccurl_tls_session(easy.raw).flatMap { Handshake.frames(of: OpaquePointer($0)) }
  }

  private func unusability(_ isHTTP2: Bool, _ ports: RetainedSockets.Ports) -> SendAttempts
    .UnusableConnection?
  {
    guard !isHTTP2 else { return attempts.requiresHTTP1 ? .needsHTTP1 : nil }
    return applied.isConnecting || hasNoUnreadBytes(ports) ? nil : .unreadInput
  }

  /// Whether libcurl may send another request by itself.
  private func mayContinue() -> Bool {
    if login.requestBegins() { return true }
    noteRequiredVersion()
    let evidence = evidence
    if !isAborted, hasNoResponse, hasRepeatableBody,
      attempts.decision.mayRepeat(after: evidence, usedConnection: true)
    {
      restartResponse()
      return true
    }
    if !isAborted { abort(with: TransportFailure(.connectionLost, unansweredMessage(evidence))) }
    return false
  }

  /// Whether a failure of the engine's own is the outcome.
  private var isAborted: Bool { abortReason?.failure != nil }

  /// Rewinds the body, because libcurl before 8.7 can repeat an upload without rewinding it.
  private func rewindBody() -> Bool {
    guard count.sent > 0, applied.content == .read else { return true }
    return bodyRewound(to: 0) == Int(CURL_SEEKFUNC_OK)
  }

  /// Whether no line of a head and no byte of a body has arrived. libcurl 7.88 drops the bytes that arrive in one read
  /// with RST_STREAM.
  private var hasNoResponse: Bool {
    if attempts.stream?.hasResponse == true { return false }
    var facts = ccurl_facts()
    ccurl_read_facts(easy.raw, &facts)
    return response.assembly.head == nil && facts.header_bytes == 0 && facts.downloaded == 0
  }

  private var hasRepeatableBody: Bool { count.sent == 0 || request?.body.isRepeatable != false }

  /// The evidence about the last attempt.
  private var evidence: RepeatDecision.Evidence {
    if attempts.isRefused { return .refused }
    if let connection = attempts.connection, let stream = attempts.stream {
      if connection.isRefused(stream) { return .refused }
      if connection.isUnsent(stream) { return .notSent }
    }
    return attempts.isUnderWay && ccurl_request_bytes(easy.raw) != attempts.bytesBefore ? .unknown : .notSent
  }

  private func noteRequiredVersion() {
    attempts.connection?.confirm()
    if attempts.stream?.resetCode == ConnectionRecord.Code.http11Required { attempts.requiresHTTP1 = true }
  }

  /// Reads a message of libcurl.
  func messageReceived(_ message: UnsafeRawBufferPointer) {
    let isDowngrade = message.starts(with: "Downgrades to HTTP/1.1".utf8)
    guard isDowngrade || message.starts(with: "REFUSED_STREAM".utf8) else { return }
    attempts.isRefused = true
    attempts.requiresHTTP1 = isDowngrade
    // The messages are turned off before the next handshake, because libcurl before 8.5 fails to describe the keys of
    // some certificates.
    setVerbose(false)
  }

  /// Whether the request is sent again after libcurl has ended the transfer.
  func mayRepeat(after code: CURLcode) -> Bool {
    switch code {
    case CURLE_ABORTED_BY_CALLBACK: return !isAborted && attempts.unusableConnection != nil
    case CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_HTTP2: break
    // A connection of HTTP/2 ended before the head.
    case CURLE_PARTIAL_FILE where attempts.isHTTP2: break
    case CURLE_HTTP2_STREAM where evidence == .refused: break
    case CURLE_OK where response.assembly.head == nil && !login.isHolding && !applied.isConnecting: break
    default: return false
    }
    guard !isAborted, !flow.isSuspended, attempts.isUnderWay, hasNoResponse, hasRepeatableBody else {
      return false
    }
    noteRequiredVersion()
    let usedConnection = attempts.isHTTP2 || ccurl_new_connections(easy.raw) == 0
    return attempts.decision.mayRepeat(after: evidence, usedConnection: usedConnection)
  }

  /// Prepares the transfer for sending the request again, on a new connection except for HTTP/2. On HTTP/2 libcurl
  /// would make other transfers wait for the new connection, sometimes forever.
  func prepareRepeat() {
    switch attempts.unusableConnection {
    case .needsHTTP1: setFresh(true)
    case .unreadInput, nil: setFresh(!attempts.isHTTP2 && hostQueue?.multiplexes != true)
    }
    attempts.restart()
    login.restart()
    restartResponse()
    body.clear()
    count.sent = 0
    errorText[0] = 0
  }

  /// Returns the message for a request that got no response and is not sent again.
  func unansweredMessage(_ evidence: RepeatDecision.Evidence) -> String {
    let host = request?.origin.host ?? "The host"
    let method = applied.method
    switch evidence {
    case .refused:
      return "\(host) refused the \(method) request without processing it; it was not sent again\(reason)."
    case .notSent: return "The connection to \(host) ended before the \(method) request was sent."
    case .unknown:
      let warning = "The server may have processed the \(method) request, so it was not sent again."
      return "\(host) closed the connection without a response. \(warning)"
    }
  }

  private var reason: String {
    hasRepeatableBody ? " because the server did so too often" : " because its body can be read only once"
  }

  /// Returns a sentence for a failure of a request that the server may have processed; an empty text for other
  /// failures.
  func warning(for failure: TransportFailure.Kind) -> String {
    guard failure == .connectionLost, attempts.isUnderWay, response.assembly.head == nil,
      !attempts.decision.isIdempotent,
      evidence == .unknown
    else { return "" }
    return " The server may have processed the \(applied.method) request, so it was not sent again."
  }

  func setVerbose(_ isVerbose: Bool) {
    guard isVerbose != applied.isVerbose else { return }
    applied.isVerbose = isVerbose
    easy.set(CURLOPT_VERBOSE, isVerbose)
  }

  /// Sets whether libcurl has to make a new connection.
  func setFresh(_ isFresh: Bool) {
    guard isFresh != applied.isFresh else { return }
    applied.isFresh = isFresh
    easy.set(CURLOPT_FRESH_CONNECT, isFresh)
  }

  /// Sets whether libcurl closes the connection after the request.
  func setClosing(_ isClosing: Bool) {
    guard isClosing != applied.isClosing else { return }
    applied.isClosing = isClosing
    easy.set(CURLOPT_FORBID_REUSE, isClosing)
  }
}
