import CCurl
import COpenSSL
import FoundationEssentials
import Glibc
import HTTPWire

// libcurl calls these functions on the loop's thread, between two reads of the socket. `ResponseAssembly` makes the
// decisions.
extension Transfer {
  func setCallbacks() {
    let context = Unmanaged.passUnretained(self).toOpaque()
    ccurl_set_pointer(easy.raw, CURLOPT_PRIVATE, context)
    ccurl_set_pointer(easy.raw, CURLOPT_WRITEDATA, context)
    ccurl_set_pointer(easy.raw, CURLOPT_HEADERDATA, context)
    ccurl_set_pointer(easy.raw, CURLOPT_READDATA, context)
    ccurl_set_pointer(easy.raw, CURLOPT_SEEKDATA, context)
    setMessageCallbacks()
    setConnectionCallbacks(context)
  }

  /// Sets the callbacks for heads and bodies.
  private func setMessageCallbacks() {
    setWriteCallback()
    ccurl_set_callback(easy.raw, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
      Transfer.of(context)._withUnsafeGuaranteedRef { $0.lineReceived(bytes, size * count) }
    }
    ccurl_set_callback(easy.raw, CURLOPT_READFUNCTION) { bytes, size, count, context in
      Transfer.of(context)._withUnsafeGuaranteedRef { $0.bodyWanted(bytes, size * count) }
    }
    ccurl_set_seek(easy.raw) { context, offset, origin in
      guard origin == SEEK_SET else { return Int32(CURL_SEEKFUNC_CANTSEEK) }
      return Transfer.of(context)._withUnsafeGuaranteedRef { Int32($0.bodyRewound(to: Int64(offset))) }
    }
  }

  /// Sets the callbacks for sockets, handshakes and requests that are about to be sent.
  private func setConnectionCallbacks(_ context: UnsafeMutableRawPointer) {
    ccurl_set_on_socket(
      easy.raw,
      { context, socket, _ in
        // Child processes must not keep connections open. libcurl does not set the flag itself.
        _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
        Transfer.of(context)._withUnsafeGuaranteedRef { $0.socketOpened(socket) }
        return Int32(CURL_SOCKOPT_OK)
      }, context)
    ccurl_set_on_tls(
      easy.raw,
      { _, tls, context in
        guard let tls else { return CURLE_SSL_CONNECT_ERROR }
        let isPrepared = Transfer.of(context)._withUnsafeGuaranteedRef {
          Handshake.prepare(OpaquePointer(tls), for: $0)
        }
        return isPrepared ? CURLE_OK : CURLE_SSL_CERTPROBLEM
      }, context)
    ccurl_set_before_request(
      easy.raw,
      { context, remoteAddress, _, remotePort, localPort in
        let ports = RetainedSockets.Ports(local: localPort, remote: remotePort)
        let isAllowed = Transfer.of(context)._withUnsafeGuaranteedRef {
          $0.connectionIsReady()
          if $0.phaseTimer != nil { $0.requestBegan() }
          return $0.mayReach(remoteAddress) && $0.abortReason?.forbidsRequest != true
            && $0.mayUseAlternative()
            && $0.attemptMayBegin(on: ports)
        }
        return Int32(isAllowed ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT)
      }, context)
    ccurl_set_debug(
      easy.raw,
      { _, kind, text, length, context in
        guard let text else { return 0 }
        let bytes = UnsafeRawBufferPointer(start: text, count: length)
        Transfer.of(context)._withUnsafeGuaranteedRef { $0.reportReceived(kind, bytes) }
        return 0
      }, context)
  }

  private func setWriteCallback() {
    guard CurlLibrary.shared.showsLinesFirst else {
      ccurl_set_callback(easy.raw, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
        Transfer.of(context)._withUnsafeGuaranteedRef { $0.bytesReceived(bytes, size * count) }
      }
      return
    }
    easy.set(CURLOPT_HEADER, true)
    ccurl_set_callback(easy.raw, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
      Transfer.of(context)._withUnsafeGuaranteedRef { $0.outputReceived(bytes, size * count) }
    }
  }

  /// Returns the transfer of a callback or of `CURLOPT_PRIVATE`. The loop keeps it alive as long as its handle is in
  /// use.
  static func of(_ context: UnsafeMutableRawPointer?) -> Unmanaged<Transfer> {
    guard let context else { preconditionFailure("libcurl lost the context of a callback") }
    return Unmanaged.fromOpaque(context)
  }

  /// Makes the loop wake the transfers that wait for the new connection, which may multiplex.
  private func connectionIsReady() {
    guard CurlLibrary.shared.forgetsWaitingTransfers, applied.httpVersion == ccurl_http_2_tls,
      ccurl_new_connections(easy.raw) > 0
    else { return }
    loop.hasNewConnection = true
  }

  private func socketOpened(_ socket: Int32) {
    connection.socketOpened(socket)
    attempts.isConnecting = true
    // libcurl before 8.5 fails to describe the keys of some certificates.
    setVerbose(false)
    noteTime { $0.connectionBegan($1) }
  }

  @inline(__always)
  func bytesMoved() {
    timing.lastActivity = loop.now
    loop.hasMoved = true
  }

  private func lineReceived(_ bytes: UnsafeMutablePointer<CChar>?, _ length: Int) -> Int {
    bytesMoved()
    response.endsInsideLine = false
    let line = UnsafeRawBufferPointer(start: bytes, count: length)
    if login.responseBegins(at: line) { restartResponse() }
    switch response.assembly.lineReceived(line) {
    case .keep: return length
    case .verify(let version):
      if connectionSpeaks(version) { return length }
      refuse(.version(version.text))
      return 0
    case .deliver(let head):
      if head.status == 101, request?.asksForUpgrade != true {
        refuse(.unrequestedUpgrade)
        return 0
      }
      if response.assembly.framing.isAmbiguous(head.version) { setClosing(true) }
      if holds(head) { return login.isTooLong ? 0 : length }
      return headReceived(head) ? length : 0
    case .inform(let head):
      observer?.informationalHeadReceived(head)
      return length
    case .refuseHead:
      refuseHead()
      return 0
    case .refuse(let violation):
      refuse(violation)
      return 0
    }
  }

  func refuseHead() {
    if destination.isDiscarded { return }
    abort(
      with: TransportFailure(
        .dataLengthExceedsMaximum,
        "The header of the response, with its trailers, is larger than \(request?.profile.options.headerSizeLimit ?? 0) bytes. Raise headerSizeLimit if such responses are expected."
      ))
  }

  func refuse(_ violation: HeadViolation) {
    // The rest of a body that is not wanted is no failure. The connection is closed.
    if destination.isDiscarded { return }
    let host = request?.origin.host ?? "the host"
    abort(
      with: TransportFailure(
        .badServerResponse, "The response of \(host) is not valid HTTP: \(violation.message)"))
  }

  /// Whether the connection speaks the version of a status line. libcurl makes such lines for HTTP/2, and also accepts
  /// them from servers on other connections.
  private func connectionSpeaks(_ version: HTTPVersion) -> Bool {
    guard version == .http2 else { return false }
    guard let session = ccurl_tls_session(easy.raw).map({ OpaquePointer($0) }) else {
      return applied.httpVersion == Int(CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE)
    }
    return Self.speaksHTTP2(session)
  }

  /// Delivers a head. Returns false if the response is refused.
  func headReceived(_ head: ResponseHead) -> Bool {
    if let session = ccurl_tls_session(easy.raw).map({ OpaquePointer($0) }) {
      tls = TLSFacts(of: session)
    }
    noteHead()
    if count.expectedToSend > 0, applied.content == .copied, count.sent < count.expectedToSend {
      count.sent = count.expectedToSend
      observer?.bytesMoved(count)
    }
    let disposition = observer?.headReceived(head) ?? .proceed
    if disposition == .discard { return dropBody(of: head) }
    guard chooseCoding(of: head) else { return false }
    let announced = ccurl_expected_length(easy.raw)
    if announced < 0 { observeBodyEnd(of: head) }
    let length = response.coding.isDecoded ? -1 : announced
    count.expectedToReceive = Int64(length)
    // The response to HEAD has the length of a body that is not sent.
    if length > 0, applied.method != "HEAD", request?.sink == nil { reserve(Int64(length)) }
    // libcurl sends nothing more then. Before 8.7 it keeps the pause of a body whose source has no bytes, and the
    // transfer would end only when the source has more.
    if head.status >= 400, flow == .stopped(.sourceEmpty) { wakeUp() }
    if disposition == .hold { _ = flow.suspend() }
    return openDestination(of: head, disposition)
  }

  private func reserve(_ length: Int64) {
    if let limit = request?.profile.options.bodySizeLimit, length > limit { return }
    // A lack of memory is no failure yet, because the server may send less than it announced.
    _ = body.reserve(Int(length))
  }
}

extension Transfer {
  /// Receives the lines of a head before libcurl stores them and calls ``lineReceived(_:_:)``, and the bytes of the
  /// body.
  func outputReceived(_ bytes: UnsafeMutablePointer<CChar>?, _ length: Int) -> Int {
    guard readsHead else { return bytesReceived(bytes, length) }
    guard let bytes, length > 0 else { return length }
    // A line of more than 16 KiB comes in parts. Each line ends with its line feed.
    let isRest = response.endsInsideLine
    response.endsInsideLine = UInt8(bitPattern: bytes[length - 1]) != UInt8(ascii: "\n")
    let first = UInt8(bitPattern: bytes[0])
    guard !isRest, !response.assembly.hasFields, first == UInt8(ascii: " ") || first == UInt8(ascii: "\t")
    else {
      return length
    }
    refuse(.foldBeforeFirstField)
    return 0
  }

  /// Whether the next output is a line of a head. After a head that is held, it is one if libcurl has sent the next
  /// request of the login.
  private var readsHead: Bool {
    response.assembly.head == nil || (login.isHolding && !login.awaitsNextRequest)
  }
}

// The bytes of a request on its connection, for observers. libcurl reports the bytes while `CURLOPT_VERBOSE` is set.
// The option costs time, and is set for observed requests only.
extension Transfer {
  /// Prepares for the bytes of the attempt that libcurl is about to make.
  func beginWire() {
    guard request?.wireObserver != nil else { return }
    attempts.sentHead = []
    setVerbose(true)
  }

  /// Receives what libcurl reports: a message about the transfer, or bytes that it has sent or received.
  func reportReceived(_ kind: curl_infotype, _ bytes: UnsafeRawBufferPointer) {
    if kind == CURLINFO_TEXT { return messageReceived(bytes) }
    guard let observer = request?.wireObserver else { return }
    switch kind {
    case CURLINFO_HEADER_OUT:
      attempts.sentHead += bytes
      observer.bytesMoved(.requestHead, bytes)
    case CURLINFO_DATA_OUT: observer.bytesMoved(.requestBody, bytes)
    case CURLINFO_HEADER_IN: observer.bytesMoved(.responseHead, bytes)
    case CURLINFO_DATA_IN: observer.bytesMoved(.responseBody, bytes)
    default: break
    }
  }

  /// The head of the last request that was sent, if it was observed.
  var sentHead: String? {
    attempts.sentHead.isEmpty ? nil : String(decoding: attempts.sentHead, as: UTF8.self)
  }
}
