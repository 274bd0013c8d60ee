import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire

/// The code that answers a hop, and the server that the hop is sent to.
struct HopRoute: Sendable {
  /// The server, as far as the host policies of the session decide.
  enum Server {
    /// Policies may concern the hop. It is decided before it is sent.
    case undecided
    /// The origin. No policy of a host is used or noted.
    case plain
    /// The server of the origin is authenticated, so that the policies in its responses count. An alternative service
    /// of the origin is tried first.
    case authenticated
    /// The server of the origin is authenticated, and an alternative service has failed.
    case withoutAlternative
  }

  var handler = HopHandler.engine
  var server = Server.plain
  private var hasWaited = false

  /// Begins with the choice of the server for a request.
  mutating func align(with request: WireRequest) {
    let isConcerned = request.hasHostPolicies && handler.isOverNetwork && request.scheme == "https"
    server = isConcerned ? .undecided : .plain
  }

  /// Notes a wait for a network. Returns whether it is the first one.
  mutating func beginWaiting() -> Bool {
    defer { hasWaited = true }
    return !hasWaited
  }
}

// The choice of what answers a hop, and the transfer to it.
extension HopLoop {
  func handler(of request: WireRequest) throws(AFError) -> HopHandler {
    if let handler = try kind.handler(of: request, in: services) { return handler }
    return HopHandler(scheme: request.scheme) ?? .local
  }

  /// Finds the handler of the next hop. The `URLProtocol` classes of the configuration are asked once, in their order.
  mutating func chooseHandler() throws(AFError) -> Outcome<HopLoop> {
    if case .journal = route.handler { return .done }
    // Before a class sees the request. The engine's hops within the origin get a field of their own.
    if redirects.count > 0, request.origin != redirects.initialOrigin { dropCredentials() }
    if mustChooseHandler {
      try checkScheme()
      guard services.settings.protocolClasses.isEmpty || traits.contains(.needsEngine) else {
        return askProtocolClasses()
      }
    }
    try checkFields()
    route.align(with: request)
    return .done
  }

  /// Refuses a method or a field that must not be sent. A `URLProtocol` class that handles the request does not send it
  /// through the engine, so it gets them unchanged.
  private func checkFields() throws(AFError) {
    guard let violation = requests.violation else { return }
    throw .sessionTaskFailed(error: URLError(.badURL, violation.message, url: request.url))
  }

  private func askProtocolClasses() -> Outcome<HopLoop> {
    let classes = services.settings.protocolClasses
    let request = foundationRequest()
    let (kind, body) = (kind, self.request.body)
    return .task { () -> Result<TakenRequest?, AFError> in
      guard let taker = classes.first(where: { $0.canInit(with: request) }) else { return .success(nil) }
      var request = request
      do throws(AFError) {
        if case .source = body, let content = try kind.contentInMemory() { request.httpBody = content }
      } catch {
        return .failure(error)
      }
      return .success(TakenRequest(taker: taker, request: request))
    } then: { (hops, taken) throws(AFError) in
      try hops.use(try taken.get())
      hops.route.align(with: hops.request)
      return .done
    }
  }

  private mutating func use(_ taken: TakenRequest?) throws(AFError) {
    if let taken {
      // A class may send it anywhere, so a hop to another origin has none.
      let credential = request.origin == redirects.initialOrigin ? delegate.credential : nil
      route.handler = .userProtocol(
        ProtocolTransport(taken.taker, request: taken.request, credential: credential))
      return
    }
    guard let handler = HopHandler(scheme: request.scheme) else {
      throw .sessionTaskFailed(error: URLError.unsupported(scheme: request.url))
    }
    route.handler = handler
    try checkFields()
  }

  private var mustChooseHandler: Bool {
    !services.settings.protocolClasses.isEmpty || request.limitsSchemes
  }

  private func checkScheme() throws(AFError) {
    let request = request
    let scheme = request.scheme
    guard let allowed = request.profile.options.allowedSchemes, !allowed.contains(scheme) else { return }
    if allowed.contains(kind.callerScheme(for: scheme)) { return }
    throw .sessionTaskFailed(
      error: URLError(
        .unsupportedURL,
        "TransportOptions.allowedSchemes does not allow URLs with \(scheme):; add the scheme to allow them.",
        url: request.url))
  }

  /// Makes the request that a `URLProtocol` class sees: with the session's fields, and its body as data or as a stream.
  /// Content of the kind's own is added only for the class that accepts the request.
  private func foundationRequest() -> URLRequest {
    let request = request
    var made = urlRequest
    if redirects.count > 0 { made.url = URL(wire: request.url) }
    made.httpMethod = request.method
    var fields: [String: String] = [:]
    for field in request.fields {
      fields[field.name] = fields[field.name].map { "\($0), \(field.value)" } ?? field.value
    }
    made.allHTTPHeaderFields = fields
    switch request.body {
    // This removes a stream, too.
    case .none: made.httpBody = nil
    case .bytes(let data): made.httpBody = data
    case .source: if !kind.hasContentInMemory { delegate.addBodyStream(to: &made) }
    }
    return made
  }

  // MARK: Host policies

  /// Decides whether the host policies of the session concern the hop: the server has to be authenticated. Evaluators
  /// that a subclass of the manager chooses are the caller's code.
  private mutating func evaluateHostPolicies(then: @escaping Continuation<HopLoop>) throws(AFError)
    -> Outcome<HopLoop>
  {
    let host = request.origin.host
    guard let trust = services.trust, trust.manager != nil else {
      route.server = .authenticated
      return try then(&self)
    }
    return .task {
      trust.authenticates(host)
    } then: { (hops, isAuthenticated) throws(AFError) in
      hops.route.server = isAuthenticated ? .authenticated : .plain
      return try then(&hops)
    }
  }

  // MARK: The transfer

  /// Sends a request to the server of the hop, or to an alternative service first.
  mutating func send(
    _ request: WireRequest, observer: any TransferObserver, then: @escaping Transfer.End
  ) throws(AFError) -> Outcome<HopLoop> {
    if route.handler.isOverNetwork, let source = request.body.source as? InputStreamSource,
      source.mustEndFirst
    {
      return send(request, after: source, observer: observer, then: then)
    }
    switch route.server {
    case .undecided:
      return try evaluateHostPolicies { (hops) throws(AFError) in
        try hops.send(request, observer: observer, then: then)
      }
    case .plain: return transfer(request, observer: observer, then: then)
    case .authenticated:
      guard route.handler.isEngine, let service = request.alternativeToTry else { break }
      return send(request, to: service, observer: observer, then: then)
    case .withoutAlternative: break
    }
    return transfer(
      request, observer: HostPolicyObserver(observer, request, trust: services.trust), then: then)
  }

  /// Sends a request whose body is announced as empty, once its stream has ended without a byte.
  private func send(
    _ request: WireRequest, after source: InputStreamSource, observer: any TransferObserver,
    then: @escaping Transfer.End
  ) -> Outcome<HopLoop> {
    .task {
      await source.end(before: request.deadline)
    } then: { (hops, ending) throws(AFError) in
      try hops.delegate.checkAlive()
      switch ending {
      case .success?: return try hops.send(request, observer: observer, then: then)
      case .failure(let failure)?: return try then(&hops, .failure(failure))
      case nil:
        return try then(
          &hops, .failure(TransportFailure(.timedOut, request.overdueMessage, phase: .total)))
      }
    }
  }

  /// Sends a request to an alternative service. If the service fails before it has processed the request, the request
  /// is sent to its origin, unless its total time is over.
  private mutating func send(
    _ request: WireRequest, to service: AlternativeService, observer: any TransferObserver,
    then: @escaping Transfer.End
  ) -> Outcome<HopLoop> {
    transfer(
      request.using(service),
      observer: HostPolicyObserver(observer, request, trust: services.trust, isAtAlternative: true)
    ) { (hops, result) throws(AFError) in
      guard result.isUnfit else { return try then(&hops, result) }
      if result.concernsService {
        request.profile.options.alternativeServices?.failed(service, of: request.origin)
      }
      guard !request.isOverdue else { return try then(&hops, .failure(result.timeout(of: request))) }
      hops.route.server = .withoutAlternative
      guard result.isMisdirected else { return try hops.send(request, observer: observer, then: then) }
      return try hops.renewAuthorization { (hops) throws(AFError) in
        let again = request.repeating(hops.credentials.proof)
        return try hops.send(again, observer: observer, then: then)
      }
    }
  }

  private mutating func transfer(
    _ request: WireRequest, observer: any TransferObserver, then: @escaping Transfer.End
  ) -> Outcome<HopLoop> {
    wait(for: Transfer(transport: transport, request: request, observer: observer, then: then))
  }

  /// The transport of the next hop.
  private var transport: any Transport {
    let transport = route.handler.transport(of: services)
    guard isShared else { return transport }
    return SharedTransport(
      shared: services.sharedTransfers, transport: transport, store: services.cache.store)
  }

  /// Whether identical requests share the transfer of the hop. A kind that must not share returns a sink.
  private var isShared: Bool {
    let request = request
    return request.sharesIdentical && route.handler.isEngine && request.isGET && !request.hasSink
      && !request.hasBody && !request.hasLogin
  }
}

/// Sends the revalidations in the background as ``HopLoop/send(_:observer:then:)`` sends hops: with the host policies
/// of the session.
struct RefreshTransport: AsyncTransport {
  let transport: any Transport
  let trust: TrustService?

  func response(
    to request: WireRequest, observer: any TransferObserver
  ) async throws(TransportFailure) -> WireResponse {
    guard request.hasHostPolicies, request.scheme == "https",
      trust?.authenticates(request.origin.host) ?? true
    else { return try await transport.send(request, observer: observer) }
    if let service = request.alternativeToTry {
      let result = await outcome(of: request, at: service, observer)
      guard result.isUnfit else { return try result.get() }
      if result.concernsService {
        request.profile.options.alternativeServices?.failed(service, of: request.origin)
      }
      guard !request.isOverdue else { throw result.timeout(of: request) }
      // A server accepts each count of a nonce once (RFC 7616 §3.4). The next request revalidates at the origin.
      if result.isMisdirected, request.hasDigestAnswer { throw .misdirected(request) }
    }
    return try await transport.send(
      request, observer: HostPolicyObserver(observer, request, trust: trust))
  }

  private func outcome(
    of request: WireRequest, at service: AlternativeService, _ observer: any TransferObserver
  ) async -> Result<WireResponse, TransportFailure> {
    do throws(TransportFailure) {
      return .success(
        try await transport.send(
          request.using(service),
          observer: HostPolicyObserver(observer, request, trust: trust, isAtAlternative: true)))
    } catch {
      return .failure(error)
    }
  }
}

/// A request that a `URLProtocol` class has accepted.
private struct TakenRequest: Sendable {
  let taker: URLProtocol.Type
  /// The request with its body.
  let request: URLRequest
}

/// The code that answers one hop of a request.
enum HopHandler: Sendable {
  /// The session's engine, for `http` and `https`.
  case engine
  /// The engine, for the handshake of a WebSocket connection and the connection itself.
  case webSocket(WebSocketTransport)
  /// The library itself, for `file:` and `data:`.
  case local
  /// The journal of a background transfer, which an earlier process completed.
  case journal(StoredResponseTransport)
  /// The caller's `URLProtocol` class.
  case userProtocol(ProtocolTransport)

  /// Makes the handler of a scheme that no `URLProtocol` class accepts; `nil` if there is none.
  init?(scheme: String) {
    switch scheme {
    case "http", "https": self = .engine
    case "file", "data": self = .local
    default: return nil
    }
  }

  func transport(of services: Services) -> any Transport {
    switch self {
    case .engine: services.transport
    case .webSocket(let transport): transport
    case .local: LocalTransport()
    case .journal(let transport): transport
    case .userProtocol(let transport): transport
    }
  }

  /// Whether the engine sends the hop itself, as a request that a cache or another service may answer.
  var isEngine: Bool {
    switch self {
    case .engine: true
    case .webSocket, .local, .journal, .userProtocol: false
    }
  }

  /// Whether the hop goes over the network and is measured.
  var isOverNetwork: Bool {
    switch self {
    case .engine, .webSocket: true
    case .local, .journal, .userProtocol: false
    }
  }

  /// The response and the error of a `URLProtocol` class.
  var given: ProtocolTransport.Given? {
    switch self {
    case .engine, .webSocket, .local, .journal: nil
    case .userProtocol(let transport): transport.given
    }
  }
}

extension WireRequest {
  /// The alternative service to try, which speaks HTTP/2. The body has to be stored, so that it can be sent again to
  /// the origin after a 421. The body of a stream cannot be. With a proxy, the service would seem to have failed for
  /// all requests.
  fileprivate var alternativeToTry: AlternativeService? {
    let options = profile.options
    guard let services = options.alternativeServices, options.httpVersions != .http1Only,
      options.unixSocket == nil, !bindsConnection, body.isStored, body.count >= 0,
      !options.hostOverrides.contains(where: { $0.leads(origin) }),
      let service = services.choice(for: origin), !usesProxy
    else { return nil }
    return service
  }

  /// Whether the request goes to a proxy, or fails because of one.
  private var usesProxy: Bool {
    guard profile.isDirect != true else { return false }
    switch ProxyEnvironment.shared.choice(for: origin, in: profile.proxies) {
    case .direct, .environment: return false
    case .server, .unreadable: return true
    }
  }

  /// Whether the request has a Digest answer, which counts the use of a nonce.
  fileprivate var hasDigestAnswer: Bool {
    authorization.map { FieldName.equal(String($0.prefix(7)), "Digest ") } ?? false
  }

  /// Returns the request with the present use of a Digest nonce, if the proof has one.
  fileprivate func repeating(_ proof: AuthenticationProof?) -> WireRequest {
    guard let proof, proof.ticket != nil else { return self }
    return adding(proof)
  }
}

extension Result where Success == WireResponse, Failure == TransportFailure {
  /// Whether an alternative service failed before it processed the request, or does not answer for the origin.
  fileprivate var isUnfit: Bool {
    switch self {
    case .success: isMisdirected
    case .failure(let failure): failure.isBeforeRequest
    }
  }

  /// Whether an alternative service has received the request, and does not answer for the origin.
  fileprivate var isMisdirected: Bool {
    switch self {
    case .success(let response): response.head.status == AlternativeServices.misdirected
    case .failure: false
    }
  }

  /// Whether an unfit outcome is due to the service. The total time of the request may be over before the service is
  /// connected to, or while the request waits for one of its streams.
  fileprivate var concernsService: Bool {
    guard case .failure(let failure) = self, failure.phase == .total else { return true }
    return failure.metrics.map { $0.values.isConnecting || $0.values.lookupEnd >= 0 } ?? false
  }

  /// Returns the failure of a request that cannot be sent to its origin, because its total time is over.
  fileprivate func timeout(of request: WireRequest) -> TransportFailure {
    let metrics: TransferMetrics?
    switch self {
    case .failure(let failure) where failure.kind == .timedOut: return failure
    case .failure(let failure): metrics = failure.metrics
    case .success(let response): metrics = response.metrics
    }
    return TransportFailure(.timedOut, request.overdueMessage, metrics: metrics, phase: .total)
  }
}

extension TransportFailure {
  /// Makes the failure of a request that an alternative service has refused, and that is not sent again.
  fileprivate static func misdirected(_ request: WireRequest) -> TransportFailure {
    TransportFailure(
      .alternativeUnfit,
      "The alternative service of \(request.origin.host) does not answer for it (421), and the request cannot be "
        + "repeated with its Digest answer; send another request, which goes to the origin.")
  }

  /// Whether the request was certainly not processed: the service could not be connected to, was not authenticated, or
  /// has refused the request. Certificates that have to be evaluated on another thread count as not authenticated.
  fileprivate var isBeforeRequest: Bool {
    switch kind {
    case .alternativeUnfit, .cannotFindHost, .cannotConnectToHost, .addressRefused, .secureConnectionFailed,
      .certificateUntrusted,
      .certificateHasUnknownRoot, .certificateHasBadDate, .certificateNotYetValid, .trustRefused,
      .trustUndecided,
      .identityUndecided, .clientCertificateRejected, .clientCertificateRequired, .timedOut, .connectionLost,
      .badServerResponse:
      metrics.map { $0.values.requestStart < 0 && !$0.values.mayHaveArrived } ?? true
    default: false
    }
  }
}
