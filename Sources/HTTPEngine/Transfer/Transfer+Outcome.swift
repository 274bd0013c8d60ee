import CCurl
import Glibc

package import HTTPWire

extension Transfer {
  /// Returns the outcome for libcurl's result.
  func outcome(_ code: CURLcode) -> Outcome {
    var code = code
    if login.isHolding, code == CURLE_OK || (code == CURLE_WRITE_ERROR && login.isTooLong) {
      code = releaseHead() ? CURLE_OK : code
    }
    var facts = ccurl_facts()
    ccurl_read_facts(easy.raw, &facts)
    let metrics = metrics(facts)
    if let abortReason, abortReason.isCause(of: Self.ending(code)) {
      return .failure(failure(of: abortReason, code).with(metrics: metrics))
    }
    if lacksDroppedBodyOnly || endsLogin(code) { code = CURLE_OK }
    if code != CURLE_OK,
      let failure = descriptorFailure(code, metrics) ?? proxyFailure(code, facts, metrics)
        ?? socketFailure(code, metrics)
    {
      return .failure(failure)
    }
    guard code == CURLE_OK else {
      let failure =
        oversizedHead(code, facts)?.with(metrics: metrics)
        ?? CurlFailure.failure(
          code, detail: String(cString: errorText), host: request?.origin.host ?? "the host",
          isSecure: request?.origin.scheme != "http", verifyResult: facts.verify_result,
          isInHead: response.assembly.head == nil && facts.first_byte > 0,
          hasResponse: facts.first_byte > 0, metrics: metrics)
      let complete = failure.with(addition: warning(for: failure.kind))
      return .failure(
        code == CURLE_OPERATION_TIMEDOUT ? complete.with(phase: connectingPhase) : complete)
    }
    return completed(metrics)
  }

  /// Whether libcurl ended because it was kept from sending another request of a login that the server has refused.
  private func endsLogin(_ code: CURLcode) -> Bool {
    login.isOver && [CURLE_ABORTED_BY_CALLBACK, CURLE_COULDNT_CONNECT].contains(code)
  }

  private static func ending(_ code: CURLcode) -> AbortReason.Ending {
    switch code {
    case CURLE_OK: .completed
    case CURLE_COULDNT_CONNECT: .cannotConnect
    default: .failed
    }
  }

  private func failure(of reason: AbortReason, _ code: CURLcode) -> TransportFailure {
    switch reason {
    case .failure(let failure): return failure
    case .privateAddress: return refusedAddress
    case .identityRequested:
      let host = request?.origin.host ?? "The host"
      return TransportFailure(
        .identityUndecided, "\(host) asks for a client certificate.", curlCode: Int32(code.rawValue))
    }
  }

  /// Whether the response is complete except for a body that is not wanted, such as that of a redirect.
  var lacksDroppedBodyOnly: Bool {
    destination.isDiscarded && response.assembly.head != nil && !login.isHolding
  }

  /// Returns the outcome of a transfer that libcurl takes for complete.
  private func completed(_ metrics: TransferMetrics) -> Outcome {
    guard let head = response.assembly.head else {
      return .failure(
        TransportFailure(
          .connectionLost,
          "\(request?.origin.host ?? "The host") closed the connection before the head of its response was complete.",
          metrics: metrics))
    }
    if !destination.isDiscarded, let failure = incompleteChunks ?? cutOffBody ?? incompleteBody(of: head) {
      return .failure(failure.with(metrics: metrics))
    }
    return .success(WireResponse(head: head, body: body.take(), metrics: metrics))
  }

  /// Returns the failure of a request whose head is larger than libcurl's buffer of 1 MiB. libcurl reports a lack of
  /// memory.
  private func oversizedHead(_ code: CURLcode, _ facts: ccurl_facts) -> TransportFailure? {
    guard code == CURLE_OUT_OF_MEMORY || code == ccurl_too_large, facts.first_byte == 0, let request
    else { return nil }
    let urlSize = request.url.utf8.count
    let size = request.fields.reduce(urlSize) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
    guard size > 1_000_000 else { return nil }
    let part = urlSize > size / 2 ? "The URL" : "The header"
    return TransportFailure(
      .badURL,
      "\(part) of the request is too large: URL and header fields together have \(size) bytes, and at most 1,000,000 can be sent. Send large values in the body.",
      curlCode: Int32(code.rawValue))
  }

  private func descriptorFailure(_ code: CURLcode, _ metrics: TransferMetrics) -> TransportFailure? {
    CurlFailure.lackOfDescriptors(
      Int32(code.rawValue), host: request?.origin.host ?? "the host",
      systemError: Int32(ccurl_system_error(easy.raw)), metrics: metrics)
  }

  /// Returns the failure of a connection through a Unix-domain socket, which has no port.
  private func socketFailure(_ code: CURLcode, _ metrics: TransferMetrics) -> TransportFailure? {
    guard code == CURLE_COULDNT_CONNECT, let path = request?.profile.options.unixSocket else { return nil }
    let reason = String(cString: strerror(Int32(ccurl_system_error(easy.raw))))
    return TransportFailure(
      .cannotConnectToHost,
      "The Unix-domain socket \(path) does not accept the connection: \(reason). Check its path, and that the server runs.",
      curlCode: Int32(code.rawValue), metrics: metrics)
  }

  /// Returns `failure` with the head and the collected bytes that arrived before it, if a head was delivered.
  func withPartialResponse(_ failure: TransportFailure) -> TransportFailure {
    // A held head belongs to a challenge that libcurl was about to answer.
    guard let head = response.assembly.head, !login.isHolding else { return failure }
    return failure.with(partial: TransportFailure.PartialResponse(head: head, body: body.take()))
  }

  private func proxyFailure(_ code: CURLcode, _ facts: ccurl_facts, _ metrics: TransferMetrics)
    -> TransportFailure?
  {
    guard let proxy = applied.proxy else { return nil }
    var status = 0
    var reply = 0
    ccurl_read_proxy(easy.raw, &status, &reply)
    let meaning = CurlFailure.proxyMeaning(
      code, proxy, status: status, reply: reply, isConnected: facts.pretransfer > 0,
      securesServer: connection.hasHandshakeWithServer(behind: proxy.kind),
      securesProxy: connection.lastHandshakeIsOfProxy(proxy.kind) && facts.secure == 0)
    guard let (kind, sentence) = meaning else { return nil }
    let said = errorText[0] == 0 ? String(cString: curl_easy_strerror(code)) : String(cString: errorText)
    return TransportFailure(
      kind,
      "\(sentence.replacing("{host}", with: request?.origin.host ?? "the host")) (libcurl \(code.rawValue): \(said))",
      curlCode: Int32(code.rawValue), metrics: metrics,
      phase: code == CURLE_OPERATION_TIMEDOUT ? connectingPhase : nil)
  }

  /// Returns the metrics of a transfer that libcurl did not end itself. Returns `nil` before the start, because the
  /// handle still has the metrics of the previous transfer.
  func metricsSoFar() -> TransferMetrics? {
    guard phase.isAdded else { return nil }
    var facts = ccurl_facts()
    ccurl_read_facts(easy.raw, &facts)
    return metrics(facts)
  }

  private func metrics(_ facts: ccurl_facts) -> TransferMetrics {
    var values = TransferMetrics.Values()
    // libcurl counts from the end of the time in the queue.
    let queueEnd = Int64(clamping: (max(timing.started, timing.begun) - timing.begun) / 1000)
    values.start = timing.start
    values.queueEnd = queueEnd
    values.isProxyConnection = applied.proxy != nil
    values.isReusedConnection = facts.new_connections == 0 && facts.pretransfer > 0
    if !values.isReusedConnection {
      values.lookupEnd = facts.lookup > 0 ? queueEnd + Int64(facts.lookup) : -1
      values.connectEnd = facts.connect > 0 ? queueEnd + Int64(facts.connect) : -1
      values.secureEnd = facts.secure > 0 ? queueEnd + Int64(facts.secure) : -1
    }
    values.requestStart = facts.pretransfer > 0 ? queueEnd + Int64(facts.pretransfer) : -1
    values.responseStart = facts.first_byte > 0 ? queueEnd + Int64(facts.first_byte) : -1
    // For a body that libcurl reads, that is the time at which the body began to be sent.
    if applied.content == .read { values.responseStart = timing.microseconds(timing.headTime) }
    values.requestEnd = requestEnd(values)
    values.end = queueEnd + Int64(facts.total)
    values.requestHeaderBytes = Int64(facts.request_bytes)
    values.requestBodyBytes = Int64(facts.uploaded)
    values.responseHeaderBytes = Int64(facts.header_bytes)
    values.responseBodyBytes = Int64(facts.downloaded)
    values.decodedBodyBytes = response.assembly.bodyCount
    values.localPort = Int32(facts.local_port)
    values.remotePort = Int32(facts.remote_port)
    return TransferMetrics(
      values: values, version: response.assembly.head?.version ?? .http1_1,
      localAddress: facts.local_address.map { String(cString: $0) } ?? "",
      remoteAddress: facts.remote_address.map { String(cString: $0) } ?? "",
      tlsVersion: tls.version.map { String(cString: $0) }, tlsCipher: tls.cipher,
      requestHead: sentHead)
  }
}

extension Transfer {
  /// Returns the end of the request: the time at which libcurl had the whole body. The body is sent shortly after,
  /// but libcurl before 8.10 does not report that time.
  private func requestEnd(_ values: TransferMetrics.Values) -> Int64 {
    guard applied.content == .read, values.requestStart >= 0 else { return values.requestStart }
    let end = timing.microseconds(timing.bodyEnd)
    guard end >= 0 else { return -1 }
    return values.responseStart < 0
      ? max(values.requestStart, end) : min(max(values.requestStart, end), values.responseStart)
  }
}

/// The reason for which the engine gives up a transfer, where libcurl only knows that a callback refused or that the
/// connection failed. Pure.
package enum AbortReason: Sendable {
  /// An address of the host was refused because it is not public.
  case privateAddress
  /// The server asked for a client certificate that is still to be chosen.
  case identityRequested
  case failure(TransportFailure)

  /// The end of a transfer, as libcurl reports it.
  package enum Ending: Equatable, Sendable { case completed, cannotConnect, failed }

  /// The highest reason counts.
  private var rank: Int {
    switch self {
    case .privateAddress: 0
    case .identityRequested: 1
    case .failure: 2
    }
  }

  package var failure: TransportFailure? {
    if case .failure(let failure) = self { failure } else { nil }
  }

  /// Whether the request must not be sent. Another address of the host may be public.
  package var forbidsRequest: Bool {
    switch self {
    case .privateAddress: false
    case .identityRequested, .failure: true
    }
  }

  /// Returns the reason that counts after `next` was found: the higher one, or the later one of two of the same rank.
  package static func highest(_ previous: AbortReason?, _ next: AbortReason) -> AbortReason {
    guard let previous, previous.rank > next.rank else { return next }
    return previous
  }

  /// Whether this is the cause of an end.
  package func isCause(of ending: Ending) -> Bool {
    switch self {
    // libcurl tries the other addresses, and one of them may have answered.
    case .privateAddress: ending == .cannotConnect
    // Some servers proceed without a certificate. Others end the handshake, with various alerts.
    case .identityRequested: ending != .completed
    case .failure: true
    }
  }
}

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
    return hasNoUnreadBytes(ports) ? nil : .unreadInput
  }

  /// Whether libcurl may send another request by itself.
  private func mayContinue() -> Bool {
    if login.requestBegins() { return true }
    if login.isOver { return false }
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
    case CURLE_OK where response.assembly.head == nil && !login.isHolding: break
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
