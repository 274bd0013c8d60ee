/// Decides which request of a resumable upload is sent next, and what its response means. Pure: the owner has the
/// clock, sends and waits.
///
/// - ``next()`` returns the next request. The owner sends the request, reports the content that was read
///   (``contentRead(upTo:)``), and passes the response to ``process(_:support:at:)``. A request without a response is
///   lost.
/// - After a lost request the offset is requested, unless no upload is known yet.
/// - Offsets grow. The upload begins again only if the server has lost one that it cannot have processed.
package struct UploadResumption: Sendable, Equatable {
  /// The protocol of an upload.
  package enum Dialect: String, Codable, Sendable {
    /// The IETF's draft.
    case draft
    /// tus 1.0.
    case tus
  }

  package struct Policy: Codable, Sendable, Equatable {
    /// `nil` if the server is asked.
    package var dialect: Dialect?
    package var interopVersion: Int64 = 6
    /// Whether the request that creates an upload of the draft has content.
    package var createsWithContent = true
    /// The largest content of one request that the caller wants.
    package var largestPart: Int64?
    /// The number of failures in a row without progress after which the upload fails.
    package var failureLimit = 5
    package var initialDelay = Duration.seconds(1)
    package var maximumDelay = Duration.seconds(60)
    /// The value of `Upload-Metadata`.
    package var metadata: String?

    package init() {}
  }

  /// The bytes that one request sends.
  package struct Part: Sendable, Equatable {
    package var offset: Int64
    package var count: Int64
    /// Whether it ends the upload.
    package var isLast: Bool

    package init(offset: Int64, count: Int64, isLast: Bool) {
      self.offset = offset
      self.count = count
      self.isLast = isLast
    }

    package var end: Int64 { offset + count }
  }

  package enum Request: Sendable, Equatable {
    /// OPTIONS, which discovers the protocol of the server.
    case discovery
    /// The request that creates the upload. If the upload has content but this part is empty, the request is sent
    /// without a body.
    case creation(Part)
    /// HEAD, which asks for the offset.
    case offset
    /// PATCH.
    case append(Part)
    /// DELETE.
    case removal

    package var part: Part? {
      switch self {
      case .creation(let part), .append(let part): part
      case .discovery, .offset, .removal: nil
      }
    }

    /// Whether it is sent to the URL of the upload.
    package var concernsUpload: Bool {
      switch self {
      case .offset, .append, .removal: true
      case .discovery, .creation: false
      }
    }
  }

  /// The decision about a response.
  package enum Verdict: Sendable, Equatable {
    /// The response that the caller gets.
    case result
    /// Another request follows.
    case proceed
    /// The status is a failure.
    case refusal
    case failure(ResumableUploadError)
  }

  package let length: Int64
  package let policy: Policy
  /// The protocol, once it is known.
  package internal(set) var dialect: Dialect?
  /// The URL of the upload, once the server has named it.
  package internal(set) var resource: UploadResource?
  /// Whether that URL has to use https, because the caller's request does. A redirect may have led it to http.
  package var needsTLS = false
  /// The number of bytes that the server has confirmed.
  package internal(set) var acknowledged: Int64 = 0
  package internal(set) var limits = UploadLimits()

  /// The request that was sent last, and whether it has a response.
  var current: Request?
  var isAnswered = false
  /// Whether the server may have received a part of it.
  private var mayBeReceived = false
  /// Whether the offset has to be asked for before bytes are sent.
  var mustAskOffset = false
  /// The end of the bytes that were read to be sent, over all requests.
  var readEnd: Int64 = 0
  /// Whether the server may have all bytes, so that it may have processed the upload.
  package internal(set) var mayBeComplete = false
  /// Whether an earlier request has sent the last byte, and the server did not have it when it was asked. It may still
  /// be storing what that request has sent.
  var mayStillStore = false
  /// Whether the server may process the upload, or may have processed it, although its bytes seem to be missing.
  package var mayBeProcessed: Bool { mayBeComplete || mayStillStore }
  /// The failure of the server after the last byte; completing the upload does not undo it.
  package internal(set) var statusAfterLastByte: Int?
  /// The largest part that the server has not refused.
  var partLimit: Int64?
  /// The number of times since the last progress that a refused part was sent in one of more than half its size.
  var slightReductionCount = 0
  /// The number of bytes that the server had confirmed at the last time.
  var acknowledgedAtReduction: Int64 = 0
  /// The number of parts that the server has refused as too large.
  var refusedPartCount = 0

  /// The number of parts in a row of which the server took little: less than half although it did not fail, or less
  /// than a sixteenth of what was read before it failed.
  var shortAcceptanceCount = 0
  /// The number of such parts after which smaller ones are sent. After twice as many, they count as failures.
  static var shortAcceptanceLimit: Int { 5 }
  /// Whether so many parts were short that bytes are no progress any more.
  var isSlow: Bool { shortAcceptanceCount > 2 * Self.shortAcceptanceLimit }
  /// The last part, until it is known how many of its bytes the server has taken.
  var unconfirmed: Part?
  /// The end of the bytes of that part that were read to be sent.
  var unconfirmedEnd: Int64 = 0

  /// Whether the upload is removed instead of continued.
  private var isRemoved = false
  private var failureCount = 0
  private var acknowledgedAtFailure: Int64 = 0
  private var restartCount = 0
  /// Whether the last response was a failure that may pass, and the delay that it asks for.
  private var temporaryFailure: Duration?

  package init(length: Int64, policy: Policy = Policy()) {
    self.length = length
    self.policy = policy
    dialect = policy.dialect
  }

  /// Continues or removes an upload of another process.
  ///
  /// - Parameters:
  ///   - mayBeComplete: Whether the server may have all bytes.
  ///   - status: The failure of the server after the last byte.
  package init(
    length: Int64, resource: UploadResource, dialect: Dialect, policy: Policy, mayBeComplete: Bool = true,
    statusAfterLastByte status: Int? = nil, isRemoved: Bool = false
  ) {
    self.init(length: length, policy: policy)
    self.isRemoved = isRemoved
    self.resource = resource
    self.dialect = dialect
    readEnd = length
    self.mayBeComplete = mayBeComplete
    statusAfterLastByte = status
    mustAskOffset = true
  }

  // MARK: Requests

  /// Returns the next request. If the last one has no response, it is lost.
  package mutating func next() -> Request {
    if current != nil, !isAnswered { mustAskOffset = resource != nil }
    let request = request
    current = request
    isAnswered = false
    mayBeReceived = false
    temporaryFailure = nil
    if let part = request.part, part.isLast, part.count == 0 { mayBeComplete = true }
    return request
  }

  private var request: Request {
    if isRemoved { return .removal }
    guard let dialect else { return .discovery }
    guard resource != nil else {
      let isEmpty = dialect == .tus || !policy.createsWithContent
      return .creation(isEmpty ? Part(offset: 0, count: 0, isLast: length == 0) : part(from: 0))
    }
    return mustAskOffset ? .offset : .append(part(from: acknowledged))
  }

  private func part(from offset: Int64) -> Part {
    let requested = [policy.largestPart, partLimit, limits.maximumAppendSize].compactMap { $0 }.min()
    // A server may state a smallest size that is larger than a part that it has refused.
    let smallest = min(
      limits.minimumAppendSize ?? 1, limits.maximumAppendSize ?? .max, partLimit ?? .max)
    let count = min(length - offset, max(1, requested ?? .max, smallest))
    return Part(offset: offset, count: count, isLast: offset + count == length)
  }

  /// Notes that content was read up to a position of the upload, in order to be sent.
  package mutating func contentRead(upTo end: Int64) {
    readEnd = max(readEnd, min(end, length))
    if let part = current?.part { (unconfirmed, unconfirmedEnd) = (part, min(end, part.end)) }
    if end >= length { mayBeComplete = true }
    mayBeReceived = true
  }

  /// Notes that a redirect of the request is followed: a server has received it, and may have processed it.
  package mutating func redirected() { mayBeReceived = true }

  /// Forgets the upload, because the caller sends it again.
  package mutating func restart() {
    self = UploadResumption(length: length, policy: policy)
  }

  // MARK: Responses

  /// Reads an informational response (status 104). Returns whether it names the upload.
  ///
  /// - Parameter url: The URL that was asked.
  package mutating func informational(_ answer: UploadAnswer, at url: String) -> Bool {
    guard answer.status == 104, dialect == .draft, answer.interopVersion == policy.interopVersion else {
      return false
    }
    if let newer = answer.limits { limits.update(with: newer) }
    if let offset = answer.offset, offset <= readEnd { acknowledged = max(acknowledged, offset) }
    guard case .creation? = current, resource == nil, let named = resource(named: answer, at: url)
    else { return false }
    resource = named
    return true
  }

  /// Decides about a response after all redirects.
  ///
  /// - Parameter url: The URL that was asked.
  package mutating func process(_ answer: UploadAnswer, support: TusSupport? = nil, at url: String) -> Verdict
  {
    guard let current, !isAnswered else { return .result }
    isAnswered = true
    if let newer = answer.limits { limits.update(with: newer) }
    switch current {
    case .discovery: return processDiscovery(support)
    case .creation(let part): return processCreation(answer, part, at: url)
    case .offset: return processOffset(answer)
    case .append(let part): return processAppend(answer, part)
    case .removal: return .result
    }
  }

  /// Returns the URL that a response names. `nil` without one, and if it is not an HTTP URL, or would leave TLS.
  func resource(named answer: UploadAnswer, at url: String) -> UploadResource? {
    guard let named = answer.location.flatMap({ UploadResource($0, at: url) }),
      !needsTLS || named.origin.scheme == "https"
    else { return nil }
    return named
  }

  // MARK: Failures

  /// The cause of a failed attempt.
  package enum Failure: Sendable, Equatable {
    /// The last response.
    case response
    /// The network.
    /// - Parameter sentNothing: Whether the last connection of the attempt was not established.
    case network(sentNothing: Bool)
  }

  /// Returns the delay before another attempt; `nil` if there is none.
  ///
  /// - Parameter random: A random number from 0 to 1.
  package mutating func delay(after failure: Failure, random: Double) -> Duration? {
    var asked = Duration.zero
    switch failure {
    case .response:
      guard let temporaryFailure else { return nil }
      asked = temporaryFailure
    case .network(let sentNothing):
      // The server may have processed a request even if its response was lost.
      let isUnsent = sentNothing && !mayBeReceived
      guard resource != nil || isUnsent || current == .discovery else { return nil }
    }
    // A few bytes of each part are no progress: the rest would be sent as often as the upload has bytes.
    if acknowledged > acknowledgedAtFailure, !isSlow { failureCount = 0 }
    acknowledgedAtFailure = acknowledged
    failureCount += 1
    guard failureCount <= policy.failureLimit else { return nil }
    var longest = max(.zero, policy.initialDelay)
    for _ in 1..<failureCount where longest < policy.maximumDelay { longest = longest * 2 }
    // At least half of it, so that the delays grow, and a random rest, so that clients do not return at the same time.
    let own = min(longest, policy.maximumDelay) * (0.5 + 0.5 * min(1, max(0, random)))
    return max(own, min(asked, policy.maximumDelay))
  }

  /// Notes that the status of a response may change, so that the offset is asked for after a delay.
  mutating func failTemporarily(_ answer: UploadAnswer) -> Verdict {
    temporaryFailure = .seconds(min(answer.retryAfter ?? 0, 31_536_000))
    mustAskOffset = resource != nil
    return .refusal
  }

  /// Begins again because the server has lost the upload. Fails if the upload may have been processed, or if the
  /// server loses it again and again.
  mutating func beginAgain() -> Verdict {
    guard !mayBeProcessed, restartCount < policy.failureLimit else { return .failure(.uploadIsGone) }
    restartCount += 1
    resource = nil
    unconfirmed = nil
    acknowledged = 0
    acknowledgedAtFailure = 0
    mustAskOffset = false
    readEnd = 0
    return .proceed
  }
}

/// The URL of an upload as a server named it.
package struct UploadResource: Sendable, Equatable {
  package let url: String
  package let origin: Origin

  /// Makes the resource of an absolute http or https URL, without user and password; `nil` for any other text.
  package init?(url: String) {
    guard let target = WireTarget(url) else { return nil }
    self.url = target.url
    origin = target.origin
  }

  /// The resource without its query, which may have secrets.
  package var withoutQuery: UploadResource? {
    UploadResource(
      url: String(Substring(url.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") })))
  }

  /// Resolves `Location`. `nil` if it is not an HTTP URL, or if it would leave TLS.
  package init?(_ location: String, at url: String) {
    guard let asked = WireTarget(url),
      case .follow(let plan) = Redirect.decide(
        status: 307, location: location, request: Redirect.Request(url: asked.url, origin: asked.origin)),
      !plan.leavesSecureScheme
    else { return nil }
    self.init(url: plan.url)
  }
}

// The methods and fields of the requests.
extension UploadResumption {
  /// Returns the method of a request.
  ///
  /// - Parameter original: The caller's method, which creates an upload of the draft.
  package func method(of request: Request, original: String) -> String {
    switch request {
    case .discovery: "OPTIONS"
    case .creation: dialect == .tus ? "POST" : original
    case .offset: "HEAD"
    case .append: "PATCH"
    case .removal: "DELETE"
    }
  }

  /// Returns the fields that the protocol adds to a request.
  package func fields(of request: Request) -> [HTTPHeader] {
    // Servers do not require a field for OPTIONS, but some announce tus only to clients that send one.
    guard let dialect, request != .discovery else { return [Self.tusField] }
    switch dialect {
    case .draft: return [Self.interopField(policy.interopVersion)] + draftFields(of: request)
    case .tus: return [Self.tusField] + tusFields(of: request)
    }
  }

  private func draftFields(of request: Request) -> [HTTPHeader] {
    guard let part = request.part else { return [] }
    let isComplete = HTTPHeader(name: "Upload-Complete", value: part.isLast ? "?1" : "?0")
    guard case .append = request else {
      return [isComplete, HTTPHeader(name: "Upload-Length", value: String(length))]
    }
    return [
      isComplete, HTTPHeader(name: "Upload-Offset", value: String(part.offset)),
      .contentType("application/partial-upload"),
    ]
  }

  private func tusFields(of request: Request) -> [HTTPHeader] {
    switch request {
    case .discovery, .offset, .removal: return []
    case .creation:
      let length = HTTPHeader(name: "Upload-Length", value: String(length))
      return [length] + (policy.metadata.map { [HTTPHeader(name: "Upload-Metadata", value: $0)] } ?? [])
    case .append(let part):
      return [
        HTTPHeader(name: "Upload-Offset", value: String(part.offset)),
        .contentType("application/offset+octet-stream"),
      ]
    }
  }

  private static func interopField(_ version: Int64) -> HTTPHeader {
    HTTPHeader(name: "Upload-Draft-Interop-Version", value: String(version))
  }

  private static var tusField: HTTPHeader { HTTPHeader(name: "Tus-Resumable", value: TusSupport.version) }

  /// Whether a field of the caller's request is also sent with a request of the protocol. Conditions belong to the
  /// request that creates the upload. The fields that describe the content belong to the one that creates an upload of
  /// the draft.
  package func keeps(_ name: String, in request: Request) -> Bool {
    var isCreation = false
    if case .creation(let part) = request {
      isCreation = true
      // The framing and the digest describe the whole content.
      if dialect == .draft {
        return part.count == length || !Self.wholeContentFields.contains { FieldName.equal($0, name) }
      }
    }
    let others = isCreation ? [] : Self.conditionFields
    return !(Self.contentFields + Self.wholeContentFields + others).contains { FieldName.equal($0, name) }
  }

  private static let contentFields = [
    "Content-Type", "Content-Encoding", "Content-Language", "Content-Location", "Content-Disposition",
  ]
  private static let wholeContentFields = [
    "Content-Length", "Content-MD5", "Content-Digest", "Digest", "Expect",
  ]
  /// The fields that concern the resource of the caller's request (RFC 9110 §13.1, §14.2).
  private static let conditionFields = [
    "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range", "Range",
  ]
}
