import FoundationEssentials
import HTTPWire

/// A connection of HTTP/1.1, which carries one exchange at a time. Belongs to the loop's thread. ``HTTP1Exchange``
/// decides about the order of an exchange, and ``HTTP1Reader`` reads the response.
///
/// While its exchange has to wait, the connection is simply not read, which costs no system call.
final class HTTP1Connection: Connection {
  enum HTTP1State {
    case idle
    case busy
    /// The response has ended in this turn of the loop. It is not known yet whether more has arrived.
    case settling
    case closed
  }

  /// The number of reads or writes of one turn. Then the other connections have their turn.
  static let mostSteps = 16
  /// The number of bytes of one turn.
  static let turnSize = LoopExchanges.chunk
  /// The largest body that is sent together with the head.
  private static let largestInlinedBody = 16_384
  /// The number of bytes of content that are read from a source at once.
  static let largestPiece = 131_072

  let pool: Pool
  let table: LoopExchanges
  let pipe: any Pipe
  let tls: TLSConnection?
  let facts: ConnectionFacts
  @exclusivity(unchecked) private(set) var state = HTTP1State.idle
  @exclusivity(unchecked) private(set) var exchange: Exchange?
  @exclusivity(unchecked) var machine: HTTP1Exchange?
  @exclusivity(unchecked) var reader = HTTP1Reader(method: "GET")
  /// Whether it was established in this turn of the loop, so that the server cannot have given it up.
  var isFresh: Bool { !isUsed && idleSince >= table.elapsed }
  /// Whether it has carried an exchange.
  @exclusivity(unchecked) private(set) var isUsed = false

  /// The bytes of the request that the system has not accepted, from ``outputStart`` on.
  @exclusivity(unchecked) var output: [UInt8] = []
  @exclusivity(unchecked) var outputStart = 0
  @exclusivity(unchecked) var outgoing = Outgoing()
  /// Whether the loop will continue the connection in this turn or in the next one.
  @exclusivity(unchecked) private var isQueued = false
  /// The bytes of the response that the exchange could not take yet.
  @exclusivity(unchecked) var unread: [UInt8] = []

  /// The time at which the connection became idle, and until which it is used again.
  @exclusivity(unchecked) private(set) var idleSince: UInt64 = 0
  @exclusivity(unchecked) private(set) var idleLimit: UInt64 = .max
  /// The time for which the server keeps the connection.
  @exclusivity(unchecked) var idleTime = ConnectionPersistence.longestIdleTime

  /// The progress of sending a request.
  struct Outgoing {
    /// The number of bytes of the head at the beginning of the output; 0 once it was sent.
    var headSize = 0
    /// The number of bytes of content that are sent with the head.
    var inlined = 0
    var isChunked = false
    /// Whether the content has to be read, although it is a file.
    var readsFile = false
    /// Whether the output has the end of the content.
    var isComplete = false
    /// Whether the system has accepted a byte of the request.
    var hasBegun = false
    /// The reason why no more bytes can be sent.
    var failure: TransportFailure?
  }

  init(_ pipe: any Pipe, _ tls: TLSConnection?, _ facts: ConnectionFacts, for pool: Pool) {
    self.pipe = pipe
    self.tls = tls
    self.facts = facts
    self.pool = pool
    table = pool.table
    pipe.owner = self
    noteIdle()
  }

  var multiplexes: Bool { false }

  // MARK: Exchanges

  /// Whether this is the exchange on the connection. An event can end it, and then another one may be there.
  @inline(__always) func carries(_ exchange: Exchange) -> Bool { self.exchange === exchange }

  /// Throws the reason why the head of the request cannot be sent, before anything is connected for it.
  static func check(_ request: WireRequest) throws(TransportFailure) {
    guard Origin(url: request.url) == request.origin else {
      throw TransportFailure(.badURL, "The URL is not valid; check its host, port and spelling.")
    }
    var head: [UInt8] = []
    do throws(RequestHeadViolation) {
      _ = try RequestHeadWriter(request, form: .origin).write(into: &head)
    } catch {
      throw Self.failure(error, of: request)
    }
  }

  /// Returns the failure of a request with a head that cannot be sent.
  static func failure(_ violation: RequestHeadViolation, of request: WireRequest) -> TransportFailure {
    guard violation == .tooLarge else { return TransportFailure(.badURL, violation.message) }
    let urlSize = request.url.utf8.count
    let size = request.fields.reduce(urlSize) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
    let part = urlSize > size / 2 ? "The URL" : "The header"
    return TransportFailure(
      .badURL,
      "\(part) of the request is too large: URL and header fields together have \(size) bytes, and at most 1,000,000 can be sent. Send large values in the body."
    )
  }

  /// Carries an exchange. The connection must be idle.
  func start(_ exchange: Exchange) {
    guard let request = exchange.request else { return }
    state = .busy
    self.exchange = exchange
    exchange.connection = self
    exchange.phase = .running
    let isNew = !isUsed
    // The server may have closed a connection that was idle before its first use just now, as it may a used one.
    exchange.isReused = !isFresh
    exchange.mayFollowAnEnd = exchange.isReused
    isUsed = true
    send(request, of: exchange)
    // Bytes of a new connection, or its end, may have been reported before, and are not reported again.
    if isNew { receive() }
  }

  private func send(_ request: WireRequest, of exchange: Exchange) {
    outgoing = Outgoing()
    tls?.allowRenegotiation()
    let forwards = pool.forwards
    // A login of the server leaves the proxy its password.
    var login = exchange.login?.fields ?? []
    if forwards, let proxy = pool.key.route.proxy { login += proxy.loginFields(for: request) }
    let writer = RequestHeadWriter(
      request, form: forwards ? .absolute : .origin, omitsExpect: exchange.omitsExpect,
      loginFields: login, withholdsContent: exchange.login?.withholdsBody == true)
    do throws(RequestHeadViolation) {
      let head = try writer.write(into: &output, &pool.headMemory)
      prepare(exchange, request, head, writer.content)
    } catch {
      return fail(Self.failure(error, of: request))
    }
    if exchange.phaseTimer?.overdue != nil, let failure = exchange.timeout() { return fail(failure) }
    write()
    if outgoing.failure != nil { receive() }
  }

  private func prepare(
    _ exchange: Exchange, _ request: WireRequest, _ head: RequestHeadWriter.Summary,
    _ announced: RequestHeadWriter.Content
  ) {
    let isWithheld = exchange.login?.withholdsBody == true
    let content = isWithheld ? .none : announced
    let hasContent = !content.isEmpty
    machine = HTTP1Exchange(head, hasContent: hasContent, isRepeatable: exchange.isRepeatable)
    reader.restart(method: request.method, headerSizeLimit: request.headerSizeLimit)
    outgoing.headSize = head.size
    outgoing.isChunked = content.isChunked
    exchange.sizes.requestHead = Int64(head.size)
    exchange.times.requestStart = Clock.now()
    exchange.noteActivity()
    exchange.noteTime { $0.requestBegan($1, hasBody: hasContent) }
    guard hasContent, !outgoing.isChunked, !head.expectsContinue, exchange.bandwidth == nil,
      case .bytes(let data) = request.body,
      data.count <= Self.largestInlinedBody
    else { return }
    output.append(contentsOf: data)
    outgoing.inlined = data.count
  }

  func goOn(with exchange: Exchange) { if state == .busy { run() } }

  func continueTurn() {
    isQueued = false
    if state == .busy { run() }
  }

  /// Lets the loop continue the connection after the others, once for each turn.
  func continueLater() {
    guard !isQueued else { return }
    isQueued = true
    table.continueLater(self)
  }

  func continueExpired(_ exchange: Exchange) {
    act(on: machine?.handle(.continueExpired) ?? .none)
    run()
  }

  func isAnswered(_ exchange: Exchange) -> Bool {
    if case .done? = machine?.receiving { carries(exchange) } else { false }
  }

  func noteTimeout(of exchange: Exchange) {}

  func abandon(_ exchange: Exchange) {
    guard self.exchange === exchange else { return }
    leave(reuse: false)
  }

  /// Reads and writes as far as the connection and the exchange allow.
  ///
  /// A server that answers early may close its connection at once. Its response is read before the next write fails.
  private func run() {
    receive()
    write()
    if outgoing.failure != nil { receive() }
  }

  // MARK: Actions

  /// Performs an action of the machine. Content is sent by the next ``write()``.
  func act(on action: HTTP1Exchange.Action) {
    switch action {
    case .none, .sendContent: break
    case .awaitContinue:
      guard let exchange else { break }
      exchange.continueTime = Clock.now(plus: HTTP1Exchange.continueTimeout)
      table.noteExpiry(of: exchange)
    case .stopSending:
      dropOutput()
      exchange?.sendingStopped()
    case .sendAgainWithoutExpect:
      guard let exchange else { break }
      exchange.omitsExpect = true
      leave(reuse: false)
      table.sendAgain(exchange)
    case .complete(let reuse): complete(reuse: reuse)
    case .upgrade: complete(reuse: false)
    case .fail(let failure): fail(explained(failure))
    }
  }

  func dropOutput() {
    if !output.isEmpty { output.removeAll(keepingCapacity: output.capacity <= Self.largestInlinedBody) }
    outputStart = 0
  }

  /// Ends the exchange; its response is complete or discarded.
  func complete(reuse: Bool) {
    guard let exchange else { return }
    if let step = exchange.login?.next { return roundEnded(step, of: exchange, keepsConnection: reuse) }
    let outcome = exchange.completed()
    leave(reuse: reuse && !exchange.bindsConnection)
    table.end(exchange, outcome)
  }

  /// Ends the exchange and the connection.
  func fail(_ failure: TransportFailure) {
    guard let exchange else { return close() }
    // The caller did not want the rest of this body, so losing it is not a failure.
    guard exchange.dropped == nil else { return complete(reuse: false) }
    let failure = failure.with(metrics: exchange.metrics())
    leave(reuse: false)
    table.end(exchange, .failure(failure))
  }

  /// Ends the connection of an exchange that got no response, and repeats the request if that is safe.
  func unanswered(_ failure: TransportFailure?) {
    guard let exchange else { return close() }
    let evidence = outgoing.hasBegun ? RepeatDecision.Evidence.unknown : .notSent
    leave(reuse: false)
    table.lost(
      exchange,
      failure.map { exchange.warned($0, evidence, advice: exchange.schemeAdvice) }
        ?? exchange.unanswered(evidence),
      evidence)
  }

  // MARK: Logins

  /// Continues a login after a response that only continues it.
  private func roundEnded(
    _ step: ExchangeLogin.ExchangeLoginStep, of exchange: Exchange, keepsConnection: Bool
  ) {
    exchange.login?.next = nil
    guard keepsConnection, outgoing.failure == nil else {
      leave(reuse: false)
      guard exchange.login?.needsConnection == true else { return table.reconnect(exchange, for: step) }
      let message = "\(exchange.hostName) ended the connection between two requests of the login."
      let failure = TransportFailure(.connectionLost, message, metrics: exchange.metrics())
      return table.end(exchange, .failure(failure))
    }
    machine = nil
    dropOutput()
    exchange.restart()
    table.perform(step, of: exchange)
  }

  /// Sends the next request of a login on the same connection.
  func startRound() {
    guard let exchange, let request = exchange.request, machine == nil else { return }
    if let failure = exchange.startSource() { return fail(failure) }
    send(request, of: exchange)
    // The end of the connection may have been reported while a token was generated.
    receive()
  }

  /// Releases the exchange.
  private func leave(reuse: Bool) {
    exchange = nil
    machine = nil
    tls?.forbidRenegotiation()
    dropOutput()
    if !unread.isEmpty { unread = [] }
    guard reuse, outgoing.failure == nil else { return close() }
    state = .settling
    pool.settling += 1
    noteIdle()
    table.settleLater(self)
  }

  private func noteIdle() {
    idleSince = table.elapsed
    let end = idleSince.addingReportingOverflow(Clock.nanoseconds(idleTime))
    idleLimit = end.overflow ? .max : end.partialValue
  }

  // MARK: Idle

  /// Offers the connection to the next exchange, if no bytes have arrived on it since its last response.
  func settle() {
    guard state == .settling else { return }
    guard !table.state.isShutDown else { return close() }
    // What came together with the end of the response is not reported again.
    readIdle()
    guard state == .settling else { return }
    pool.settling -= 1
    state = .idle
    pool.keep(self)
  }

  /// Reads a connection without an exchange. Its end, or unexpected bytes, make it useless; tickets of TLS
  /// stay below.
  private func readIdle() {
    let room = table.lendRoom()
    defer { table.giveBack(room) }
    switch read(into: room) {
    case .waitsToRead, .waitsToWrite: if tls?.renegotiation.wasRefused == true { close() }
    case .moved, .ended, .failed, .undecided, .asksForIdentity: close()
    }
  }

  func close() {
    guard state != .closed else { return }
    if state == .settling { pool.settling -= 1 }
    state = .closed
    // Without the alert, some servers take the end for a broken connection.
    _ = tls?.shut()
    pipe.close()
    pool.closed(self)
  }

  // MARK: Bytes

  @inline(__always)
  func read(into room: UnsafeMutableRawBufferPointer) -> PipeStep {
    tls?.read(into: room) ?? pipe.read(into: room)
  }

  @inline(__always)
  func transmit(_ bytes: UnsafeRawBufferPointer) -> PipeStep {
    tls?.write(bytes) ?? pipe.write(bytes)
  }
}

extension HTTP1Connection: PipeOwner {
  func pipeIsReady() {
    switch state {
    case .busy: run()
    case .idle, .settling: readIdle()
    case .closed: break
    }
  }
}

extension ProxyServer {
  /// Returns the field with the login of a request that the proxy forwards. A field that the caller has set wins.
  fileprivate func loginFields(for request: WireRequest) -> [HTTPHeader] {
    let name = "Proxy-Authorization"
    guard authentication == .basic, let login = basicLogin,
      !request.fields.contains(where: { FieldName.equal($0.name, name) })
    else { return [] }
    return [HTTPHeader(name: name, value: login)]
  }
}
