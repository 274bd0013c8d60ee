/// The decision about a request before it is sent: a pure function of the request, the stored responses and the
/// time (RFC 9111 §4).
package enum CacheDecision: Sendable {
  /// The request is sent unchanged.
  case send
  /// The stored response is the answer.
  case serve(StoredResponse)
  /// The stored response is returned, and validated afterwards with these conditions (RFC 5861 §3). The conditions
  /// are empty without a validator.
  case serveAndRefresh(StoredResponse, [HTTPHeader])
  /// The request is sent with these conditions; after a 304 the stored response is used (RFC 9111 §4.3). The
  /// conditions are empty if the response has no validator, but may replace a failure.
  case validate(StoredResponse, [HTTPHeader])
  /// The request is sent with the tags of responses for other fields. If a 304 names one of the tags, its response is
  /// the answer (RFC 9111 §4.3.1).
  case validateVariants([StoredResponse], [HTTPHeader])
  /// A failure, because the request may not be sent and no response is stored.
  case unavailable
  /// A 504, because no response is stored for a request with `only-if-cached` (RFC 9111 §5.2.1.7).
  case gatewayTimeout

  /// The use of the cache that a program asks for.
  package enum Policy: Sendable, Equatable {
    /// The rules of HTTP.
    case rules
    /// No stored response is used.
    case reload
    /// A stored response of any age is used; without one the request is sent.
    case storedElseLoad
    /// A stored response of any age is used. No request is sent.
    case storedOnly
    /// A stored response is used after the server has confirmed it.
    case revalidate
  }

  package struct Question: Sendable {
    package let method: String
    package let digests: FieldDigests
    package let policy: Policy
    /// Whether a validation may follow the answer.
    package let mayRefresh: Bool

    package var fields: [HTTPHeader] { digests.fields }

    package init(method: String, fields: FieldDigests, policy: Policy = .rules, mayRefresh: Bool = true) {
      self.method = method
      digests = fields
      self.policy = policy
      self.mayRefresh = mayRefresh
    }
  }

  /// Decides whether a request is sent, with or without conditions, or answered by a stored response.
  ///
  /// - Parameters:
  ///   - stored: The stored responses for the URL of the request.
  ///   - now:    Seconds since 1970.
  package static func decide(_ question: Question, stored: [StoredResponse], now: Int64) -> CacheDecision {
    let control = CacheControl(request: question.fields)
    let otherwise: CacheDecision =
      question.policy == .storedOnly ? .unavailable : control.onlyIfCached ? .gatewayTimeout : .send
    guard question.method == "GET" || question.method == "HEAD" else { return otherwise }
    // A request with `no-store` leaves no trace.
    if question.policy == .reload || control.noStore { return otherwise }
    var digests = question.digests
    let chosen = choice(of: stored, for: question.fields, question.method, &digests)
    if question.policy == .storedOnly { return chosen.map { .serve($0) } ?? otherwise }
    // A request with its own conditions needs the server's answer to them.
    if isConditional(question.fields) { return otherwise }
    guard let chosen else { return control.onlyIfCached ? otherwise : offer(stored, question, &digests) }
    if question.policy == .storedElseLoad { return .serve(chosen) }
    return decide(question, control, chosen, now, otherwise)
  }

  private static func decide(
    _ question: Question, _ control: CacheControl, _ stored: StoredResponse, _ now: Int64,
    _ otherwise: CacheDecision
  ) -> CacheDecision {
    let freshness = Freshness(of: stored, now: now)
    let isUsable = mayUse(stored, freshness, control)
    // RFC 8246: a reload does not validate an immutable response.
    let mustAsk = question.policy == .revalidate && !(stored.control.isImmutable && freshness.isFresh)
    if isUsable, !mustAsk { return .serve(stored) }
    if control.onlyIfCached { return otherwise }
    let conditions = Validation.conditions(for: stored)
    if !mustAsk, question.mayRefresh, mayRefreshLater(stored, freshness, control) {
      return .serveAndRefresh(stored, conditions)
    }
    // A response without a validator is used here only if it may replace a failure (RFC 5861 §4).
    guard
      !conditions.isEmpty || mayServeInstead(stored, of: nil, fields: question.fields, now: now)
    else { return .send }
    return .validate(stored, conditions)
  }

  /// Chooses the most recent one among complete responses for a request (RFC 9111 §4).
  package static func choice(of stored: [StoredResponse], for fields: FieldDigests) -> StoredResponse? {
    var digests = fields
    return choice(of: stored, &digests) { isWhole($0) }
  }

  /// Returns the only stored response that ``decide(_:stored:now:)`` can use for a request, whatever its age.
  package static func choice(of stored: [StoredResponse], for question: Question) -> StoredResponse? {
    var digests = question.digests
    return choice(of: stored, for: question.fields, question.method, &digests)
  }

  /// Returns the most recent complete response, or a part that contains the range of the request.
  private static func choice(
    of stored: [StoredResponse], for fields: [HTTPHeader], _ method: String, _ digests: inout FieldDigests
  ) -> StoredResponse? {
    if let whole = choice(of: stored, &digests, where: { isWhole($0) }) { return whole }
    guard method == "GET", let range = fields.joinedValue(of: "Range") else { return nil }
    return choice(of: stored, &digests) { PartialContent.covers($0, range) }
  }

  private static func choice(
    of stored: [StoredResponse], _ digests: inout FieldDigests, where isFit: (StoredResponse) -> Bool
  ) -> StoredResponse? {
    stored.filter { isFit($0) && $0.selection.includes(&digests) }
      .max { ($0.date, $0.responseTime) < ($1.date, $1.responseTime) }
  }

  /// Returns the decision if no response is stored for these request fields. Offers responses for other fields, unless
  /// they were stored for other credentials.
  private static func offer(
    _ stored: [StoredResponse], _ question: Question, _ digests: inout FieldDigests
  ) -> CacheDecision {
    guard question.method == "GET", !question.fields.contains("Range") else { return .send }
    let variants = stored.filter {
      isWhole($0) && !isForbidden($0) && $0.entityTag != nil && $0.selection.hasCredentials(of: &digests)
    }
    guard let condition = Validation.condition(for: variants) else { return .send }
    return .validateVariants(variants, [condition])
  }

  /// Whether a stored response is complete; a program may have stored any response.
  package static func isWhole(_ stored: StoredResponse) -> Bool {
    stored.head.status >= 200 && stored.head.status != 206 && stored.head.status != 304
  }

  /// Whether a stored response may be used without asking.
  private static func mayUse(
    _ stored: StoredResponse, _ freshness: Freshness, _ request: CacheControl
  ) -> Bool {
    guard !request.noCache, !stored.control.noCache, !isForbidden(stored) else { return false }
    guard isWithin(request, freshness) else { return false }
    if freshness.isFresh { return true }
    guard let maxStale = request.maxStale, !stored.control.mustRevalidate else { return false }
    return freshness.staleness <= maxStale
  }

  /// Whether `no-store` forbids the use of a response that a program has stored.
  private static func isForbidden(_ stored: StoredResponse) -> Bool {
    stored.control.noStore && !stored.control.mustUnderstand
  }

  /// Whether a response is within `max-age` and `min-fresh` of a request (RFC 9111 §5.2.1).
  private static func isWithin(_ request: CacheControl, _ freshness: Freshness) -> Bool {
    if let maxAge = request.maxAge {
      // With `max-stale`, a response may be that much older.
      guard freshness.age <= maxAge + (request.maxStale ?? 0) else { return false }
    }
    guard let minFresh = request.minFresh else { return true }
    return freshness.lifetime - freshness.age >= minFresh
  }

  private static func mayRefreshLater(
    _ stored: StoredResponse, _ freshness: Freshness, _ request: CacheControl
  ) -> Bool {
    guard let window = stored.control.staleWhileRevalidate, !stored.control.mustRevalidate,
      !stored.control.noCache, !isForbidden(stored), !request.noCache, isWithin(request, freshness)
    else { return false }
    return freshness.staleness <= window
  }

  /// Whether a stored response may replace a failed validation, or one with status 500, 502, 503 or 504 (RFC 5861
  /// §4).
  package static func mayServeInstead(
    _ stored: StoredResponse, of status: Int?, fields: [HTTPHeader], now: Int64
  ) -> Bool {
    if let status, ![500, 502, 503, 504].contains(status) { return false }
    guard !stored.control.mustRevalidate, !stored.control.noCache, !isForbidden(stored) else { return false }
    let request = CacheControl(request: fields)
    guard !request.noCache else { return false }
    let freshness = Freshness(of: stored, now: now)
    // A program can request the validation of a fresh response.
    if freshness.isFresh { return stored.control.staleIfError != nil || request.staleIfError != nil }
    guard let window = request.staleIfError ?? stored.control.staleIfError else { return false }
    return freshness.staleness <= window
  }

  /// Whether a request asks for something only under a condition (RFC 9110 §13.1).
  package static func isConditional(_ fields: [HTTPHeader]) -> Bool {
    fields.contains { field in
      let bytes = field.name.utf8
      guard bytes.count >= 8, FieldName.equal(String(field.name.prefix(3)), "If-") else { return false }
      return conditions.contains { FieldName.equal($0, field.name) }
    }
  }

  private static let conditions = [
    "If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range",
  ]
}

/// Whether a private cache may store a response, and which fields of its head (RFC 9111 §3).
package enum StorageRules {
  /// Whether a response may be stored (RFC 9111 §3).
  ///
  /// - Parameters:
  ///   - method:  The method of the request that was answered.
  ///   - fields:  The fields of that request, as they were sent.
  ///   - head:    The head of the response.
  package static func mayStore(method: String, fields: [HTTPHeader], head: ResponseHead) -> Bool {
    guard method == "GET", head.status >= 200, head.status != 304 else { return false }
    guard !concernsRequest(head.status, fields) else { return false }
    // A server that does not support ranges responds with the complete body, or with any other part.
    let isStorable = fields.contains("Range") ? PartialContent.isStorable(head) : head.status != 206
    guard isStorable else { return false }
    guard !CacheControl(fields.joinedValue(of: "Cache-Control")).noStore else { return false }
    let control = CacheControl(head)
    if control.mustUnderstand {
      guard isUnderstood(head.status) else { return false }
    } else if control.noStore {
      return false
    }
    if head.block.value(of: "Vary")?.contains("*") == true || !Selection.isShort(for: head) { return false }
    if control.maxAge != nil || control.isPublic || control.isPrivate { return true }
    return head.block.contains("Expires") || head.status == 206 || isHeuristicallyCacheable(head.status)
  }

  /// Whether RFC 9110 §15.1 defines a status as cacheable without more being said.
  package static func isHeuristicallyCacheable(_ status: Int) -> Bool {
    switch status {
    case 200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501: true
    default: false
    }
  }

  /// Whether a status answers fields that select no stored response, such as `If-Match` and `Expect`, or the connection
  /// or the client. It would be wrong for the next request (RFC 9110 §15.5.8, §15.5.13, §15.5.18, §15.5.20; RFC 6585).
  ///
  /// - Parameter fields: The fields of the request, as they were sent.
  package static func concernsRequest(_ status: Int, _ fields: [HTTPHeader]) -> Bool {
    switch status {
    case 407, 412, 417, 421, 428, 429, 431, 511: true
    // A refusal of one credential says nothing about another one, and `public` would let it answer both.
    case 401: fields.contains("Authorization")
    default: false
    }
  }

  /// Whether the meaning of a status for caches is known here (RFC 9110 §15), for `must-understand`.
  private static func isUnderstood(_ status: Int) -> Bool {
    switch status {
    case 206, 302, 303, 307: true
    default: isHeuristicallyCacheable(status)
    }
  }

  /// Returns a head without the fields that belong to a connection (RFC 9111 §3.1), and with a date (RFC 9110
  /// §6.6.1).
  package static func stored(_ head: ResponseHead, at responseTime: Int64) -> ResponseHead {
    let named = Set(Selection.names(in: head.block.value(of: "Connection") ?? ""))
    var fields = head.block.fields.filter { field in
      let name = field.name.lowercased()
      return !connectionFields.contains(name) && !named.contains(name)
    }
    if !fields.contains("Date") {
      fields.append(HTTPHeader(name: "Date", value: HTTPDate(secondsSince1970: responseTime).text))
    }
    return ResponseHead(status: head.status, version: head.version, fields: fields)
  }

  static let connectionFields: Set<String> = [
    "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    "proxy-authenticate", "proxy-authentication-info", "proxy-authorization",
  ]
}

/// The stored responses that a response to an unsafe request invalidates (RFC 9111 §4.4).
package enum Invalidation {
  /// Whether a method only reads (RFC 9110 §9.2.1). An unknown method is unsafe.
  package static func isSafe(_ method: String) -> Bool {
    switch method {
    case "GET", "HEAD", "OPTIONS", "TRACE": true
    default: false
    }
  }

  /// Returns the keys of the stored responses that an unsafe request invalidates: the target, and `Location` and
  /// `Content-Location` of the same origin. Returns none after an error status.
  package static func keys(method: String, url: String, origin: Origin, head: ResponseHead) -> [CacheKey] {
    guard !isSafe(method), (200..<400).contains(head.status) else { return [] }
    let named = [head.block.value(of: "Location"), head.block.value(of: "Content-Location")]
    let others = named.compactMap { reference -> CacheKey? in
      guard let reference, let target = WireTarget(URIReference.resolve(reference, against: url)),
        target.origin == origin
      else { return nil }
      return CacheKey(target.url, target.origin)
    }
    return [CacheKey(url, origin)] + others
  }
}

extension WireRequest {
  /// Whether a field `Host` names another host or port than the URL, so that the request has another target (RFC 9110
  /// §7.1).
  package var namesOtherHost: Bool {
    guard marks.contains(.host) else { return false }
    return fields.contains { field in
      FieldName.equal(field.name, "Host")
        && (field.value.utf8.contains(UInt8(ascii: "@"))
          || Origin(url: "\(origin.scheme)://\(field.value)/") != origin)
    }
  }

  /// Whether its method only reads.
  package var isSafe: Bool { Invalidation.isSafe(parts.method) }
}
