import FoundationEssentials
import HTTPSystem
import HTTPWire
import Synchronization

// Names are looked up over HTTPS (RFC 8484) by requests of the engine, with its trust evaluation, proxies and
// timeouts.
extension HTTPTransport {
  private typealias Addresses = Result<[IPAddress], TransportFailure>

  /// The largest message of DNS.
  private static var largestAnswer: Int64 { 65_535 }

  /// Looks up the addresses of the host, then sends the request to them.
  @inline(never)
  func sendToFoundAddresses(
    _ request: WireRequest, observer: any TransferObserver, completion: any TransferCompletion
  ) {
    let search = AddressSearch()
    guard observer.transferBegan(search) != .refuse else {
      observer.transferEnded()
      return completion.transferEnded(
        .failure(TransportFailure(.cancelled, "The request was cancelled.")))
    }
    search.begin(
      Task.detached(executorPreference: loop) { [self] in
        let located = await addAddresses(to: request)
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
          "The name service must have an https URL (nameServiceURL), but its URL is \(service)."))
    }
    guard let endpoint = Self.endpoint(of: request) else { return .success(request) }
    let key = NameCache.Key(service: service, partition: request.profile.partition, name: endpoint.host)
    var found = names.addresses(key)
    let start = ContinuousClock.now
    if found == nil {
      switch await lookUp(key, for: request, at: origin) {
      case .success(let addresses): found = addresses
      case .failure(let failure): return .failure(failure)
      }
    }
    let usable = (found ?? []).filter { options.addressFamily.includes($0.family) }
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

  /// Returns the host to connect to; `nil` if its name need not be looked up here.
  private static func endpoint(of request: WireRequest) -> (host: String, port: Int)? {
    let profile = request.profile
    var proxy: ProxyServer?
    switch ProxyEnvironment.shared.choice(for: request.origin, in: profile.proxies) {
    case .direct, .environment: break
    case .unreadable: return nil
    case .server(let server): proxy = server
    }
    let route = try? Route(
      to: request.origin, profile.options, alternative: request.alternative, proxy: proxy, mayForward: true)
    return route?.namedEndpoint
  }

  nonisolated(nonsending) private func lookUp(
    _ key: NameCache.Key, for request: WireRequest, at service: Origin
  ) async -> Addresses {
    // A client identity that belongs to one origin is not shown to the name service.
    let profile = Self.profile(for: request.profile.elsewhere ?? request.profile, at: service)
    let limits = [request.profile.options.timeLimits.nameLookup, request.connectTimeout].compactMap { $0 }
    let deadline = ([request.deadline].compactMap { $0 } + limits.map { .now + $0 }).min()
    async let second = ask(key, .v6, for: request, at: service, profile, until: deadline)
    let first = await ask(key, .v4, for: request, at: service, profile, until: deadline)
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
      if failures.isEmpty { names.store(addresses, for: seconds, key) }
      return .success(addresses)
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
    _ profile: ConnectionProfile, until deadline: MonotonicTime?
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
      parts.deadline = deadline
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
      return .failure(error.ofNameService(service, for: key.name, request))
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

  func begin(_ task: Task<Void, Never>) {
    let isCancelled = state.withLock { state in
      if case .cancelled = state { return true }
      state = .running(task)
      return false
    }
    if isCancelled { task.cancel() }
  }

  func suspend() {}
  func resume() {}

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
  /// Returns the failure of a request because its name service could not be queried.
  fileprivate func ofNameService(_ service: Origin, for name: String, _ request: WireRequest)
    -> TransportFailure
  {
    let kind: FailureKind
    if phase == .total, request.deadline.map({ $0 > .now }) ?? true {
      let phase = PhaseTimer.Phase.nameLookup
      var reason = RouteFailure.timedOut(name, in: phase).message
      if let limit = request.profile.options.timeLimits[phase], limit <= request.connectTimeout ?? limit {
        reason = phase.message(host: name, limit: limit)
      }
      return TransportFailure(
        .timedOut, "The name service \(service.host) did not answer in time. " + reason, phase: .nameLookup)
    }
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

/// The addresses of names, until they expire.
final class NameCache: Sendable {
  struct Key: Hashable {
    let service: String
    /// The partition of the trust settings by which the name service was verified.
    let partition: Int
    let name: String
  }

  private struct Entry {
    let addresses: [IPAddress]
    let end: UInt64
  }

  private static let capacity = 1024
  /// The longest time for which an answer is cached, in seconds.
  private static let longest: UInt32 = 3600

  /// The addresses from name servers until they expire. The loop uses it.
  private let entries = TrackedMutex<[Key: Entry]>([:])

  func addresses(_ key: Key) -> [IPAddress]? {
    let now = Clock.now()
    return entries.withLock { entries in
      guard let entry = entries[key], entry.end > now else { return nil }
      return entry.addresses
    }
  }

  func store(_ addresses: [IPAddress], for seconds: UInt32, _ key: Key) {
    guard seconds > 0 else { return }
    let now = Clock.now()
    let entry = Entry(addresses: addresses, end: now + UInt64(min(seconds, Self.longest)) * 1_000_000_000)
    entries.withLock { entries in
      if entries.count >= Self.capacity {
        entries = entries.filter { $0.value.end > now }
        if entries.count >= Self.capacity { entries.removeAll() }
      }
      entries[key] = entry
    }
  }
}
