import Glibc
import HTTPWire

/// Who wants a connection.
protocol ConnectionAttemptOwner: AnyObject {
  /// Called when ``ConnectionAttempt/expiry`` may be earlier.
  func attemptChanged()
  /// Called once, unless the attempt was cancelled. It may be called by ``ConnectionAttempt/begin(_:)``.
  func attemptEnded(_ outcome: Result<Socket, TransportFailure>)
}

/// The making of one connection: the look-up of its host, the sockets to its addresses, and their limits. Belongs to
/// the loop's thread. ``Connector`` decides about the addresses.
final class ConnectionAttempt {
  private enum Step { case idle, lookingUp, connecting, over }

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

  private unowned(unsafe) let core: LoopCore
  private let request: WireRequest
  private let route: Route
  private unowned let owner: any ConnectionAttemptOwner
  private var step = Step.idle
  private var connector: Connector
  private var candidates: [Int: Candidate] = [:]
  /// The addresses of the name that the local end is bound to.
  private var localAddresses: [IPAddress] = []
  /// The name that is being looked up.
  private var lookup: String?
  /// Whether the name of the local end was looked up.
  private var hasLocalAddresses = false
  private var couldNotBind = false
  private var timer: PhaseTimer?
  private var timing: ConnectionTiming
  /// The time at which the connector begins the next attempt.
  private var nextAttempt: UInt64 = .max

  init(
    _ request: WireRequest, _ route: Route, _ core: LoopCore, for owner: any ConnectionAttemptOwner
  ) {
    let options = request.profile.options
    self.request = request
    self.route = route
    self.core = core
    self.owner = owner
    connector = Connector(
      delay: options.happyEyeballsDelay.map(Clock.nanoseconds) ?? Connector.usualDelay,
      refusesPrivateAddresses: options.refusesPrivateAddresses)
    timer = request.profile.phaseLimits.map { PhaseTimer($0) }
    timing = ConnectionTiming(Clock.now(), connect: options.connectTimeout, idle: request.idleTimeout)
  }

  private var host: String { request.origin.host }

  /// Begins to connect. Also called for a host whose address was looked up elsewhere.
  func begin() {
    guard step == .idle else { return }
    step = .lookingUp
    timer?.begin()
    // The local end is looked up first, because every socket needs it.
    if let name = bindingName { return lookUp(name) }
    connect()
  }

  private func connect() {
    switch route.place {
    case .unixSocket(let path): connect(toSocket: path)
    case .host(let name, let port):
      guard UInt16(exactly: port).map({ $0 > 0 }) == true else {
        return fail(TransportFailure(.badURL, "\(port) is no port that \(host) can have."))
      }
      noteTime { $0.lookupBegan($1) }
      if let known = request.addresses?.addresses ?? core.resolver.knownAddresses(of: name, core.now) {
        resolved(known)
      } else {
        lookUp(name)
      }
    }
  }

  private var bindingName: String? {
    request.profile.options.localInterface.flatMap { SocketBinding($0).name }
  }

  /// Ends the attempt without an answer.
  func cancel() {
    guard step != .over else { return }
    step = .over
    for candidate in candidates.values { candidate.socket.close() }
    candidates = [:]
    if let lookup { core.resolver.withdraw(self, from: lookup) }
    lookup = nil
  }

  private func end(_ outcome: Result<Socket, TransportFailure>) {
    guard step != .over else { return }
    cancel()
    owner.attemptEnded(outcome)
  }

  private func fail(_ failure: TransportFailure) {
    if case .host(let name, _) = route.place { core.resolver.forget(name) }
    end(.failure(failure.with(metrics: timing.metrics())))
  }

  // MARK: Names

  private func lookUp(_ name: String) {
    guard core.resolver.lookUp(name, for: self) else { return fail(RouteFailure.noThread(name)) }
    lookup = name
    owner.attemptChanged()
  }

  private func resolved(_ addresses: [IPAddress]) {
    timing.lookupEnd = Clock.now()
    let family = request.profile.options.addressFamily
    act(on: connector.handle(.resolved(addresses.filter { family.includes($0.family) }, isLast: true), at: core.now))
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
    guard case .host(_, let port) = route.place, let place = UInt16(exactly: port) else { return }
    if step != .connecting {
      step = .connecting
      noteTime { $0.connectionBegan($1) }
    }
    let target = SocketAddress(address, port: place)
    guard let socket = Socket.open(family: target.family, host: host, core.poller) else {
      return act(on: connector.handle(.failed(number, code: errno), at: core.now))
    }
    if let setting = request.profile.options.localInterface,
      !SocketBinding(setting).bind(socket.descriptor, family: address.family, localAddresses)
    {
      couldNotBind = true
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
    guard let target = SocketAddress(path: path) else {
      return fail(RouteFailure.unreachable(unixSocket: path, ENAMETOOLONG))
    }
    guard let socket = Socket.open(family: target.family, host: host, core.poller) else {
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
      if case .unixSocket = route.place {
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
    if case .unixSocket(let path) = route.place {
      return fail(RouteFailure.unreachable(unixSocket: path, code))
    }
    act(on: connector.handle(.failed(candidate.number, code: code), at: core.now))
  }

  private func use(_ socket: Socket) {
    timing.connectEnd = Clock.now()
    noteTime { $0.connectionEnded($1) }
    // A connection that took too long is not used, because the error says so.
    if timer?.overdue != nil, let failure = timeout(core.now) {
      socket.close()
      return fail(failure)
    }
    end(.success(socket))
  }

  private func failure(of failure: Connector.Failure) -> TransportFailure {
    guard case .host(let name, let port) = route.place else { return RouteFailure.unknownName(host, nil) }
    switch failure {
    case .noAddress: return RouteFailure.unknownName(name, nil)
    case .addressesRefused: return RouteFailure.privateAddress(host)
    case .attemptsFailed(let attempts):
      guard let last = attempts.last else { return RouteFailure.unknownName(name, nil) }
      if couldNotBind, let setting = request.profile.options.localInterface {
        return RouteFailure.unusableInterface(host, setting)
      }
      return RouteFailure.unreachable(host, last.code, last.address, port: port)
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
    act(on: connector.handle(.time, at: now))
  }

  private func timeout(_ now: UInt64) -> TransportFailure? {
    let progress = PhaseTimer.Progress(isSent: false, hasResponse: false)
    if let phase = timer?.exceeded(now, progress), let limit = request.profile.options.timeLimits[phase] {
      return TransportFailure(.timedOut, phase.message(host: host, limit: limit), phase: phase)
    }
    if timing.connectLimit <= now {
      return RouteFailure.timedOut(host, in: step == .lookingUp ? .nameLookup : .connect)
    }
    guard timing.idleLimit <= now, let limit = request.idleTimeout else { return nil }
    return RouteFailure.silent(host, for: limit)
  }
}

extension ConnectionAttempt: Resolver.Waiter {
  func resolved(_ answer: Resolver.Answer) {
    lookup = nil
    guard step != .over else { return }
    if !hasLocalAddresses, bindingName != nil {
      hasLocalAddresses = true
      localAddresses = (try? answer.get()) ?? []
      return connect()
    }
    switch answer {
    case .success(let addresses): resolved(addresses)
    case .failure(let reason): fail(RouteFailure.unknownName(host, reason))
    }
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
