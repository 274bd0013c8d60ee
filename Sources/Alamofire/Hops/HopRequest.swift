import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

// One hop: a request that goes over the wire, and its response.
extension HopLoop {
  mutating func makeRequest() throws(AFError) -> Outcome<HopLoop> {
    let urlRequest = urlRequest
    let plain = try core.makeWireRequest(of: urlRequest, &violation)
    let request = plain.upgraded
    self.request = request
    self.urlRequest = urlRequest.withURL(of: request, upgradedFrom: plain)
    initialOrigin = request.origin
    followPermanentRedirects()
    keepSecrets(at: core.kind.ownerOfSecrets(in: request))
    // A scheme that neither the engine nor we serve is for the `URLProtocol` classes, which are asked next.
    handler = try handler(of: request)
    return .done
  }

  /// Sends the request to the URL where permanent redirects of earlier ones led.
  private mutating func followPermanentRedirects() {
    let request = request
    let url = core.kind.redirectedURL(of: request.url)
    guard url != request.url, let target = WireTarget(url) else { return }
    self.request =
      request.changing { parts in
        parts.url = target.url
        parts.origin = target.origin
      }.upgraded
    urlRequest.url = shownURL(of: self.request) ?? urlRequest.url
    keepSecrets(at: request.origin)
  }

  /// Keeps the secrets of a request from another origin, as a redirect to it does.
  private mutating func keepSecrets(at owner: Origin) {
    let request = request
    guard owner != request.origin else { return }
    initialOrigin = owner
    leftInitialOrigin = true
    let profile = request.profile.elsewhere ?? request.profile
    self.request = request.following(.leavingOrigin(request)).changing { $0.profile = profile }
  }

  /// Asks the delegate for another stream if the one that was read is needed again, as a redirect or a challenge
  /// requires. Without one the transport ends the request with an error.
  func provideBody() -> Outcome<HopLoop> {
    guard core.observers.contains(.task), case .source(let source) = request.body, !source.isRepeatable,
      let spent = core.uploadable, spent.stream != nil, let work = core.askForBodyStream(of: owner)
    else { return .done }
    return .task(work) { hops, _ in
      guard let next = hops.core.uploadable?.stream, next !== spent.stream else { return .done }
      let body = RequestBody.source(hops.core.source(of: next, length: source.length))
      hops.request = hops.request.changing { $0.body = body }
      return .done
    }
  }

  /// Applies the cache policy, and makes the hop known to the thread that reads its response.
  mutating func beginHop() -> Outcome<HopLoop> {
    let verdict = applyCachePolicy()
    noteRemovals()
    if !handler.isOverNetwork, startDate == nil { startDate = Date() }
    let request = outgoing
    let hop = CurrentHop(
      request: request, initialOrigin: initialOrigin, authentication: authentication,
      redirectCount: redirectCount, challenge: core.challengeDecision(in: request.sink))
    core.state.withLock { state in
      state.run.hop = hop
      state.observed.tasks.begin()
    }
    return .event(.cache(verdict))
  }

  // MARK: The transfer

  mutating func send() -> Outcome<HopLoop> {
    noteRemovals()
    return send(outgoing, observer: core) { hops, result in .event(hops.accept(result)) }
  }

  /// Takes the outcome of the transfer of a hop.
  private mutating func accept(_ outcome: consuming Result<WireResponse, TransportFailure>) -> StageEvent {
    switch outcome {
    case .success(let response):
      recordHop(response.metrics, response.head)
      return responded(response, concernsCache: concernsCache(response))
    case .failure(let failure): return failed(failure)
    }
  }

  mutating func responded(_ response: WireResponse, concernsCache: Bool) -> StageEvent {
    self.response = response
    var facts = ResponseFacts()
    facts.status = UInt16(clamping: response.head.status)
    facts.isHTTP = response.head.role == .hop
    facts.concernsCache = concernsCache
    facts.hasAuthentication = authentication != nil
    return .responded(facts)
  }

  @inline(never)
  mutating func recordHop(
    _ metrics: TransferMetrics, _ head: ResponseHead?, as sent: WireRequest? = nil,
    from source: TaskMetrics.ResourceFetchType = .networkLoad
  ) {
    guard handler.isOverNetwork else { return }
    records.append(Exchange.Hop(sent ?? outgoing, metrics: metrics, head: head, fetchType: source))
    if !request.isSafe { core.session.sharedTransfers.beginEra() }
  }
}

extension RequestCore {
  /// Makes what goes over the wire of a user's request and its session: their header fields merged, the
  /// timeouts of whichever is more specific.
  ///
  /// Remembers the credential of the URL, and begins the file of a download.
  ///
  /// - Parameter violation: Receives the fault of the method or a field. It is an error if the engine has to send them.
  fileprivate func makeWireRequest(
    of request: URLRequest, _ violation: inout HeaderFieldRules.Violation?
  ) throws(AFError) -> WireRequest {
    guard let url = request.url else { throw .sessionTaskFailed(error: URLError.noURL) }
    let method = request.httpMethod ?? "GET"
    let text = url.absoluteString
    let target = WireTarget(kind.engineURL(of: text))
    guard let origin = target?.origin ?? otherOrigin(url) else {
      throw .sessionTaskFailed(error: URLError.unsupported(url))
    }
    if let target, let user = target.user {
      useCredentialOfURL(user: user, password: target.password ?? "")
    }
    let own = request.allHTTPHeaderFields
    let (profile, priority) = profileAndPriority
    let fields = session.settings.fields(adding: own, repeated: profile.options.repeatedHeaders)
    violation = session.settings.violation(method: method, own: own, all: fields)
    let body = try body(of: request, own: own)
    let sink = keepingChallenges(try kind.sink(limit: profile.options.bodySizeLimit)) ?? observedBody
    return WireRequest(url: target?.url ?? text, origin: origin, profile: profile) { parts in
      parts.method = method
      parts.fields = fields
      parts.body = body
      parts.trailers = trailers
      parts.sink = sink
      parts.priority = priority
      parts.idleTimeout = session.settings.idleTimeout(of: request, profile)
      parts.deadline = session.settings.deadline(profile)
      parts.wireObserver = wireObserver(profile)
    }
  }

  /// Returns the origin of a URL that the engine does not serve; `nil` if no other handler can serve it either.
  @inline(never)
  private func otherOrigin(_ url: URL) -> Origin? {
    guard let scheme = url.scheme?.lowercased(), scheme != "http", scheme != "https",
      HopHandler(scheme: scheme) != nil || !session.settings.protocolClasses.isEmpty
    else { return nil }
    return Origin(scheme: scheme, host: url.host ?? "", port: url.port)
  }

  /// The trailer fields of an ordinary upload.
  private var trailers: RequestTrailers? {
    guard kind.traits == .hasBody else { return nil }
    return state.withLock { $0.hasExtras ? $0.extras.trailers : nil }
  }

  private func body(of request: URLRequest, own: [String: String]?) throws(AFError) -> RequestBody {
    if let content = try kind.content(for: request, of: self) { return content }
    if let data = request.httpBody { return .bytes(data) }
    guard let stream = request.httpBodyStream else { return .none }
    return .source(source(of: stream, length: WireRequest.contentLength(own)))
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

  /// Returns the request that follows a redirect.
  func following(_ plan: RedirectPlan) -> WireRequest {
    redirected { parts in
      // User and password in `Location` are dropped.
      parts.url = WireTarget(plan.url)?.url ?? plan.url
      parts.origin = plan.origin
      parts.method = plan.method
      parts.fields = plan.fields(from: fields)
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
