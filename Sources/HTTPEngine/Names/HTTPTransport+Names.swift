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
        let located: Result<WireRequest, TransportFailure>
        if Task.isCancelled {
          located = .failure(LoopExchanges.cancelled)
        } else if start == .hold, request.isOverdue {
          located = .failure(TransportFailure(.timedOut, request.overdueMessage, phase: .total))
        } else {
          located = await addAddresses(to: request)
        }
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
    let profile = request.profile
    guard let url = profile.options.nameServiceURL else { return .success(request) }
    guard let service = NameServiceRoute(profile), service.origin.scheme == "https" else {
      return .failure(
        TransportFailure(
          .badURL,
          "The name service must have an https URL (nameServiceURL), but its URL is \(Redaction.standard.url(url))."
        ))
    }
    guard let route = Self.route(of: request), let endpoint = route.namedEndpoint else {
      return .success(request)
    }
    let start = ContinuousClock.now
    let found: [IPAddress]
    // A proxy connects to these addresses, and this machine to the proxy alone.
    let key = NameCache.Key(
      service: service, partition: profile.partition, name: endpoint.host,
      addressFamily: route.proxy == nil ? profile.options.addressFamily : .any)
    switch await addresses(key, for: request, at: service.origin) {
    case .success(let addresses): found = addresses
    case .failure(let failure): return .failure(failure)
    }
    let addresses = KnownAddresses(
      host: endpoint.host, port: endpoint.port, addresses: found, searchTime: start.duration(to: .now))
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
    _ key: NameCache.Key, for request: WireRequest, at origin: Origin
  ) async -> NameCache.Answer {
    // A client identity that belongs to one origin is not shown to the name service.
    let profile = request.profile.elsewhere ?? request.profile
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
    case .late: return .failure(.ofLateNameService(origin, for: key.name, request))
    }
  }

  /// Looks up a name for all requests that wait for it. Each of them has its own limits.
  private func lookUp(
    _ key: NameCache.Key, for request: WireRequest, at service: Origin, _ profile: ConnectionProfile
  ) async -> Result<NameCache.Found, TransportFailure> {
    let families = [IPAddress.Family.v6, .v4].filter { key.addressFamily.includes($0) }
    let answers = await answers(families) { [self] family in
      await ask(key, family, for: request, at: service, profile)
    }
    var (addresses, seconds) = ([IPAddress](), UInt32.max)
    for answer in families.compactMap({ answers[$0] }) {
      switch answer {
      case .success(.addresses(let found, let time)) where !found.isEmpty:
        addresses += found
        seconds = min(seconds, time)
      case .success: break
      case .failure(let failure) where failure.kind == .cancelled || failure.chain != nil:
        return .failure(failure)
      case .failure: break
      }
    }
    let isComplete = families.allSatisfy { answers[$0].map { $0.failure == nil } ?? false }
    guard addresses.isEmpty else {
      // Otherwise the other family may have addresses, too.
      return .success(.init(addresses: addresses, seconds: isComplete ? seconds : 0))
    }
    if let failure = answers.values.compactMap(\.failure).first { return .failure(failure) }
    let kind = key.addressFamily == .any ? "address" : "\(key.addressFamily) address (addressFamily)"
    return .failure(
      TransportFailure(
        .cannotFindHost,
        "The name service \(service.host) (nameServiceURL) knows no \(kind) of \(key.name); check its spelling.",
        unreached: .none))
  }

  /// Asks for each family. When one has addresses, the other has a second more: a service that never answers about one
  /// of them would delay all requests to their limits.
  private func answers(
    _ families: [IPAddress.Family], _ ask: @escaping @Sendable (IPAddress.Family) async -> FamilyAnswer
  ) async -> [IPAddress.Family: FamilyAnswer] {
    await withTaskGroup(of: (IPAddress.Family, FamilyAnswer)?.self) { group in
      for family in families { group.addTask { (family, await ask(family)) } }
      var answers: [IPAddress.Family: FamilyAnswer] = [:]
      while answers.count < families.count, case let (family, answer)?? = await group.next() {
        answers[family] = answer
        guard case .success(.addresses(let found, _)) = answer, !found.isEmpty else { continue }
        group.addTask {
          await FirstValue<Void>().value(
            until: .now + Self.rest, otherwise: (), ifCancelled: ())
          return nil
        }
      }
      group.cancelAll()
      return answers
    }
  }

  private typealias FamilyAnswer = Result<NameMessage.Answer, TransportFailure>

  /// The time for the answer about the other family. It is longer than RFC 8305 §3 says, because addresses that come
  /// later are not connected to, and this machine may reach no others.
  private static var rest: Duration { .seconds(1) }

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
    // Only to name the setting in messages: each question has the idle timeout of its request.
    options.timeLimits = .init(idle: profile.options.timeLimits.idle)
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
        TransportFailure(
          .cannotFindHost, "\(key.name) is not a name that a name service can look up.", unreached: .none))
    }
    let type = "application/dns-message"
    let query = WireRequest(url: key.service.url, origin: service, profile: profile) { parts in
      parts.method = "POST"
      parts.isIdempotent = true
      parts.fields = [HTTPHeader(name: "Accept", value: type), HTTPHeader(name: "Content-Type", value: type)]
      parts.body = .bytes(Data(question))
      parts.idleTimeout = request.idleTimeout
      parts.priority = request.priority
      // A byte stream does not wait for other requests, and neither does its question.
      parts.isQuestion = true
    }
    do {
      let response = try await send(query, observer: QuietObserver())
      guard response.head.status == 200, let body = response.body,
        let answer = NameMessage.answer(Array(body), to: question, family)
      else {
        return .failure(
          TransportFailure(
            .cannotFindHost,
            "The name \(key.name) could not be found: the name service \(service.host) answered with the status \(response.head.status) and without a valid DNS message.",
            unreached: .none))
      }
      if case .addresses(let found, let seconds) = answer {
        // The answer was cached on the way (RFC 8484 §5.1).
        let rest = max(0, Int64(seconds) - response.head.block.age)
        return .success(.addresses(found, seconds: UInt32(clamping: rest)))
      }
      if case .refused(let code) = answer {
        return .failure(
          TransportFailure(
            .cannotFindHost,
            "The name \(key.name) could not be found: the name service \(service.host) refused the question (code \(code)).",
            unreached: .none))
      }
      return .success(answer)
    } catch {
      return .failure(error.ofNameService(service))
    }
  }
}

extension TransportOptions {
  /// Returns the Unix-domain socket of the proxy to an origin; `nil` if the program has named no proxy to it, because
  /// the socket then belongs to another server. The proxies of the environment are reached over TCP.
  func proxySocket(to origin: Origin, _ proxies: ProxyTable?) -> String? {
    switch proxies?.choice(for: origin) ?? .environment {
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
    let start = "The name service \(service.host) did not answer in time. "
    guard !request.isOverdue else {
      return TransportFailure(.timedOut, start + request.overdueMessage, phase: .total)
    }
    let phase = PhaseTimer.Phase.nameLookup
    var reason = RouteFailure.timedOut(name, in: phase).message
    if let limit = request.profile.options.timeLimits[phase], limit <= request.connectTimeout ?? limit {
      reason = phase.message(host: name, limit: limit)
    }
    return TransportFailure(.timedOut, start + reason, phase: phase)
  }

  /// Returns the failure of a request because its name service could not be queried.
  fileprivate func ofNameService(_ service: Origin) -> TransportFailure {
    let kind: FailureKind
    var unreached = unreached
    switch self.kind {
    case .cannotFindHost, .cannotConnectToHost: kind = .cannotFindHost
    case .connectionLost, .badServerResponse, .cannotDecodeContent, .dataLengthExceedsMaximum:
      kind = .cannotFindHost
      // The service was connected to.
      unreached = .none
    case .cancelled, .shutDown: return self
    default: kind = self.kind
    }
    // The request itself was not sent, so it has no metrics.
    return TransportFailure(
      kind, "The name service \(service.host) could not be asked. \(message)",
      cause: cause, chain: chain, phase: phase, unreached: unreached)
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
