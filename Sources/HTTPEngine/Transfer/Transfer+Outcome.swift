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
    if code != CURLE_OK,
      let failure = descriptorFailure(code, metrics) ?? proxyFailure(code, facts, metrics)
        ?? socketFailure(code, metrics)
    {
      return .failure(failure)
    }
    if lacksDiscardedBytesOnly(code) { code = CURLE_OK }
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

  /// Whether only the rest of a discarded body is missing, such as that of a redirect.
  private func lacksDiscardedBytesOnly(_ code: CURLcode) -> Bool {
    guard destination.isDiscarded, response.assembly.head != nil, !login.isHolding else { return false }
    return [CURLE_PARTIAL_FILE, CURLE_RECV_ERROR, CURLE_HTTP2, CURLE_HTTP2_STREAM].contains(code)
  }

  /// Returns the outcome of a transfer that libcurl takes for complete.
  private func completed(_ metrics: TransferMetrics) -> Outcome {
    if applied.isConnecting { return handOver(metrics) }
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
