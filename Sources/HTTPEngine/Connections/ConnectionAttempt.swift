import Glibc
import HTTPSystem
import HTTPWire

/// The owner of an attempt, who wants a connection.
protocol ConnectionAttemptOwner: AnyObject {
  /// Called when ``ConnectionAttempt/expiry`` may be earlier.
  func attemptChanged()
  /// Called once, unless the attempt was cancelled. It may be called by ``ConnectionAttempt/begin(_:)``.
  func attemptEnded(_ outcome: Result<any Pipe, TransportFailure>)
}

/// The making of one connection: the look-up of its host, the sockets to its addresses, the way through its proxy, and
/// their limits. Belongs to the loop's thread. ``Connector`` decides about the addresses.
final class ConnectionAttempt {
  private enum Step { case idle, lookingUp, connecting, over }

  /// The use of a name that is looked up.
  private enum Question {
    /// The local end of the connection.
    case localEnd
    /// The host that a proxy is asked for by its address.
    case target
    /// The host that is connected to: the server, or its proxy.
    case endpoint
  }

  /// A socket that connects.
  private final class Candidate: PipeOwner {
    let number: Int
    let socket: Socket
    private unowned let attempt: ConnectionAttempt

    init(_ number: Int, _ socket: Socket, _ attempt: ConnectionAttempt) {
      self.number = number
      self.socket = socket
      self.attempt = attempt
    }

    func pipeIsReady() { attempt.connectionIsReady(self) }
  }

  /// Unowned, because the loop ends the attempt before it ends.
  private unowned(unsafe) let core: LoopCore
  private let request: WireRequest
  private let route: Route
  private unowned let owner: any ConnectionAttemptOwner
  @exclusivity(unchecked) private var step = Step.idle
  @exclusivity(unchecked) private var connector: Connector
  @exclusivity(unchecked) private var candidates: [Int: Candidate] = [:]
  /// The addresses of the name that the local end is bound to; `nil` before they are known.
  @exclusivity(unchecked) private var localAddresses: [IPAddress]?
  /// The addresses that the proxy is asked for one after the other, if it takes no name; empty before they are known.
  @exclusivity(unchecked) private var targets: [IPAddress] = []
  /// The reason why the proxy did not connect to the last address that it was asked for.
  @exclusivity(unchecked) private var refusal: TransportFailure?
  /// The addresses that are connected to.
  @exclusivity(unchecked) private var addresses: [IPAddress] = []
  /// The name that is being looked up, and its use.
  @exclusivity(unchecked) private var lookup: (name: String, question: Question)?
  @exclusivity(unchecked) private var tunnel: Tunnel?
  /// The addresses for which no socket could be bound to ``TransportOptions/localInterface``.
  @exclusivity(unchecked) private var unbound: Set<IPAddress> = []
  @exclusivity(unchecked) private var timer: PhaseTimer?
  @exclusivity(unchecked) private var timing: ConnectionTiming
  /// The time at which the connector begins the next attempt, or a Unix-domain socket is tried again.
  @exclusivity(unchecked) private var nextAttempt: UInt64 = .max
  /// The pauses between attempts to connect to a Unix-domain socket with a full backlog, in nanoseconds. Each is twice
  /// as long as the one before.
  private static let socketPauses: ClosedRange<UInt64> = 1_000_000...100_000_000
  /// The last of these pauses; 0 if the server had room.
  @exclusivity(unchecked) private var socketPause: UInt64 = 0

  init(
    _ request: WireRequest, _ route: Route, _ core: LoopCore, for owner: any ConnectionAttemptOwner
  ) {
    self.request = request
    self.route = route
    self.core = core
    self.owner = owner
    connector = Connector(for: request.profile.options)
    timer = request.profile.phaseLimits.map { PhaseTimer($0) }
    timing = ConnectionTiming(Clock.now(), connect: request.connectTimeout, idle: request.idleTimeout)
  }

  private var host: String { request.origin.host }

  /// The peer of its sockets in messages. The origins of forwarded requests share the connections to their proxy.
  private var peer: String {
    guard let proxy = route.proxy else { return host }
    return route.forwards ? "the proxy \(proxy)" : "\(host) through the proxy \(proxy)"
  }

  /// The ends of the steps so far.
  var times: ConnectionFacts.Times {
    ConnectionFacts.Times(lookupEnd: timing.lookupEnd, connectEnd: timing.connectEnd)
  }

  /// The path of the Unix-domain socket that is connected to, if there is one.
  private var socketPath: String? {
    if case .unixSocket(let path) = route.endpoint { path.text } else { route.proxySocket?.text }
  }

  /// The host and the port that are connected to; `nil` for a Unix-domain socket.
  private var endpoint: (host: String, port: Int)? {
    guard socketPath == nil else { return nil }
    if let proxy = route.proxy { return (proxy.host, proxy.port) }
    guard case .host(let host, let port) = route.endpoint else { return nil }
    return (host, port)
  }

  func begin() {
    guard step == .idle else { return }
    step = .lookingUp
    timer?.begin()
    proceed()
  }

  /// Asks for the next name that is not known yet. When all are, connects.
  private func proceed() {
    let binding = request.profile.options.localInterface.flatMap { SocketBinding($0).name }
    // The local end is looked up first, because every socket needs it.
    if let binding, localAddresses == nil { return lookUp(binding, .localEnd) }
    noteTime { $0.lookupBegan($1) }
    if case .host(let host, _) = route.endpoint, route.proxy?.takesAddresses == true, targets.isEmpty {
      return find(host, .target, known: request.addresses?.addresses)
    }
    if let socketPath { return connect(toSocket: socketPath) }
    guard let endpoint else { return }
    guard UInt16(exactly: endpoint.port).map({ $0 > 0 }) == true else {
      return fail(
        TransportFailure(
          .badURL, "The port \(endpoint.port) of \(endpoint.host) is invalid; ports go from 1 to 65535."))
    }
    find(endpoint.host, .endpoint, known: route.proxy == nil ? request.addresses?.addresses : nil)
  }

  private func find(_ host: String, _ question: Question, known: [IPAddress]?) {
    guard let addresses = known ?? core.resolver.knownAddresses(of: host, core.elapsed) else {
      return lookUp(host, question)
    }
    found(addresses, for: question, nil)
  }

  private func found(_ all: [IPAddress], for question: Question, _ reason: HostLookup.Failure?) {
    switch question {
    case .localEnd:
      localAddresses = all
      proceed()
    case .target: foundTargets(all, reason)
    case .endpoint:
      timing.lookupEnd = Clock.now()
      let family = request.profile.options.addressFamily
      let usable = all.filter { family.includes($0.family) }
      guard !usable.isEmpty || all.isEmpty else {
        return fail(RouteFailure.excluded(endpoint?.host ?? host, route.proxy, by: family))
      }
      guard usable.isEmpty, let proxy = route.proxy else { return connect(to: usable, reason) }
      fail(RouteFailure.unknownProxy(proxy, reason))
    }
  }

  /// Keeps the addresses that the proxy may be asked for.
  private func foundTargets(_ all: [IPAddress], _ reason: HostLookup.Failure?) {
    guard let proxy = route.proxy, case .host(let host, _) = route.endpoint else { return }
    guard !all.isEmpty else { return fail(RouteFailure.unknownName(host, reason)) }
    var fit = proxy.kind == .socks4 ? all.filter { $0.family == .v4 } : all
    guard !fit.isEmpty else { return fail(RouteFailure.socks(.addressFamily, proxy, host)) }
    if request.profile.options.refusesPrivateAddresses { fit = fit.filter(\.isPublic) }
    guard !fit.isEmpty else { return fail(RouteFailure.privateAddress(host)) }
    targets = Connector.alternating(fit)
    proceed()
  }

  private func connect(to addresses: [IPAddress], _ reason: HostLookup.Failure?) {
    guard !addresses.isEmpty else { return fail(RouteFailure.unknownName(endpoint?.host ?? host, reason)) }
    self.addresses = addresses
    act(on: connector.handle(.resolved(addresses, isLast: true), at: core.now))
  }

  /// Ends the attempt without an answer.
  func cancel() {
    guard step != .over else { return }
    step = .over
    for candidate in candidates.values { candidate.socket.close() }
    candidates = [:]
    if let lookup { core.resolver.withdraw(self, from: lookup.name) }
    lookup = nil
    tunnel?.cancel()
    tunnel = nil
  }

  private func end(_ outcome: Result<any Pipe, TransportFailure>) {
    guard step != .over else { return }
    cancel()
    owner.attemptEnded(outcome)
  }

  private func fail(_ failure: TransportFailure) {
    if let endpoint { core.resolver.forget(endpoint.host) }
    // The address that the proxy was asked for may be the one that cannot be reached.
    if !targets.isEmpty, case .host(let host, _) = route.endpoint { core.resolver.forget(host) }
    end(.failure(failure.with(metrics: timing.metrics())))
  }

  // MARK: Names

  private func lookUp(_ name: String, _ question: Question) {
    lookup = (name, question)
    core.resolver.lookUp(name, for: self)
    owner.attemptChanged()
  }

  // MARK: Sockets

  private func act(on actions: [Connector.Action]) {
    for action in actions where step != .over {
      switch action {
      case .connect(let number, let address): connect(number, to: address)
      case .close(let numbers):
        for number in numbers { candidates.removeValue(forKey: number)?.socket.close() }
      case .wake(let time):
        nextAttempt = time
        owner.attemptChanged()
      case .use(let number): candidates.removeValue(forKey: number).map { use($0.socket) }
      case .fail(let failure): fail(self.failure(of: failure))
      }
    }
  }

  private func connect(_ number: Int, to address: IPAddress) {
    guard let port = endpoint.flatMap({ UInt16(exactly: $0.port) }) else { return }
    if step != .connecting {
      step = .connecting
      noteTime { $0.connectionBegan($1) }
    }
    let target = SocketAddress(address, port: port)
    guard let socket = Socket.open(family: target.family, host: peer, core.poller) else {
      return act(on: connector.handle(.failed(number, code: errno), at: core.now))
    }
    if let setting = request.profile.options.localInterface,
      !SocketBinding(setting).bind(socket.descriptor, family: address.family, localAddresses ?? [])
    {
      unbound.insert(address)
      return act(on: connector.handle(.failed(number, code: EADDRNOTAVAIL), at: core.now))
    }
    let candidate = Candidate(number, socket, self)
    candidates[number] = candidate
    guard let code = socket.connect(to: target, for: candidate) else { return }
    failed(candidate, code)
  }

  private func connect(toSocket path: String) {
    step = .connecting
    noteTime { $0.connectionBegan($1) }
    socketPause = 0
    tryToConnect(toSocket: path)
  }

  private func tryToConnect(toSocket path: String) {
    guard let target = SocketAddress(path: path) else {
      return fail(RouteFailure.unreachable(unixSocket: path, ENAMETOOLONG))
    }
    guard let socket = Socket.open(family: target.family, host: peer, core.poller) else {
      return fail(RouteFailure.unreachable(unixSocket: path, errno))
    }
    let candidate = Candidate(0, socket, self)
    candidates[0] = candidate
    if let code = socket.connect(to: target, for: candidate) { failed(candidate, code) }
  }

  private func connectionIsReady(_ candidate: Candidate) {
    switch candidate.socket.connectResult {
    case nil: break
    case 0?:
      guard socketPath == nil else {
        candidates[candidate.number] = nil
        return use(candidate.socket)
      }
      act(on: connector.handle(.connected(candidate.number), at: core.now))
    case let code?: failed(candidate, code)
    }
  }

  private func failed(_ candidate: Candidate, _ code: Int32) {
    candidates[candidate.number] = nil
    candidate.socket.close()
    if let path = socketPath {
      // The queue of the server is full. For TCP the system would try again, here it does not.
      guard code != EAGAIN else { return pauseBeforeSocket() }
      return fail(RouteFailure.unreachable(unixSocket: path, code))
    }
    act(on: connector.handle(.failed(candidate.number, code: code), at: core.now))
  }

  private func pauseBeforeSocket() {
    let range = Self.socketPauses
    socketPause = min(max(socketPause * 2, range.lowerBound), range.upperBound)
    nextAttempt = Clock.now() + socketPause
    owner.attemptChanged()
  }

  private func use(_ socket: Socket) {
    nextAttempt = .max
    // Later limits are not exceeded because the queue of the server was full.
    socketPause = 0
    guard let proxy = route.proxy else { return open(socket) }
    do throws(TransportFailure) {
      // A connection that replaces another one continues its conversation.
      let conversation = if let tunnel { tunnel.conversation } else { try conversation(with: proxy) }
      let tunnel = Tunnel(
        over: socket, through: proxy, to: request.origin, conversation, tokens: tunnel?.tokens, core,
        for: self)
      self.tunnel = tunnel
      tunnel.begin(request.profile)
    } catch {
      socket.close()
      fail(error)
    }
  }

  private func conversation(with proxy: ProxyServer) throws(TransportFailure) -> Tunnel.Conversation {
    guard case .host(let host, let port) = route.endpoint else { throw RouteFailure.unknownName(host, nil) }
    return try Tunnel.Conversation(
      with: proxy, host: host, port: port, address: targets.first, forwards: route.forwards)
  }

  private func open(_ pipe: any Pipe) {
    timing.connectEnd = Clock.now()
    noteTime { $0.connectionEnded($1) }
    // A connection that took too long is not used, because the error says so.
    if timer?.overdue != nil, let failure = timeout(core.now) {
      pipe.close()
      return fail(failure)
    }
    end(.success(pipe))
  }

  private func failure(of failure: Connector.Failure) -> TransportFailure {
    // The proxy was reached before, and has said what is wrong.
    if let refusal { return refusal }
    switch failure {
    case .noAddress: return RouteFailure.unknownName(endpoint?.host ?? host, nil)
    case .addressesRefused:
      return RouteFailure.privateAddress(route.proxy.map { "The proxy \($0)" } ?? endpoint?.host ?? host)
    case .attemptsFailed(let attempts):
      // An attempt without a local end says nothing about the host.
      let bound = attempts.filter { !unbound.contains($0.address) }
      let last = bound.last { !RouteFailure.isWithoutRoute($0) } ?? bound.last
      if last == nil, let setting = request.profile.options.localInterface {
        return RouteFailure.unusableInterface(host, setting)
          .with(unreached: .other(endpoint?.host ?? host))
      }
      guard let last, let endpoint else { return RouteFailure.unknownName(host, nil) }
      if let proxy = route.proxy { return RouteFailure.unreachable(proxy, last.code, last.address) }
      return RouteFailure.unreachable(host, last.code, last.address, port: endpoint.port)
        .with(unreached: RouteFailure.unreachedHost(endpoint.host, after: last))
    }
  }

  // MARK: Time

  private func noteTime(_ event: (inout PhaseTimer, UInt64) -> Void) {
    guard var timer else { return }
    event(&timer, Clock.now())
    self.timer = timer
    owner.attemptChanged()
  }

  /// The time at which ``expire(_:)`` is to be called.
  var expiry: UInt64 {
    guard step != .over else { return .max }
    return min(nextAttempt, timing.connectLimit, timing.idleLimit, timer?.expiry ?? .max)
  }

  func expire(_ now: UInt64) {
    guard step != .over else { return }
    if let failure = timeout(now) { return fail(failure) }
    guard nextAttempt <= now else { return }
    nextAttempt = .max
    if let socketPath { return tryToConnect(toSocket: socketPath) }
    act(on: connector.handle(.time, at: now))
  }

  private func timeout(_ now: UInt64) -> TransportFailure? {
    let progress = PhaseTimer.Progress(isSent: false, hasResponse: false)
    if let phase = timer?.exceeded(now, progress), let limit = request.profile.options.timeLimits[phase] {
      let through = route.proxy.map { "\(host) through the proxy \($0)" } ?? host
      let shown = phase == .nameLookup ? route.proxy?.host ?? host : through
      return TransportFailure(.timedOut, phase.message(host: shown, limit: limit), phase: phase)
    }
    if timing.connectLimit <= now {
      let phase = step == .lookingUp ? PhaseTimer.Phase.nameLookup : .connect
      if let socketPath, socketPause > 0 { return RouteFailure.timedOut(unixSocket: socketPath) }
      if let proxy = route.proxy { return RouteFailure.timedOut(host, through: proxy, in: phase) }
      return RouteFailure.timedOut(host, in: phase)
    }
    guard timing.idleLimit <= now, let limit = request.idleTimeout else { return nil }
    let through = route.proxy.map { "\(host) through the proxy \($0)" } ?? host
    return RouteFailure.idle(through, limit, request.profile.options)
  }
}

extension ConnectionAttempt: Resolver.Waiter {
  func resolved(_ answer: Resolver.Answer) {
    guard let question = lookup?.question else { return }
    lookup = nil
    switch answer {
    case .success(let addresses): found(addresses, for: question, nil)
    case .failure(let reason): found([], for: question, reason)
    }
  }
}

extension ConnectionAttempt: TunnelOwner {
  func tunnelEnded(_ outcome: Tunnel.TunnelOutcome) {
    switch outcome {
    case .open(let pipe):
      tunnel = nil
      open(pipe)
    case .failed(let failure):
      tunnel = nil
      fail(failure)
    case .addressFailed(let failure):
      tunnel = nil
      guard targets.count > 1 else { return fail(failure) }
      targets.removeFirst()
      refusal = failure
      connectAgain()
    case .connectAgain: connectAgain()
    }
  }

  /// Connects to the proxy once more.
  private func connectAgain() {
    if let socketPath { return connect(toSocket: socketPath) }
    connector = Connector(for: request.profile.options)
    connect(to: addresses, nil)
  }
}

extension Connector {
  fileprivate init(for options: TransportOptions) {
    self.init(
      delay: options.happyEyeballsDelay.map(Clock.nanoseconds) ?? Self.usualDelay,
      refusesPrivateAddresses: options.refusesPrivateAddresses)
  }
}

extension WireRequest {
  /// The longest time for connecting to an alternative service, so that time for the origin remains.
  private static var alternativeConnectTimeout: Duration { .seconds(10) }

  /// The time for connecting, from the look-up of the name to the end of the handshake.
  var connectTimeout: Duration? {
    let timeout = profile.options.connectTimeout.map { max(.zero, $0 - (addresses?.searchTime ?? .zero)) }
    guard alternative != nil else { return timeout }
    return min(timeout ?? Self.alternativeConnectTimeout, Self.alternativeConnectTimeout)
  }
}

/// The times of one attempt, in nanoseconds, and its limits.
struct ConnectionTiming {
  private let start = Clock.wall()
  private let begun: UInt64
  let connectLimit: UInt64
  let idleLimit: UInt64
  var lookupEnd: UInt64 = 0
  var connectEnd: UInt64 = 0

  init(_ now: UInt64, connect: Duration?, idle: Duration?) {
    begun = now
    connectLimit = connect.map { Clock.now(plus: $0) } ?? .max
    idleLimit = idle.map { Clock.now(plus: $0) } ?? .max
  }

  func metrics() -> TransferMetrics {
    var values = TransferMetrics.Values()
    values.start = start
    values.lookupEnd = microseconds(lookupEnd)
    values.connectEnd = microseconds(connectEnd)
    values.end = microseconds(Clock.now())
    return TransferMetrics(values: values)
  }

  private func microseconds(_ time: UInt64) -> Int64 {
    time == 0 ? -1 : Int64(clamping: (max(time, begun) - begun) / 1000)
  }
}
