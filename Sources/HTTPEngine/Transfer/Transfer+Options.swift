import CCurl
import FoundationEssentials
import HTTPWire

/// The options that an easy handle has. Only options that differ are set again, because most requests of a session
/// differ in the URL alone.
struct AppliedOptions {
  enum Content: Equatable { case none, copied, read }

  var profile: ConnectionProfile?
  var url: String?
  /// The request target, if it is set apart from the URL.
  var target: String?
  var method = "GET"
  var content = Content.none
  /// The fields of the header list; `nil` before the first list.
  var fields: [HTTPHeader]?
  /// Whether the header list was made for a request with a body.
  var hadBody = false
  var httpVersion = -1
  /// Whether the handle has large buffers for bodies.
  var isBulk = false
  /// Whether the body is sent in chunks, because its length is unknown.
  var isChunked = false
  /// Whether a new connection is to be made.
  var isFresh = false
  /// Whether the connection is closed after the request.
  var isClosing = false
  /// The server that is connected to instead of the origin.
  var alternative: AlternativeService?
  /// The addresses of the host, if libcurl does not look them up.
  var addresses: KnownAddresses?
  /// The proxy of the request.
  var proxy: ProxyServer?
  /// The credentials by which the connection is authenticated.
  var login: ConnectionLogin?
  /// Whether libcurl reports messages.
  var isVerbose = false
  /// Whether libcurl reports look-ups of names.
  var observesLookups = false
}

/// The lists that the easy handle of a transfer refers to; libcurl does not copy them.
struct OptionLists: ~Copyable {
  var fields = HeaderList()
  var overrides = HeaderList()
  var addresses = HeaderList()
}

extension Transfer {
  /// The largest body that libcurl copies. Larger bodies are read in place.
  static var largestCopiedBody: Int { 16_384 }

  /// Sets the options that hold for every request of the handle.
  func setLastingOptions() {
    easy.set(CURLOPT_NOSIGNAL, true)
    // Without this option, the end of a transfer blocks the loop's thread until its name look-up is over.
    easy.set(ccurl_quick_exit, true)
    easy.set(CURLOPT_SUPPRESS_CONNECT_HEADERS, true)
    easy.set(CURLOPT_PIPEWAIT, true)
    easy.set(CURLOPT_TCP_KEEPALIVE, true)
    easy.set(CURLOPT_PATH_AS_IS, true)
    ccurl_allow_http_and_https(easy.raw)
    // Chunks are read by ``bytesReceived(_:_:)``.
    easy.set(CURLOPT_HTTP_TRANSFER_DECODING, false)
    setNoProxy()
    ccurl_set_pointer(easy.raw, CURLOPT_ERRORBUFFER, errorText)
    // ``Handshake`` verifies the host name with the rest of the certificate.
    easy.set(CURLOPT_SSL_VERIFYHOST, 0)
    // libcurl repeats a request of any method when a reused connection ends without a response. libcurl never does so
    // for this RTSP request, which has no meaning for HTTP.
    easy.set(CURLOPT_RTSP_REQUEST, Int(CURL_RTSPREQ_RECEIVE))
    setCallbacks()
  }

  /// Sets the options of `request`. Returns the failure if it cannot be sent.
  func configure(_ request: WireRequest) -> TransportFailure? {
    if applied.profile !== request.profile || needsOtherAlternative(request) {
      if let failure = apply(request.profile, to: request) { return failure }
      applied.profile = request.profile
    }
    if applied.login != nil || request.login != nil, let failure = applyLogin(request.login) {
      return failure
    }
    if applied.addresses != nil || request.addresses != nil, let failure = applyAddresses(request) {
      return failure
    }
    if let failure = applyProxy(request) { return failure }
    if request.alternative != nil, applied.proxy != nil { return .alternativeUnfit(request) }
    applyVersion(request)
    applyBuffers(request)
    if let failure = applyMethodAndBody(request) { return failure }
    if let failure = applyFields(request) { return failure }
    return applyURL(request)
  }

  private func apply(_ profile: ConnectionProfile, to request: WireRequest) -> TransportFailure? {
    // Until all options are set, the handle has no profile.
    applied.profile = nil
    let options = profile.options
    let connect = options.connectTimeout.map { max(1, Int(Clock.nanoseconds($0) / 1_000_000)) }
    // Without this limit, the timeouts of the request limit connecting. An alternative service has a shorter limit, so
    // that time for the origin remains.
    let longest = request.alternative == nil ? Int(Int32.max) : Self.alternativeConnectTimeout
    easy.set(CURLOPT_CONNECTTIMEOUT_MS, min(connect ?? longest, longest))
    observeLookups(profile.phaseLimits != nil)
    if let failure = applyTLS(options) { return failure }
    if let failure = applyRoute(options, of: request) { return failure }
    return applyPartition(profile.partition)
  }

  private func applyTLS(_ options: TransportOptions) -> TransportFailure? {
    if let newest = options.maximumTLSVersion, newest < options.minimumTLSVersion {
      return TransportFailure(
        .secureConnectionFailed,
        "maximumTLSVersion is older than minimumTLSVersion.")
    }
    let oldest = options.minimumTLSVersion == .tls13 ? ccurl_tls_1_3 : ccurl_tls_1_2
    let newest =
      switch options.maximumTLSVersion {
      case nil: ccurl_tls_max_none
      case .tls12: ccurl_tls_max_1_2
      case .tls13: ccurl_tls_max_1_3
      }
    let settings: [(String, CURLcode)] = [
      ("The range of TLS versions", easy.set(CURLOPT_SSLVERSION, oldest | newest)),
      ("A list of ciphers", easy.set(CURLOPT_SSL_CIPHER_LIST, options.tls12Ciphers)),
      ("A list of cipher suites", easy.set(CURLOPT_TLS13_CIPHERS, options.tls13CipherSuites)),
    ]
    return settings.first { $0.1 != CURLE_OK }.map { CurlFailure.unsupported($0.0, $0.1) }
  }

  /// Keeps connections of different trust stores and client identities apart. ``Handshake`` verifies certificates, so
  /// libcurl needs no trusted ones. But it reuses a connection or a TLS session only if the folder of trusted
  /// certificates is the same. Therefore the name of the folder, which is never read, is the number of the partition.
  private func applyPartition(_ number: Int) -> TransportFailure? {
    easy.set(CURLOPT_CAINFO, nil)
    easy.set(CURLOPT_PROXY_CAPATH, "/partition/\(number)")
    let code = easy.set(CURLOPT_CAPATH, "/partition/\(number)")
    return code == CURLE_OK ? nil : CurlFailure.unsupported("A trust store of its own", code)
  }

  private static func isLarge(_ body: RequestBody) -> Bool {
    body.count < 0 || body.count > RequestBody.largestMultiplexed
  }

  /// Sets the sizes of the buffers. Small buffers cost three times the processor time for large bodies, large buffers
  /// cost memory.
  private func applyBuffers(_ request: WireRequest) {
    let isLarge = request.sink != nil || request.body.count < 0 || request.body.count > 1 << 20
    let isBulk = isLarge && !request.profile.isThrottled
    guard isBulk != applied.isBulk else { return }
    applied.isBulk = isBulk
    easy.set(CURLOPT_BUFFERSIZE, isBulk ? 524_288 : 16_384)
    easy.set(CURLOPT_UPLOAD_BUFFERSIZE, isBulk ? 262_144 : 65_536)
  }

  private func applyVersion(_ request: WireRequest) {
    let mayMultiplex =
      request.origin.scheme == "https" && request.login == nil && !attempts.requiresHTTP1
      && !request.asksForUpgrade
      && request.profile.options.httpVersions != .http1Only
      && (!Self.isLarge(request.body) || !CurlLibrary.shared.spinsOnEarlyAnswers)
    var version = mayMultiplex ? ccurl_http_2_tls : ccurl_http_1_1
    if usesPriorKnowledge(request) {
      version = ccurl_http_2_prior_knowledge
      setFresh(true)
    }
    setClosing(applied.login != nil || version == ccurl_http_2_prior_knowledge)
    guard version != applied.httpVersion else { return }
    easy.set(CURLOPT_HTTP_VERSION, version)
    applied.httpVersion = version
  }

  /// Whether the request is sent by HTTP/2 with prior knowledge (RFC 9113 §3.3). A connection with prior knowledge is
  /// not reused, because with libcurl 7.88 its second request fails with an error of framing.
  private func usesPriorKnowledge(_ request: WireRequest) -> Bool {
    guard request.profile.options.httpVersions == .http2PriorKnowledge, request.origin.scheme == "http",
      request.login == nil
    else { return false }
    switch applied.proxy?.kind {
    case .http, .https: return false
    default: return true
    }
  }

  private func applyMethodAndBody(_ request: WireRequest) -> TransportFailure? {
    let content = Self.content(of: request)
    if request.method == "HEAD", content != .none {
      return TransportFailure(
        .badURL, "A HEAD request cannot carry a body; remove the body or use another method.")
    }
    if applied.method != request.method || applied.content != content {
      applyMethod(request.method, content)
      applied.method = request.method
      applied.content = content
    }
    switch (content, request.body) {
    case (.none, _): return nil
    case (.copied, .bytes(let data)) where !data.isEmpty:
      easy.set(CURLOPT_POSTFIELDSIZE, data.count)
      let code = data.withUnsafeBytes { ccurl_set_pointer(easy.raw, CURLOPT_COPYPOSTFIELDS, $0.baseAddress) }
      return code == CURLE_OK ? nil : CurlFailure.unsupported("The body", code)
    case (.copied, _):
      easy.set(CURLOPT_POSTFIELDSIZE, 0)
      easy.set(CURLOPT_COPYPOSTFIELDS, "")
      return nil
    case (.read, let body):
      ccurl_set_pointer(easy.raw, CURLOPT_POSTFIELDS, nil)
      ccurl_set_offset(easy.raw, CURLOPT_POSTFIELDSIZE_LARGE, Int(body.count))
      guard case .source(let source) = body else { return nil }
      return startBody(source)
    }
  }

  private func applyMethod(_ method: String, _ content: AppliedOptions.Content) {
    easy.set(CURLOPT_CUSTOMREQUEST, nil)
    if content != .none {
      easy.set(CURLOPT_POST, true)
      if method != "POST" { easy.set(CURLOPT_CUSTOMREQUEST, method) }
      return
    }
    ccurl_set_pointer(easy.raw, CURLOPT_COPYPOSTFIELDS, nil)
    easy.set(CURLOPT_HTTPGET, true)
    if method == "HEAD" {
      easy.set(CURLOPT_NOBODY, true)
    } else if method != "GET" {
      easy.set(CURLOPT_CUSTOMREQUEST, method)
    }
  }

  private func applyFields(_ request: WireRequest) -> TransportFailure? {
    let hasBody = applied.content != .none
    let isChunked = request.body.count < 0
    if applied.fields == request.fields, applied.hadBody == hasBody, applied.isChunked == isChunked {
      return nil
    }
    if let failure = omittedField(of: request) { return failure }
    lists.fields = HeaderList(fields: request.fields, hasBody: hasBody, isChunked: isChunked)
    ccurl_set_list(easy.raw, CURLOPT_HTTPHEADER, lists.fields.head)
    guard lists.fields.isComplete else {
      applied.fields = nil
      return TransportFailure(.resourceUnavailable, "There is not enough memory for the header fields.")
    }
    applied.fields = request.fields
    applied.hadBody = hasBody
    applied.isChunked = isChunked
    return nil
  }

  /// Returns the failure of a request with a field that libcurl would omit.
  private func omittedField(of request: WireRequest) -> TransportFailure? {
    guard CurlLibrary.shared.omitsLargeFields else { return nil }
    // libcurl counts the space after the colon.
    let limit = 300 * 1024 - 1
    guard let field = request.fields.first(where: { max($0.name.utf8.count, $0.value.utf8.count) > limit })
    else { return nil }
    return TransportFailure(
      .badURL,
      """
      The header of the request is too large: its field \(field.name.prefix(60)) has \
      \(field.name.utf8.count + field.value.utf8.count) bytes, and libcurl \(CurlLibrary.shared.version) sends none of more \
      than \(limit). Send large values in the body.
      """)
  }

  /// Returns how the body is sent. Methods that define a meaning for content announce an empty body too (RFC 9110
  /// §8.6).
  private static func content(of request: WireRequest) -> AppliedOptions.Content {
    if case .bytes(let data) = request.body, !data.isEmpty {
      return data.count <= largestCopiedBody ? .copied : .read
    }
    if case .source(let source) = request.body { return source.length == 0 ? .copied : .read }
    switch request.method {
    case "POST", "PUT", "PATCH": return .copied
    default: return .none
    }
  }
}

extension Transfer {
  /// Sets the URL and the request target, unless the previous request had the same ones.
  func applyURL(_ request: WireRequest) -> TransportFailure? {
    let url = request.url
    guard url != applied.url else { return nil }
    applied.url = nil
    guard Self.isHTTP(url) else {
      return TransportFailure(.unsupportedURL, "Only URLs of http and https can be requested.")
    }
    // If the parser refuses the URL, `CURLOPT_URL` reports the reason. libcurl 7.88 copies a parsed URL without the
    // zone of its address.
    let hasZone = request.origin.host.utf8.contains(UInt8(ascii: "%"))
    let parts = hasZone ? nil : parsedURL.flatMap { $0.parse(url) ? UnsafeMutableRawPointer($0.raw) : nil }
    ccurl_set_pointer(easy.raw, CURLOPT_CURLU, parts)
    let code = easy.set(CURLOPT_URL, url)
    guard code == CURLE_OK else { return CurlFailure.unsupported("This URL", code) }
    if let failure = applyTarget(request) { return failure }
    applied.url = url
    return nil
  }

  private func applyTarget(_ request: WireRequest) -> TransportFailure? {
    let target = RequestTarget.verbatim(of: request.url, targetForm(of: request), at: request.origin)
    guard target != applied.target else { return nil }
    applied.target = nil
    let code = easy.set(CURLOPT_REQUEST_TARGET, target)
    guard code == CURLE_OK else { return CurlFailure.unsupported("This request target", code) }
    applied.target = target
    return nil
  }

  private func targetForm(of request: WireRequest) -> RequestTarget.Form {
    guard request.origin.scheme == "http" else { return .origin }
    return switch applied.proxy?.kind {
    case .http, .https: .absolute
    case .socks4, .socks4a, .socks5, .socks5h, nil: .origin
    }
  }

  private static func isHTTP(_ url: String) -> Bool {
    let scheme = url.utf8.prefix { $0 != UInt8(ascii: ":") }
    return (scheme.count == 4 || scheme.count == 5)
      && zip(scheme, "https".utf8).allSatisfy { $0 | 0x20 == $1 }
  }
}
