import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// The requests of a hop: the caller's, and the one that goes over the wire.
struct HopRequests: Sendable {
  /// The request that is sent next, or was sent last, without the cookies of the session's storage; `nil` before it is
  /// created.
  private(set) var sent: WireRequest?
  private var ofCaller: URLRequest?
  /// ``wire`` with the cookies of the session's storage; `nil` without such cookies.
  private var withCookies: WireRequest?
  /// The fault of the request's method or fields, which the engine must not send.
  var violation: HeaderFieldRules.Violation?

  @inline(__always) var wire: WireRequest {
    get { sent ?? HopLoop.missing("a request to send") }
    set { sent = newValue }
  }

  /// The caller's request, converted and adapted.
  @inline(__always) var converted: URLRequest {
    get { ofCaller ?? HopLoop.missing("a converted request") }
    set { ofCaller = newValue }
  }

  /// The request that goes over the wire.
  var outgoing: WireRequest { withCookies ?? wire }

  /// The method of the last request; `nil` before there is one.
  var method: String? { sent?.method ?? ofCaller?.httpMethod }

  /// Adds fields to the request that goes over the wire.
  mutating func add(_ fields: [HTTPHeader]) {
    wire = wire.changing { $0.fields += fields }
    withCookies = withCookies?.changing { $0.fields += fields }
  }

  /// Replaces the credentials of the request that goes over the wire.
  mutating func replaceProof(with proof: AuthenticationProof) {
    wire = wire.adding(proof)
    withCookies = withCookies?.adding(proof)
  }

  mutating func addCookies(_ header: String) {
    withCookies = wire.changing { $0.fields.append(HTTPHeader(name: "Cookie", value: header)) }
  }

  mutating func dropCookies() { withCookies = nil }
}

// One hop: a request that goes over the wire, and its response.
extension HopLoop {
  mutating func makeRequest() throws(AFError) -> Outcome<HopLoop> {
    let urlRequest = urlRequest
    let plain = try delegate.makeRequest(of: urlRequest, &requests.violation)
    let request = plain.upgraded
    self.request = request
    self.urlRequest = urlRequest.withURL(of: request, upgradedFrom: plain)
    redirects.begin(at: request.origin)
    followPermanentRedirects()
    // The secrets belong to the origin of the caller's request, also after a remembered redirect.
    let owner = kind.ownerOfSecrets(in: request)
    if owner != nil || self.request !== request { keepSecrets(at: owner ?? request.origin) }
    // A scheme that neither the engine nor we serve is for the `URLProtocol` classes, which are asked next.
    route.handler = try handler(of: request)
    return .done
  }

  /// Sends the request to the URL where permanent redirects of earlier ones led.
  private mutating func followPermanentRedirects() {
    let request = request
    guard let url = kind.redirectedURL(of: request.url), url != request.url, let target = WireTarget(url)
    else { return }
    self.request =
      request.changing { parts in
        parts.url = target.url
        parts.origin = target.origin
      }.upgraded
    urlRequest.url = shownURL(of: self.request) ?? urlRequest.url
  }

  /// Keeps the secrets of a request from another origin, as a redirect to it does.
  private mutating func keepSecrets(at owner: Origin) {
    let request = request
    guard owner != request.origin else { return }
    redirects.keepSecrets(at: owner)
    let profile = request.profile.elsewhere ?? request.profile
    self.request = request.following(.leavingOrigin(owner, by: request)).changing { $0.profile = profile }
  }

  /// Asks the delegate for another stream if the one that was read is needed again, as a redirect or a challenge
  /// requires. Without one the transport ends the request with an error.
  func provideBody() -> Outcome<HopLoop> {
    guard delegate.observers.contains(.task), case .source(let source) = request.body, !source.isRepeatable,
      let question = delegate.questionAboutBody(inPlaceOf: source, deadline: request.deadline)
    else { return .done }
    return .task(question) { hops, body in
      if let body { hops.request = hops.request.changing { $0.body = body } }
      return .done
    }
  }

  /// Applies the cache policy, and makes the hop known to the thread that reads its response.
  mutating func beginHop() -> Outcome<HopLoop> {
    let verdict = applyCachePolicy()
    noteRemovals()
    if !route.handler.isOverNetwork { records.begin() }
    let request = outgoing
    let hop = CurrentHop(
      request: request, initialOrigin: redirects.initialOrigin, authentication: credentials.authentication,
      redirectCount: redirects.count, challenge: delegate.challengeDecision(in: request.sink))
    delegate.begin(hop)
    return .event(.cache(verdict))
  }

  // MARK: The transfer

  mutating func send() throws(AFError) -> Outcome<HopLoop> {
    noteRemovals()
    return try send(outgoing, observer: observer) { hops, result in .event(hops.accept(result)) }
  }

  /// The observer of the transfer of a hop.
  private var observer: any TransferObserver {
    guard route.handler.isEngine, !request.isSafe else { return delegate.observer }
    return UnsafeRequestObserver(delegate.observer, outgoing, services)
  }

  /// Takes the outcome of the transfer of a hop.
  private mutating func accept(_ outcome: consuming Result<WireResponse, TransportFailure>) -> StageEvent {
    switch consume outcome {
    case .success(let response):
      recordHop(response.metrics, response.head)
      let concernsCache = concernsCache(response)
      return responded(response, concernsCache: concernsCache)
    case .failure(let failure): return failed(failure)
    }
  }

  mutating func responded(_ response: consuming WireResponse, concernsCache: Bool) -> StageEvent {
    var facts = responses.accept(response)
    facts.concernsCache = concernsCache
    facts.hasAuthentication = credentials.authentication != nil
    return .responded(facts)
  }

  @inline(never)
  mutating func recordHop(
    _ metrics: TransferMetrics, _ head: ResponseHead?, as sent: WireRequest? = nil,
    from source: TaskMetrics.ResourceFetchType = .networkLoad
  ) {
    guard route.handler.isOverNetwork else { return }
    records.add(Exchange.Hop(sent ?? outgoing, metrics: metrics, head: head, fetchType: source))
    if !request.isSafe { services.sharedTransfers.beginEra() }
  }
}

/// Observes an unsafe request. Responses to earlier requests are no longer used once its head is there (RFC 9111 §4.4),
/// because its body may take hours.
private final class UnsafeRequestObserver: TransferObserver {
  private let observer: any TransferObserver
  private let request: WireRequest
  private let services: Services
  /// Whether the transfer has ended. The loop sets it, and a task of the cache reads it.
  private let hasEnded = Atomic<Bool>(false)

  init(_ observer: any TransferObserver, _ request: WireRequest, _ services: Services) {
    self.observer = observer
    self.request = request
    self.services = services
  }

  func headReceived(_ head: ResponseHead) -> HeadDisposition {
    services.sharedTransfers.beginEra()
    services.cache.invalidateEarly(by: request, head) { [self] in hasEnded.load(ordering: .acquiring) }
    return observer.headReceived(head)
  }

  func transferBegan(_ control: any TransferControl) -> TransferStart {
    // After a look-up, a transfer begins and ends once more.
    hasEnded.store(false, ordering: .releasing)
    return observer.transferBegan(control)
  }

  func informationalHeadReceived(_ head: ResponseHead) { observer.informationalHeadReceived(head) }
  func loginHeadReceived(_ head: ResponseHead) { observer.loginHeadReceived(head) }
  func bytesMoved(_ count: ByteCount) { observer.bytesMoved(count) }

  func transferEnded() {
    hasEnded.store(true, ordering: .releasing)
    observer.transferEnded()
  }
}

extension WireRequest {
  /// Returns the request that follows a redirect.
  func following(_ plan: RedirectPlan) -> WireRequest {
    redirected { parts in
      // User and password in `Location` are dropped.
      parts.url = WireTarget(plan.url)?.url ?? plan.url
      parts.origin = plan.origin
      parts.method = plan.method
      parts.fields = plan.fields(from: fields)
      if plan.leavesOrigin { parts.trailers = parts.trailers?.filtered { plan.keeps($0) } }
      if !plan.resendsBody {
        parts.body = .none
        parts.trailers = nil
      }
    }
  }

  /// Returns the request with further fields, whose response body is collected in memory.
  func collecting(adding conditions: [HTTPHeader]) -> WireRequest {
    changing { parts in
      parts.fields += conditions
      parts.sink = nil
    }
  }
}

extension WireRequest {
  /// Returns the length that the user announces for a stream; −1 without one.
  static func contentLength(_ fields: [String: String]?) -> Int64 {
    guard let text = fields?.first(where: { FieldName.equal($0.key, "Content-Length") })?.value,
      text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), let length = Int64(text)
    else { return -1 }
    return length
  }
}

// The cookies that the session's storage holds for a hop are sent with it, unless the caller sets `Cookie` or
// `httpShouldHandleCookies` is false.
extension HopLoop {
  mutating func addCookies() -> Outcome<HopLoop> {
    requests.dropCookies()
    guard let cookies = services.cookies, route.handler.isOverNetwork else { return .done }
    guard delegate.hasPendingCookies, cookieQuery.takesCookies else { return add(cookies) }
    // Cookies of the previous hop are still being stored.
    return .gate(.cookies) { hops in hops.add(cookies) }
  }

  private mutating func add(_ cookies: SessionCookies) -> Outcome<HopLoop> {
    switch cookies.header(for: cookieQuery) {
    case .none: break
    case .header(let header): requests.addCookies(header)
    case .needsReading:
      return .task { [query = cookieQuery] in
        await cookies.readHeader(for: query)
      } then: { hops, header in
        if let header { hops.requests.addCookies(header) }
        return .done
      }
    }
    return .done
  }

  private var cookieQuery: CookieQuery {
    CookieQuery(
      request: request, urlRequest: urlRequest, initialOrigin: redirects.initialOrigin,
      redirectors: redirects.redirectors)
  }

  /// Stores the cookies of a response to the current hop, also after the end of the request.
  var cookieTaker: @Sendable (ResponseHead) -> Void {
    let (request, urlRequest) = (request, urlRequest)
    guard let cookies = services.cookies, urlRequest.httpShouldHandleCookies else { return { _ in } }
    return { head in
      guard head.role.isHop, head.block.marks.contains(.setCookie) else { return }
      cookies.store(head.block.rawValues(of: "Set-Cookie"), of: request, for: urlRequest)
    }
  }
}
