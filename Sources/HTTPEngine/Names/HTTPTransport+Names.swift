import FoundationEssentials
import HTTPSystem
import HTTPWire
import Synchronization

// Names are looked up over HTTPS (RFC 8484) by requests of the engine, with its trust evaluation, proxies and
// timeouts.
extension HTTPTransport {
  /// The largest message of DNS.
  private static var largestAnswer: Int64 { 65_535 }

  /// Looks up the addresses of the host, then sends the request to them.
  @inline(never)
  func sendToFoundAddresses(
    _ request: WireRequest, observer: any TransferObserver, completion: any TransferCompletion
  ) {
    let search = AddressSearch()
    let start = observer.transferBegan(search)
    guard start != .refuse else {
      observer.transferEnded()
      return completion.transferEnded(.failure(LoopExchanges.cancelled))
    }
    search.begin(
      Task.detached(executorPreference: loop) { [self] in
        // A question would show the name service that the request is about to be sent, and the answer would expire.
        if start == .hold { await search.wait(until: request.deadline) }
        let located =
          Task.isCancelled ? .failure(LoopExchanges.cancelled) : await addAddresses(to: request)
        // The transfer to the addresses has its own control.
        observer.transferEnded()
        switch located {
        case .success(let located): submit(located, observer: observer, completion: completion)
        case .failure(let failure): completion.transferEnded(.failure(failure))
        }
      })
  }

  /// Returns the request with the addresses of its host. Without a name service, the system finds them.
  nonisolated(nonsending) func addAddresses(to request: WireRequest) async -> Result<
    WireRequest, TransportFailure
  > {
    let options = request.profile.options
    guard let service = options.nameServiceURL else { return .success(request) }
    guard let origin = Origin(url: service), origin.scheme == "https" else {
      return .failure(
        TransportFailure(
          .badURL,
          "The name service must have an https URL (nameServiceURL), but its URL is \(Redaction.standard.url(service))."
        ))
    }
    guard let route = Self.route(of: request), let endpoint = route.namedEndpoint else {
      return .success(request)
    }
    let start = ContinuousClock.now
    let found: [IPAddress]
    switch await addresses(of: endpoint.host, for: request, at: origin, service) {
    case .success(let addresses): found = addresses
    case .failure(let failure): return .failure(failure)
    }
    // A proxy connects to these addresses, and this machine to the proxy alone.
    let usable = route.proxy == nil ? found.filter { options.addressFamily.includes($0.family) } : found
    guard !usable.isEmpty else {
      return .failure(
        TransportFailure(
          .cannotFindHost,
          "The name service \(origin.host) (nameServiceURL) knows no \(options.addressFamily) address of \(endpoint.host), and addressFamily allows no other."
        ))
    }
    let addresses = KnownAddresses(
      host: endpoint.host, port: endpoint.port, addresses: usable, searchTime: start.duration(to: .now))
    return .success(request.changing { $0.addresses = addresses })
  }

  /// Returns the way of a request; `nil` if there is none.
  private static func route(of request: WireRequest) -> Route? {
    let profile = request.profile
    var proxy: ProxyServer?
    switch ProxyEnvironment.shared.choice(for: request.origin, in: profile.proxies) {
    case .direct, .environment: break
    case .unreadable: return nil
    case .server(let server): proxy = server
    }
    return try? Route(
      to: request.origin, profile.options, alternative: request.alternative, proxy: proxy, mayForward: true)
  }

  /// Returns the addresses of a name that are known, or the answer of the name service within the limits of a request.
  nonisolated(nonsending) private func addresses(
    of name: String, for request: WireRequest, at origin: Origin, _ service: String
  ) async -> NameCache.Answer {
    // A client identity that belongs to one origin is not shown to the name service.
    let profile = request.profile.elsewhere ?? request.profile
    let key = NameCache.Key(service: service, partition: request.profile.partition, name: name)
    let question = NameCache.Question(
      key: key, profile: ObjectIdentifier(profile), idleTimeout: request.idleTimeout)
    let limits = [request.profile.options.timeLimits.nameLookup, request.connectTimeout].compactMap { $0 }
    let deadline = ([request.deadline].compactMap { $0 } + limits.map { .now + $0 }).min()
    let outcome = await names.addresses(question, until: deadline, on: loop) { [self] in
      await lookUp(key, for: request, at: origin, Self.profile(for: profile, at: origin))
    }
    switch outcome {
    case .answer(let answer): return answer
    case .cancelled: return .failure(LoopExchanges.cancelled)
    case .late: return .failure(.ofLateNameService(origin, for: name, request))
    }
  }

  /// Looks up a name for all requests that wait for it. Each of them has its own limits.
  private func lookUp(
    _ key: NameCache.Key, for request: WireRequest, at service: Origin, _ profile: ConnectionProfile
  ) async -> Result<NameCache.Found, TransportFailure> {
    async let second = ask(key, .v6, for: request, at: service, profile)
    let first = await ask(key, .v4, for: request, at: service, profile)
    var (addresses, seconds) = ([IPAddress](), UInt32.max)
    for outcome in [await second, first] {
      switch outcome {
      case .success(.addresses(let found, let time)) where !found.isEmpty:
        addresses += found
        seconds = min(seconds, time)
      case .success: break
      case .failure(let failure) where failure.kind == .cancelled || failure.chain != nil:
        return .failure(failure)
      case .failure: break
      }
    }
    let failures = [first, await second].compactMap(\.failure)
    guard addresses.isEmpty else {
      // The other family may have addresses, too.
      return .success(.init(addresses: addresses, seconds: failures.isEmpty ? seconds : 0))
    }
    if let failure = failures.first { return .failure(failure) }
    return .failure(
      TransportFailure(
        .cannotFindHost,
        "The name \(key.name) could not be found by the name service \(service.host) (nameServiceURL); check its spelling."
      ))
  }

  /// Returns the profile for requests to the name service. Trust, client identity and proxies come from the request. No
  /// identity is chosen, because the question would be about the server.
  private static func profile(for profile: ConnectionProfile, at service: Origin) -> ConnectionProfile {
    var options = profile.options
    options.nameServiceURL = nil
    options.refusesPrivateAddresses = false
    options.unixSocket = options.proxySocket(to: service, profile.proxies)
    options.alternativeServices = nil
    options.strictTransportSecurity = nil
    options.bodySizeLimit = largestAnswer
    options.decodingRatioLimit = nil
    options.decodesContent = true
    options.timeLimits = .init()
    return ConnectionProfile(
      options: options, connectionsPerHost: profile.connectionsPerHost, evaluator: profile.evaluator,
      systemProxies: profile.systemProxies, session: profile, choosesIdentity: false)
  }

  nonisolated(nonsending) private func ask(
    _ key: NameCache.Key, _ family: IPAddress.Family, for request: WireRequest, at service: Origin,
    _ profile: ConnectionProfile
  ) async -> Result<NameMessage.Answer, TransportFailure> {
    guard let question = NameMessage.question(key.name, family) else {
      return .failure(
        TransportFailure(.cannotFindHost, "\(key.name) is not a name that a name service can look up."))
    }
    let type = "application/dns-message"
    let query = WireRequest(url: key.service, origin: service, profile: profile) { parts in
      parts.method = "POST"
      parts.isIdempotent = true
      parts.fields = [HTTPHeader(name: "Accept", value: type), HTTPHeader(name: "Content-Type", value: type)]
      parts.body = .bytes(Data(question))
      parts.idleTimeout = request.idleTimeout
      parts.priority = request.priority
      // A byte stream does not wait for other requests, and neither does its question.
      parts.entersQueue = false
    }
    do {
      let response = try await send(query, observer: QuietObserver())
      guard response.head.status == 200, let body = response.body,
        let answer = NameMessage.answer(Array(body), to: question, family)
      else {
        return .failure(
          TransportFailure(
            .cannotFindHost,
            "The name \(key.name) could not be found: the name service \(service.host) answered with the status \(response.head.status) and without a valid DNS message."
          ))
      }
      if case .refused(let code) = answer {
        return .failure(
          TransportFailure(
            .cannotFindHost,
            "The name \(key.name) could not be found: the name service \(service.host) refused the question (code \(code))."
          ))
      }
      return .success(answer)
    } catch {
      return .failure(error.ofNameService(service))
    }
  }
}

extension TransportOptions {
  /// Returns the Unix-domain socket of the proxy to an origin; `nil` if no proxy leads there, because the socket then
  /// belongs to another server.
  func proxySocket(to origin: Origin, _ proxies: ProxyTable?) -> String? {
    switch ProxyEnvironment.shared.choice(for: origin, in: proxies) {
    case .direct, .environment: nil
    case .server, .unreadable: unixSocket
    }
  }
}

extension ProxyServer {
  /// Whether the proxy takes the addresses of servers, and not their names.
  var takesAddresses: Bool { kind == .socks4 || kind == .socks5 }
}

extension Route {
  /// The server whose name is looked up on this machine; `nil` if there is no name, or a proxy looks it up.
  var namedEndpoint: (host: String, port: Int)? {
    guard proxy?.takesAddresses != false, case .host(let host, let port) = endpoint else { return nil }
    // These names always mean this machine (RFC 6761 §6.3). No name has a colon, but an address may have a zone that
    // does not exist.
    guard IPAddress.loopback(of: host) == nil, !host.utf8.contains(UInt8(ascii: ":")),
      HostLookup.addresses(of: host, literalsOnly: true).isEmpty
    else { return nil }
    return (host, port)
  }
}

/// The search for the addresses of a request, which is cancelled with it.
private final class AddressSearch: TransferControl {
  private enum State {
    case new
    case running(Task<Void, Never>)
    case cancelled
  }

  /// The task that looks up addresses, for any thread.
  private let state = TrackedMutex(State.new)
  private let resumption = FirstValue<Void>()

  func begin(_ task: Task<Void, Never>) {
    let isCancelled = state.withLock { state in
      if case .cancelled = state { return true }
      state = .running(task)
      return false
    }
    if isCancelled { task.cancel() }
  }

  /// Waits until the request is resumed or cancelled, or its deadline has come.
  nonisolated(nonsending) func wait(until deadline: MonotonicTime?) async {
    await resumption.value(until: deadline, otherwise: (), ifCancelled: ())
  }

  func suspend() {}
  func resume() { resumption.give(()) }

  func cancel() {
    let task = state.withLock { state -> Task<Void, Never>? in
      defer { state = .cancelled }
      if case .running(let task) = state { return task }
      return nil
    }
    task?.cancel()
  }
}

extension Result {
  fileprivate var failure: Failure? { if case .failure(let failure) = self { failure } else { nil } }
}

extension TransportFailure {
  /// Returns the failure of a request because its name service did not answer within the limits of the request.
  fileprivate static func ofLateNameService(_ service: Origin, for name: String, _ request: WireRequest)
    -> TransportFailure
  {
    let isTotal = request.deadline.map { $0 <= .now } ?? false
    let phase = isTotal ? PhaseTimer.Phase.total : .nameLookup
    var reason =
      isTotal
      ? "The transfer from \(request.origin.host) was not complete in time (timeoutIntervalForResource)."
      : RouteFailure.timedOut(name, in: phase).message
    if let limit = request.profile.options.timeLimits[phase],
      isTotal || limit <= request.connectTimeout ?? limit
    {
      reason = phase.message(host: isTotal ? request.origin.host : name, limit: limit)
    }
    return TransportFailure(
      .timedOut, "The name service \(service.host) did not answer in time. " + reason, phase: phase)
  }

  /// Returns the failure of a request because its name service could not be queried.
  fileprivate func ofNameService(_ service: Origin) -> TransportFailure {
    let kind: FailureKind
    switch self.kind {
    case .cannotFindHost, .cannotConnectToHost, .connectionLost, .badServerResponse, .cannotDecodeContent,
      .dataLengthExceedsMaximum:
      kind = .cannotFindHost
    case .cancelled, .shutDown: return self
    default: kind = self.kind
    }
    // The request itself was not sent, so it has no metrics.
    return TransportFailure(
      kind, "The name service \(service.host) could not be asked. \(message)",
      cause: cause, chain: chain, phase: phase)
  }
}

extension TransportOptions.AddressFamily {
  /// Whether connections may go to addresses of a family.
  func includes(_ family: IPAddress.Family) -> Bool {
    switch self {
    case .any: true
    case .ipv4: family == .v4
    case .ipv6: family == .v6
    }
  }
}
