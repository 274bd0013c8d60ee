import FoundationEssentials
import Glibc
import HTTPSystem
import HTTPWire

/// One stream of bytes: its connection and its operations. `ByteStreamFlow` decides the order of events, and this type
/// performs them.
///
/// Unchecked: everything except the constants belongs to the loop's thread, on which all methods are called.
final class StreamLink: @unchecked Sendable {
  /// The number of steps after which other streams and transfers have their turn.
  private static let mostSteps = 16
  /// The largest number of bytes of one write.
  private static let largestPiece = 262_144

  let loop: EventLoop
  private let transport: HTTPTransport
  let request: WireRequest
  /// Whether the stream begins with TLS.
  private let isSecure: Bool
  @exclusivity(unchecked) private var watcher: (any ByteStreamWatcher)?
  /// The streams of the loop, from the first operation until the end.
  @exclusivity(unchecked) private var streams: LoopStreams?
  @exclusivity(unchecked) private var flow: ByteStreamFlow
  @exclusivity(unchecked) private var connection: (any Pipe)?
  @exclusivity(unchecked) private var tls: TLSConnection?
  @exclusivity(unchecked) private var proxy: ProxyServer?
  @exclusivity(unchecked) private var attempt: ConnectionAttempt?
  @exclusivity(unchecked) private var connecting: Task<Void, Never>?
  /// The end of the time for connecting; `nil` without a limit.
  @exclusivity(unchecked) private var connectLimit: UInt64?
  /// The rest of the time for connecting, which is left for the handshake; `nil` without a limit.
  @exclusivity(unchecked) private var timeToConnect: UInt64?
  @exclusivity(unchecked) private var arrived = ArrivedBytes()
  @exclusivity(unchecked) private var operations: [ByteStreamFlow.Number: StreamOperation] = [:]
  /// No operation times out before this time.
  @exclusivity(unchecked) private var earliestExpiry: UInt64 = .max
  /// The time of the handshake that is under way.
  @exclusivity(unchecked) private var handshakeClock: HandshakeClock?
  /// The time at which the whole stream times out, whether or not it is suspended.
  @exclusivity(unchecked) private var deadline: UInt64 = .max
  /// Whether the handshake waits for a decision about the server's certificates or the client's identity.
  @exclusivity(unchecked) private var awaitsDecision = false
  /// The task that waits for the decision.
  @exclusivity(unchecked) private var asking: Task<Void, Never>?
  @exclusivity(unchecked) private var failure: TransportFailure?
  /// The number of times that the certificates of the name service were evaluated.
  @exclusivity(unchecked) private var nameQuestions = 0
  private static let mostNameQuestions = 8
  /// Whether the stream has more to do before the loop waits.
  @exclusivity(unchecked) var isBusy = false
  /// The number of the stream in its loop.
  let number: UInt64
  /// Whether ``LoopStreams`` knows that the stream has changed.
  @exclusivity(unchecked) var isChanged = false

  init(_ request: WireRequest, isSecure: Bool, transport: HTTPTransport, watcher: any ByteStreamWatcher) {
    self.request = request
    self.isSecure = isSecure
    self.transport = transport
    self.watcher = watcher
    loop = transport.loop
    number = transport.loop.nextTicket()
    flow = ByteStreamFlow(secure: isSecure ? 0 : nil)
  }

  // MARK: Operations

  func resume(_ core: LoopCore) {
    let wasSuspended = flow.isSuspended
    act(on: flow.resume(), core)
    guard wasSuspended else { return }
    restartClocks()
    pump()
  }

  /// Lets the timeouts begin again, because no operation could complete while the stream was suspended.
  private func restartClocks() {
    earliestExpiry = .max
    for number in operations.keys { startClock(of: number) }
    handshakeClock?.restart(Clock.now())
  }

  func suspend() {
    flow.suspend()
    streams?.noteChange(of: self)
  }

  func read(
    _ number: ByteStreamFlow.Number, least: Int, most: Int, timeout: Duration?,
    _ completion: @escaping ByteStreamCompletion<StreamedBytes>, _ core: LoopCore
  ) {
    operations[number] = StreamOperation(answer: .bytes(completion), timeout: timeout.map(Clock.nanoseconds))
    startClock(of: number)
    act(on: flow.read(number, least: least, most: most), core)
    pump()
  }

  func write(
    _ number: ByteStreamFlow.Number, _ data: Data, timeout: Duration?,
    _ completion: @escaping ByteStreamCompletion<Void>, _ core: LoopCore
  ) {
    operations[number] = StreamOperation(
      answer: .done(completion), data: data, timeout: timeout.map(Clock.nanoseconds))
    startClock(of: number)
    act(on: flow.write(number, count: data.count), core)
    pump()
  }

  func secure(
    _ number: ByteStreamFlow.Number, _ completion: @escaping ByteStreamCompletion<Void>, _ core: LoopCore
  ) {
    operations[number] = StreamOperation(answer: .done(completion), timeout: nil)
    act(on: flow.secure(number), core)
    pump()
  }

  func withdraw(_ number: ByteStreamFlow.Number) {
    act(on: flow.withdraw(number, .cancelled))
    pump()
  }

  func closeReading() {
    act(on: flow.closeReading())
    pump()
  }

  func closeWriting() {
    act(on: flow.closeWriting())
    pump()
  }

  func close() {
    let wasSuspended = flow.isSuspended
    act(on: flow.close())
    // Closing ends the suspension.
    if wasSuspended, flow.phase != .over { restartClocks() }
    pump()
  }

  func cancel() { act(on: flow.cancel()) }

  func fail(_ failure: TransportFailure) {
    note(failure)
    act(on: flow.failed())
  }

  private func note(_ failure: TransportFailure) {
    if self.failure == nil { self.failure = failure }
  }

  // MARK: Connecting

  private func connect(_ core: LoopCore) {
    switch ProxyEnvironment.shared.choice(for: request.origin, in: request.profile.proxies) {
    case .direct, .environment: break
    case .server(let server): proxy = server
    case .unreadable(let name):
      return fail(RouteFailure.unusableProxy(of: name))
    }
    guard request.profile.asksForNames else { return connect(core, request) }
    locate()
  }

  private func locate() {
    connecting = Task(executorPreference: loop) { [self, transport, request] in
      let located = await transport.addAddresses(to: request)
      loop.post(.run { core in self.located(core, located) })
    }
  }

  /// Connects when the name service has answered.
  private func located(_ core: LoopCore, _ request: Result<WireRequest, TransportFailure>) {
    connecting = nil
    guard flow.phase == .connecting else { return }
    switch request {
    case .success(let request): connect(core, request)
    case .failure(let failure):
      guard let chain = failure.chain, nameQuestions < Self.mostNameQuestions else { return fail(failure) }
      nameQuestions += 1
      ask({ watcher in await watcher.evaluate(chain).map { .failure($0) } ?? .success(()) }) { link, _ in
        if link.flow.phase == .connecting { link.locate() }
      }
    }
  }

  private func connect(_ core: LoopCore, _ request: WireRequest) {
    do throws(TransportFailure) {
      let route = try Route(to: request.origin, request.profile.options, proxy: proxy)
      let attempt = ConnectionAttempt(request, route, core, for: self)
      self.attempt = attempt
      connectLimit = request.connectTimeout.map { Clock.now(plus: $0) }
      attempt.begin()
    } catch {
      fail(error)
    }
  }

  private func opened(_ connection: any Pipe) {
    self.connection = connection
    let now = Clock.now()
    timeToConnect = connectLimit.map { $0 - min($0, now) }
    act(on: flow.connected())
    watcher?.streamOpened()
    // The bytes move in the turn of the streams.
    pipeIsReady()
  }

  private func startTLS() {
    guard let connection, let streams else { return }
    // Bytes after the answer of a proxy came before this handshake, so an attacker could have sent them.
    if let pipe = connection as? UnreadPipe, pipe.hasUnread { return fail(explained(.cleartextLeft)) }
    // A stream that is secured later was connected before.
    var clock = HandshakeClock(request, timeToConnect: isSecure ? timeToConnect : nil)
    clock.start(Clock.now())
    handshakeClock = clock
    let peer = TLSPeer(request.origin, request.profile)
    switch TLSConnection.over(connection, with: peer, streams.contexts) {
    case .success(let tls): self.tls = tls
    case .failure(let failure): fail(failure)
    }
  }

  /// Asks the watcher of the stream for a decision, and continues with the answer.
  private func ask<Answer: Sendable>(
    _ question: @escaping @Sendable (any ByteStreamWatcher) async -> Result<Answer, TransportFailure>,
    then proceed: @escaping @Sendable (StreamLink, Answer) -> Void
  ) {
    guard let watcher, !awaitsDecision else { return }
    awaitsDecision = true
    // The watcher has its own timeout.
    handshakeClock?.pause(Clock.now())
    asking = Task.detached { [self] in
      let answer = await question(watcher)
      loop.post(
        .run { _ in
          self.awaitsDecision = false
          self.asking = nil
          switch answer {
          case .success(let answer):
            self.handshakeClock?.resume(Clock.now())
            proceed(self, answer)
          case .failure(let failure): return self.fail(failure)
          }
          self.pump()
        })
    }
  }

  // MARK: Bytes

  /// Moves all bytes that can be moved without waiting.
  func pump() {
    isBusy = false
    streams?.noteChange(of: self)
    guard connection != nil else { return }
    var hasMoved = true
    var steps = 0
    var next = flow.movements
    while hasMoved, steps < Self.mostSteps {
      hasMoved = false
      if next.isSecuring, !awaitsDecision { hasMoved = hasProgressed(handshake(), &next) }
      if next.room > 0 { hasMoved = hasProgressed(receive(next.room), &next) || hasMoved }
      if next.discards { hasMoved = hasProgressed(discard(), &next) || hasMoved }
      if let number = next.writing { hasMoved = hasProgressed(send(number), &next) || hasMoved }
      if next.shutsWriting { hasMoved = hasProgressed(shutWriting(), &next) || hasMoved }
      steps += 1
    }
    isBusy = hasMoved && connection != nil
  }

  /// Handles the result of a step, and asks what may be done after it. Returns whether it may be possible at once.
  private func hasProgressed(_ step: PipeStep, _ next: inout ByteStreamFlow.Movements) -> Bool {
    let hasMoved = hasProgressed(step)
    next = flow.movements
    return hasMoved
  }

  /// Handles the result of a step. Returns whether another step may be possible at once.
  private func hasProgressed(_ step: PipeStep) -> Bool {
    switch step {
    case .moved, .ended: return true
    // The next event of the socket shows when to continue.
    case .waitsToRead, .waitsToWrite: break
    case .failed(let failure): fail(failure)
    case .undecided(let chain):
      ask(
        { watcher in await watcher.evaluate(chain).map { .failure($0) } ?? .success(()) }, then: { _, _ in })
    case .asksForIdentity: ask({ await $0.identity() }, then: { $0.tls?.choose($1) })
    }
    return false
  }

  private func handshake() -> PipeStep {
    guard let tls else { return .waitsToRead }
    let step = tls.handshake()
    switch step {
    case .moved:
      handshakeClock = nil
      act(on: flow.secured())
      return step
    case .ended: return .failed(TransportFailure.lost(request.origin.host, ECONNRESET))
    default: return step
    }
  }

  private func receive(_ count: Int) -> PipeStep {
    guard let streams else { return .waitsToRead }
    let room = UnsafeMutableRawBufferPointer(rebasing: streams.scratch.prefix(count))
    let step = tls?.read(into: room) ?? connection?.read(into: room) ?? .waitsToRead
    switch step {
    case .moved(let count):
      arrived.append(UnsafeRawBufferPointer(rebasing: room.prefix(count)))
      act(on: flow.received(count))
    case .ended: act(on: flow.ended())
    case .failed(let failure):
      // The peer may have said why it did not take the bytes of a write that has failed before.
      self.failure = failure
      act(on: flow.readingFailed())
      return .ended
    default: break
    }
    return step
  }

  /// Reads bytes that no read gets. If they stayed in the system, the peer could not send any more, and might not read
  /// what it is sent.
  private func discard() -> PipeStep {
    guard let streams else { return .waitsToRead }
    let step = tls?.read(into: streams.scratch) ?? connection?.read(into: streams.scratch) ?? .waitsToRead
    if case .ended = step { act(on: flow.ended()) }
    return step
  }

  private func send(_ number: ByteStreamFlow.Number) -> PipeStep {
    guard let data = operations[number]?.data else { return .waitsToWrite }
    let step = data.withUnsafeBytes { bytes in
      let piece = UnsafeRawBufferPointer(rebasing: bytes.prefix(Self.largestPiece))
      return tls?.write(piece) ?? connection?.write(piece) ?? .waitsToWrite
    }
    switch step {
    case .moved(let count):
      operations[number]?.data = data.dropFirst(count)
      act(on: flow.sent(count))
    case .ended: return writingFailed(.lost(request.origin.host, EPIPE))
    case .failed(let failure): return writingFailed(failure)
    // A TLS record that was begun cannot be withdrawn.
    case .waitsToRead, .waitsToWrite: if tls != nil || connection?.keepsWrites == true { flow.sendingBegan() }
    default: break
    }
    return step
  }

  /// Gives up writing. What the peer has sent before it left is still read.
  private func writingFailed(_ failure: TransportFailure) -> PipeStep {
    note(failure)
    act(on: flow.writingFailed())
    return .ended
  }

  private func shutWriting() -> PipeStep {
    var step = tls?.shut() ?? .moved(0)
    if case .moved = step { step = connection?.shutWriting() ?? step }
    if case .moved = step { act(on: flow.writingWasShut()) }
    return step
  }

  // MARK: Time

  private func startClock(of number: ByteStreamFlow.Number) {
    guard let timeout = operations[number]?.timeout else { return }
    let sum = Clock.now().addingReportingOverflow(timeout)
    let expiry = sum.overflow ? .max : sum.partialValue
    operations[number]?.expiry = expiry
    earliestExpiry = min(earliestExpiry, expiry)
  }

  /// The time at which an operation, the handshake or the stream times out. Operations do not time out while the stream
  /// is suspended.
  var expiry: UInt64 {
    let end = min(deadline, attempt?.expiry ?? .max)
    guard !flow.isSuspended else { return end }
    return min(handshakeClock?.expiry ?? .max, end, earliestExpiry)
  }

  func expire(_ now: UInt64) {
    if deadline <= now {
      return fail(
        TransportFailure(
          .timedOut,
          "The stream to \(request.origin.host) took longer than a resource may take (\(request.profile.options.timeLimits.totalSetting)).",
          phase: .total
        ))
    }
    if let handshakeClock, handshakeClock.expiry <= now, !flow.isSuspended {
      return fail(handshakeClock.failure(of: request.origin.host))
    }
    attempt?.expire(now)
    if !flow.isSuspended {
      let expired = operations.filter { $0.value.expiry <= now }.keys.sorted()
      for number in expired { act(on: flow.withdraw(number, .timedOut)) }
      earliestExpiry = operations.values.reduce(.max) { min($0, $1.expiry) }
    }
    isBusy = connection != nil
    streams?.noteChange(of: self)
  }

  // MARK: Effects

  private func act(on effects: [ByteStreamFlow.Effect], _ core: LoopCore? = nil) {
    for effect in effects {
      switch effect {
      case .connect:
        guard core?.isShutDown != true else { return fail(LoopCore.shutDown) }
        streams = core?.streams
        streams?.add(self)
        deadline = request.deadline?.nanoseconds ?? .max
        streams?.noteChange(of: self)
        if let core { connect(core) }
      case .secure: startTLS()
      case .answer(let number, let count, let isAtEnd):
        answer(number, .success(StreamedBytes(data: arrived.take(count), isAtEnd: isAtEnd)))
      case .complete(let number): answer(number, .success(StreamedBytes(data: Data(), isAtEnd: false)))
      case .fail(let number, let reason): answer(number, .failure(explained(reason)))
      case .shutReading: arrived = ArrivedBytes()
      case .close(let reason): end(reason)
      }
    }
  }

  private func answer(_ number: ByteStreamFlow.Number, _ result: Result<StreamedBytes, TransportFailure>) {
    switch operations.removeValue(forKey: number)?.answer {
    case .bytes(let completion):
      streams?.noteAnswer()
      completion(result)
    case .done(let completion): completion(result.map { _ in })
    case nil: break
    }
  }

  private func end(_ reason: ByteStreamFlow.Reason) {
    connecting?.cancel()
    connecting = nil
    // A delegate that never answers would keep the stream and its session.
    asking?.cancel()
    asking = nil
    attempt?.cancel()
    attempt = nil
    if reason == .closed { drain() }
    // Before the socket is closed.
    streams?.remove(self)
    streams = nil
    tls = nil
    connection?.close()
    connection = nil
    arrived = ArrivedBytes()
    isBusy = false
    handshakeClock = nil
    deadline = .max
    let watcher = watcher
    self.watcher = nil
    watcher?.streamEnded(reason == .closed ? nil : explained(reason))
  }

  /// Reads the rest of the bytes. A socket that is closed with unread bytes resets the connection, and the peer loses
  /// what was written before.
  private func drain() {
    guard let streams else { return }
    for _ in 0..<Self.mostSteps {
      guard case .moved = connection?.read(into: streams.scratch) else { return }
    }
  }

  private func explained(_ reason: ByteStreamFlow.Reason) -> TransportFailure {
    reason.failure(of: request.origin.host, failure)
  }
}

extension StreamLink: PipeOwner {
  func pipeIsReady() {
    isBusy = true
    streams?.noteChange(of: self)
  }
}

extension StreamLink: ConnectionAttemptOwner {
  func attemptChanged() { streams?.noteChange(of: self) }

  func attemptEnded(_ outcome: Result<any Pipe, TransportFailure>) {
    attempt = nil
    switch outcome {
    case .success(let pipe):
      guard flow.phase == .connecting else { return pipe.close() }
      pipe.owner = self
      opened(pipe)
    case .failure(let failure): fail(failure)
    }
  }
}
