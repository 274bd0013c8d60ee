import HTTPWire

/// A connection of HTTP/2, which carries many exchanges at a time. Belongs to the loop's thread. ``HTTP2Session`` makes
/// and reads the frames, and a ``StreamedExchange`` stands between each stream and its exchange.
///
/// The connection is always read, whatever its exchanges wait for: windows keep each of them within its limits.
final class HTTP2Connection: Connection {
  /// The number of reads or writes of one turn. Then the other connections have their turn.
  private static let mostSteps = 16

  let pool: Pool
  let pipe: any Pipe
  let tls: TLSConnection?
  let facts: ConnectionFacts
  let session: HTTP2Session
  /// The exchanges by their tickets.
  @exclusivity(unchecked) private var carried: [UInt64: StreamedExchange] = [:]
  /// The exchanges with a head that the system has not accepted yet, in the order in which it gets them.
  @exclusivity(unchecked) private var starting: [StreamedExchange] = []
  /// The exchanges with content in the output, which the system has not accepted yet.
  @exclusivity(unchecked) private var sending: [StreamedExchange] = []
  /// Whether it has carried an exchange.
  @exclusivity(unchecked) private(set) var isUsed = false
  /// Whether the server can have a reason to end it that is not the next exchange, because it was idle before, or has
  /// sent the head of another one.
  @exclusivity(unchecked) private var mayHaveEnded = false
  @exclusivity(unchecked) private(set) var isClosed = false
  /// Whether it was closed while the session was in a call.
  @exclusivity(unchecked) private var mustClose = false
  /// Whether the socket may have bytes, and may take some.
  @exclusivity(unchecked) private var mayRead = true
  /// Whether the loop will continue the connection in this turn or in the next one.
  @exclusivity(unchecked) private var isQueued = false
  /// The reason why no more bytes can be sent. What the server has sent before is still read.
  @exclusivity(unchecked) private var sendFailure: TransportFailure?
  /// The reason why the connection has ended.
  @exclusivity(unchecked) private(set) var endFailure: TransportFailure?
  /// Whether the connection accepts no more exchanges, and only carries its last ones.
  @exclusivity(unchecked) private(set) var isDraining = false
  /// Whether an exchange has timed out without a sign of life from the server.
  @exclusivity(unchecked) private var isSilent = false
  /// The time at which bytes have arrived last.
  @exclusivity(unchecked) private var lastArrival: UInt64 = 0
  /// The time at which the connection became idle, and until which it is used again.
  @exclusivity(unchecked) private(set) var idleSince: UInt64 = 0
  @exclusivity(unchecked) private(set) var idleLimit: UInt64 = .max

  /// Makes the session of an open connection. Returns `nil` if memory is short.
  init?(
    _ pipe: any Pipe, _ tls: TLSConnection?, _ facts: ConnectionFacts, headerSizeLimit: Int, for pool: Pool
  ) {
    guard let session = HTTP2Session(headerSizeLimit: headerSizeLimit) else { return nil }
    self.session = session
    self.pipe = pipe
    self.tls = tls
    self.facts = facts
    self.pool = pool
    pipe.owner = self
    noteIdle()
    session.streamLimitChanged = { [weak self] in self?.streamLimitChanged() }
    session.streamFreed = { [weak self] in self?.streamsChanged() }
  }

  var multiplexes: Bool { true }
  var table: LoopExchanges { pool.table }
  /// The number of exchanges that can be started now.
  var freeStreams: Int {
    guard !isClosed, !mustClose, !isSilent, sendFailure == nil else { return 0 }
    return max(0, min(session.freeStreams, streamLimit - session.streamCount))
  }
  /// The number of streams at a time. Until the server's settings have arrived, it is the limit of its last connection.
  /// Otherwise most requests of a burst would be given back by each connection to a server with a low limit.
  private var streamLimit: Int {
    guard !session.hasSettings, let limit = pool.streamLimit else { return session.streamLimit }
    return limit
  }
  /// Whether the server allows streams at all, so that one is free sooner or later.
  var allowsStreams: Bool { session.streamLimit > 0 }
  /// Whether it counts as a connection without an exchange.
  @exclusivity(unchecked) private(set) var isIdle = true

  // MARK: Exchanges

  /// Throws the reason why the head of the request cannot be sent, before anything is connected for it.
  static func check(_ request: WireRequest) throws(TransportFailure) {
    guard Origin(url: request.url) == request.origin else {
      throw TransportFailure(.badURL, "The URL is not valid; check its host, port and spelling.")
    }
    do throws(RequestFields.Violation) {
      _ = try RequestFields(request)
    } catch {
      throw failure(error, of: request)
    }
  }

  /// Returns the failure of a request with a head that cannot be sent.
  static func failure(_ violation: RequestFields.Violation, of request: WireRequest) -> TransportFailure {
    guard case .head(let violation) = violation else { return TransportFailure(.badURL, violation.message) }
    return HTTP1Connection.failure(violation, of: request)
  }

  /// Carries an exchange. Its head is sent at the end of the turn. Returns false if no stream is free.
  func start(_ exchange: Exchange) -> Bool {
    guard freeStreams > 0 else { return false }
    if isIdle, idleSince < table.elapsed { mayHaveEnded = true }
    exchange.mayFollowAnEnd = mayHaveEnded
    let isReused = isUsed || mayHaveEnded
    guard let streamed = StreamedExchange(exchange, on: self, isReused: isReused) else { return false }
    isUsed = true
    if streamed.isOver {
      noteDraining()
      return true
    }
    carried[exchange.ticket] = streamed
    starting.append(streamed)
    if isIdle {
      isIdle = false
      pool.noteBusy()
    }
    flushLater()
    noteDraining()
    if let queue = exchange.hostQueue { noteStreams(of: queue) }
    return true
  }

  /// Forgets an exchange that leaves its stream.
  func left(_ exchange: Exchange) {
    guard carried.removeValue(forKey: exchange.ticket) != nil else { return }
    if isDraining { exchange.hostQueue?.admission.leftDraining() }
    guard !isClosed else { return }
    streamsChanged()
    guard carried.isEmpty else { return }
    noteIdle()
    isIdle = true
    pool.noteIdle(until: idleLimit)
  }

  private func noteIdle() {
    idleSince = table.elapsed
    let end = idleSince.addingReportingOverflow(Clock.nanoseconds(ConnectionPersistence.longestIdleTime))
    idleLimit = end.overflow ? .max : end.partialValue
  }

  private func streamLimitChanged() {
    pool.streamLimit = session.streamLimit > 0 ? session.streamLimit : nil
    noteDraining()
    streamsChanged()
    if let queue = carried.values.lazy.compactMap(\.hostQueue).first { noteStreams(of: queue) }
  }

  /// Notifies the queue of an exchange of how many requests the connection can carry.
  private func noteStreams(of queue: HostQueues.Queue) {
    guard session.goAway == nil else { return }
    let core = table.core!
    let admitted = core.hostQueues.noteStreams(
      streamLimit, connections: pool.multiplexed.count { !$0.isDraining }, of: queue, table.now)
    if !admitted.isEmpty { core.startAdmitted(admitted) }
  }

  /// Notes that the server expects a new connection to replace this one (RFC 9113 §6.8).
  private func noteDraining() {
    guard !isDraining, !isClosed, isSilent || session.takesNoMoreStreams else { return }
    isDraining = true
    pool.group.draining += 1
    pool.group.wakeOthers(than: pool)
    let core = table.core!
    let admitted = carried.values.compactMap(\.hostQueue).flatMap {
      core.hostQueues.noteDraining($0, table.now)
    }
    if !admitted.isEmpty { core.startAdmitted(admitted) }
  }

  /// Lets the exchanges that wait ask again, because a stream may be free.
  func streamsChanged() {
    if !isClosed { table.assignLater(pool) }
  }

  func goOn(with exchange: Exchange) {
    carried[exchange.ticket]?.goOn()
    flushLater()
  }

  func continueExpired(_ exchange: Exchange) {
    carried[exchange.ticket]?.mayContinue()
    flushLater()
  }

  func isAnswered(_ exchange: Exchange) -> Bool { carried[exchange.ticket]?.isAnswered == true }

  /// Uses the connection for no other exchange if nothing has arrived since this one began: a router may have forgotten
  /// it. Without that, every request would run into its time limit until the system gives the connection up.
  func noteTimeout(of exchange: Exchange) {
    guard lastArrival < exchange.times.requestStart else { return }
    isSilent = true
    noteDraining()
  }

  func abandon(_ exchange: Exchange) {
    carried[exchange.ticket]?.abandon()
    flushLater()
  }

  // MARK: Turns

  /// Lets the frames that wait leave at the end of the turn, in one write.
  func flushLater() {
    guard !isQueued, !isClosed else { return }
    isQueued = true
    table.continueLater(self)
  }

  func continueTurn() {
    isQueued = false
    run()
  }

  private func run() {
    guard !isClosed else { return }
    withExtendedLifetime(self) {
      receive()
      send()
      if session.isOver || mustClose || isSilent && carried.isEmpty { close() }
    }
  }

  private func receive() {
    let room = table.lendRoom()
    defer { table.giveBack(room) }
    var steps = 0
    while !isClosed, mayRead, session.failure == nil {
      guard steps < Self.mostSteps else { return flushLater() }
      steps += 1
      let step = tls?.read(into: room) ?? pipe.read(into: room)
      guard tls?.renegotiation.wasRefused != true else {
        return session.fail(.renegotiation, HTTP2ErrorCode.protocolError)
      }
      switch step {
      case .moved(let count):
        lastArrival = table.now
        session.receive(UnsafeRawBufferPointer(rebasing: room.prefix(count)), at: table.now)
      case .waitsToRead, .waitsToWrite:
        mayRead = false
        if let sendFailure { ended(sendFailure) }
      case .ended: return ended(nil)
      case .failed(let failure): return ended(failure)
      case .undecided, .asksForIdentity: return ended(nil)
      }
    }
  }

  private func ended(_ failure: TransportFailure?) {
    endFailure = endFailure ?? failure ?? sendFailure
    session.connectionEnded()
  }

  private func send() {
    var steps = 0
    while !isClosed, sendFailure == nil {
      session.makeOutput()
      let output = session.output
      guard !output.isEmpty else { break }
      guard steps < Self.mostSteps else { return flushLater() }
      steps += 1
      switch tls?.write(output) ?? pipe.write(output) {
      case .moved(let count):
        session.outputTaken(count)
        noteSentHeads()
        if !sending.isEmpty { sending.removeAll { $0.noteSentContent() } }
      case .waitsToRead, .waitsToWrite: return
      case .ended, .undecided, .asksForIdentity: return sendingFailed(nil)
      case .failed(let failure): return sendingFailed(failure)
      }
    }
    // An exchange that has left before its head was encoded waits for no byte.
    noteSentHeads()
  }

  /// Notes which heads the system has accepted. While content waits to be sent, the output is never empty.
  private func noteSentHeads() {
    var count = 0
    while count < starting.count, starting[count].noteSentHead() { count += 1 }
    guard count > 0 else { return }
    mayHaveEnded = true
    starting.removeFirst(count)
  }

  /// Notes that content of an exchange is about to be added to the output.
  func noteContent(of streamed: StreamedExchange) { sending.append(streamed) }

  /// Notes that the connection accepts no more bytes. The server may have answered before, so reading continues.
  private func sendingFailed(_ failure: TransportFailure?) {
    sendFailure =
      failure
      ?? TransportFailure(
        .connectionLost, "The connection to \(pool.key.origin.host) broke while the request was sent.")
    mayRead = true
    receive()
  }

  func close() {
    guard !isClosed else { return }
    guard !session.isInCall else {
      mustClose = true
      return flushLater()
    }
    isClosed = true
    session.close()
    // GOAWAY may be lost: the server learns of the end in any case.
    session.makeOutput()
    if sendFailure == nil, !session.output.isEmpty {
      _ = tls?.write(session.output) ?? pipe.write(session.output)
    }
    _ = tls?.shut()
    pipe.close()
    starting = []
    sending = []
    pool.closed(self)
  }
}

extension HTTP2Connection: PipeOwner {
  func pipeIsReady() {
    mayRead = true
    run()
  }
}
