import FoundationEssentials
import HTTPSystem
import HTTPWire

/// The owner of a tunnel, who waits for it.
protocol TunnelOwner: AnyObject {
  /// Called once, unless the tunnel was cancelled.
  func tunnelEnded(_ outcome: Tunnel.TunnelOutcome)
}

/// The way through a proxy, on a connection to it: its TLS, then SOCKS or `CONNECT`. Belongs to the loop's thread.
final class Tunnel: PipeOwner {
  enum TunnelOutcome {
    case open(any Pipe)
    /// The proxy closes the connection after each answer, so the next question needs another connection.
    case connectAgain
    /// The proxy could not connect to the address, but perhaps it can connect to another one of the same host.
    case addressFailed(TransportFailure)
    case failed(TransportFailure)
  }

  /// The conversation with the proxy, which outlasts a connection.
  enum Conversation {
    case socks(SOCKSHandshake)
    case connect(ConnectTunnel, ProxyLogin)
    /// The proxy forwards requests, and there is nothing to agree on but TLS.
    case forward
  }

  private enum State {
    case securing(TLSConnection)
    case talking
    /// A token is being generated. The bytes after the challenge are read later.
    case awaitingToken(PendingToken, unread: [UInt8])
    case over
  }

  private static let pieceSize = 4096

  private let proxy: ProxyServer
  private let origin: Origin
  private unowned let owner: any TunnelOwner
  private let socket: Socket
  private var pipe: any Pipe
  private(set) var conversation: Conversation
  private var state = State.talking
  private var output: ArraySlice<UInt8> = []
  /// Unowned, because the loop ends the tunnel before it ends.
  private unowned(unsafe) let core: LoopCore
  /// The tokens of a login that takes several rounds.
  private(set) var tokens: LoginTokens?

  /// Makes a tunnel that has not begun.
  ///
  /// - Parameters:
  ///   - socket: The connection to the proxy; the tunnel closes it unless it opens.
  ///   - conversation: The conversation that an earlier connection has left, or a new one.
  ///   - tokens: The tokens of that connection. A proxy may close it after each challenge of one login.
  init(
    over socket: Socket, through proxy: ProxyServer, to origin: Origin, _ conversation: Conversation,
    tokens: LoginTokens? = nil, _ core: LoopCore, for owner: any TunnelOwner
  ) {
    self.tokens = tokens
    self.core = core
    self.socket = socket
    pipe = socket
    self.proxy = proxy
    self.origin = origin
    self.conversation = conversation
    self.owner = owner
  }

  func begin(_ profile: ConnectionProfile) {
    socket.owner = self
    guard proxy.kind == .https else { return talk() }
    let peer = TLSPeer(origin, profile, proxy: proxy)
    let resumption = (core.exchanges.sessions, AnyHashable(proxy))
    switch TLSConnection.over(socket, with: peer, core.contexts, resumption: resumption) {
    case .success(let tls):
      state = .securing(tls)
      pipeIsReady()
    case .failure(let failure): end(.failed(failure))
    }
  }

  /// Ends without an answer.
  func cancel() {
    state = .over
    pipe.close()
  }

  private func end(_ outcome: TunnelOutcome) {
    if case .over = state { return }
    state = .over
    if case .open = outcome { pipe.owner = nil } else { pipe.close() }
    owner.tunnelEnded(outcome)
  }

  func pipeIsReady() {
    switch state {
    case .over, .awaitingToken: break
    case .talking: move()
    case .securing(let tls):
      switch tls.handshake() {
      case .moved:
        pipe = TLSPipe(tls, over: socket)
        state = .talking
        talk()
      case .waitsToRead, .waitsToWrite: break
      case .failed(let failure): end(.failed(RouteFailure.handshake(failure, with: proxy)))
      case .ended, .undecided, .asksForIdentity: end(.failed(closed))
      }
    }
  }

  private var closed: TransportFailure { RouteFailure.closed(by: proxy, origin.host) }

  // MARK: The conversation

  private func talk() {
    switch conversation {
    case .socks(var handshake):
      let step = handshake.begin()
      conversation = .socks(handshake)
      act(on: step, rest: [])
    case .connect(var tunnel, let login):
      let step = tunnel.begin()
      conversation = .connect(tunnel, login)
      act(on: step, rest: [])
    case .forward: return open([])
    }
    move()
  }

  /// Writes what is to be said, and reads answers, until the connection has to wait.
  private func move() {
    while case .talking = state {
      let step = output.isEmpty ? receive() : send()
      switch step {
      case .moved: continue
      case .waitsToRead, .waitsToWrite: return
      case .ended: ended()
      case .failed(let failure): failed(failure)
      case .undecided, .asksForIdentity: end(.failed(closed))
      }
    }
  }

  private func send() -> PipeStep {
    let step = output.withUnsafeBytes { pipe.write($0) }
    if case .moved(let count) = step { output = output.dropFirst(count) }
    return step
  }

  private func receive() -> PipeStep {
    withUnsafeTemporaryAllocation(byteCount: Self.pieceSize, alignment: 8) { room in
      // What follows the last answer of SOCKS comes from the target, and stays where it is.
      var count = room.count
      if case .socks(let handshake) = conversation { count = min(count, handshake.bytesNeeded) }
      let step = pipe.read(into: UnsafeMutableRawBufferPointer(rebasing: room.prefix(count)))
      if case .moved(let count) = step { received(UnsafeRawBufferPointer(rebasing: room.prefix(count))) }
      return step
    }
  }

  private func received(_ bytes: UnsafeRawBufferPointer) {
    var position = 0
    switch conversation {
    case .socks(var handshake):
      let step = handshake.read(bytes, from: &position)
      conversation = .socks(handshake)
      act(on: step, rest: Array(bytes[position...])[...])
    case .connect(var tunnel, var login):
      let step = tunnel.read(bytes, from: &position)
      let rest = Array(bytes[position...])
      guard case .ask(let question) = step else {
        conversation = .connect(tunnel, login)
        return act(on: step, rest: rest[...])
      }
      let answer = login.received(
        question.head, keepsConnection: question.keepsConnection, ticket: ticket(answering:))
      conversation = .connect(tunnel, login)
      act(on: answer, unread: rest)
    case .forward: break
    }
  }

  // MARK: Logins

  private func act(on step: ProxyLogin.ProxyLoginStep, unread: [UInt8]) {
    switch step {
    case .send(let field, _): answer(with: field, unread: unread)
    case .deliver: answer(with: nil, unread: unread)
    case .ask(let scheme, let challenge):
      let maker = challenge.isEmpty ? nil : tokens
      let tokens = maker ?? LoginTokens(proxy.credential, host: proxy.host, scheme)
      self.tokens = tokens
      switch tokens.answer(to: challenge) {
      case .token(let token): tokenMade(token, unread: unread)
      case .takesTime(let conversation):
        let token = core.tokens.make(with: conversation, answering: challenge) { [weak self] in
          self?.tokenMade($0)
        }
        state = .awaitingToken(token, unread: unread)
      }
    }
  }

  private func tokenMade(_ token: [UInt8]?) {
    guard case .awaitingToken(_, let unread) = state else { return }
    state = .talking
    tokenMade(token, unread: unread)
    // The end of the connection may have been reported in the meantime.
    move()
  }

  private func tokenMade(_ token: [UInt8]?, unread: [UInt8]) {
    guard case .connect(let tunnel, var login) = conversation else { return }
    let step = login.answered(token, ticket: ticket(answering:))
    conversation = .connect(tunnel, login)
    act(on: step, unread: unread)
  }

  private func ticket(answering challenge: DigestChallenge) -> DigestTicket {
    core.proxyNonces.ticket(answering: challenge, from: proxy.origin)
  }

  /// Continues with the value of `Proxy-Authorization`; `nil` if there is none.
  private func answer(with field: String?, unread: [UInt8]) {
    guard case .connect(var tunnel, let login) = conversation else { return }
    let step = tunnel.answered(field, belongsToConnection: login.needsConnection)
    conversation = .connect(tunnel, login)
    guard case .needsMore = step else { return act(on: step, rest: unread[...]) }
    unread.withUnsafeBytes { received($0) }
  }

  /// Begins the login again, for another connection.
  private func restartLogin() {
    guard case .connect(let tunnel, var login) = conversation else { return }
    let step = login.connectionEnded()
    conversation = .connect(tunnel, login)
    act(on: step, unread: [])
  }

  // MARK: The end

  private func ended() {
    guard case .connect(var tunnel, let login) = conversation else { return end(.failed(closed)) }
    let step = tunnel.connectionEnded()
    conversation = .connect(tunnel, login)
    act(on: step, rest: [])
    // A conversation that waits for more has no connection any more.
    if case .talking = state { end(.failed(closed)) }
  }

  private func failed(_ failure: TransportFailure) {
    end(.failed(closed.with(addition: " (\(failure.message))")))
  }

  private func act(on step: SOCKSHandshake.SOCKSStep, rest: ArraySlice<UInt8>) {
    switch step {
    case .send(let bytes): output = bytes[...]
    case .needsMore: break
    case .done: open(rest)
    case .fail(let reason):
      let failure = RouteFailure.socks(reason, proxy, origin.host)
      end(reason.mayDependOnAddress ? .addressFailed(failure) : .failed(failure))
    }
  }

  private func act(on step: ConnectTunnel.TunnelStep, rest: ArraySlice<UInt8>) {
    switch step {
    case .send(let bytes): output = bytes[...]
    case .needsMore: break
    case .open: open(rest)
    case .connectAgain: end(.connectAgain)
    case .restartLogin: restartLogin()
    case .fail(let failure): end(.failed(RouteFailure.tunnel(failure, proxy, origin.host)))
    case .ask: end(.failed(RouteFailure.rejected(by: proxy)))
    }
  }

  private func open(_ rest: ArraySlice<UInt8>) {
    end(.open(rest.isEmpty ? pipe : UnreadPipe(rest, before: pipe)))
  }
}

extension Tunnel.Conversation {
  /// Makes the conversation for a connection to a host behind a proxy. The host is an address for the versions of SOCKS
  /// that do not support names.
  init(
    with proxy: ProxyServer, host: String, port: Int, address: IPAddress?, forwards: Bool
  ) throws(TransportFailure) {
    try proxy.check(host)
    switch proxy.kind {
    case .http, .https:
      self = forwards ? .forward : .connect(host, port, by: proxy)
    case .socks4, .socks4a, .socks5, .socks5h:
      let target = SOCKSHandshake.Target(host, address, for: proxy.kind)
      guard let port = UInt16(exactly: port),
        let handshake = SOCKSHandshake(
          proxy.kind, user: proxy.username, password: proxy.password, target: target, port: port)
      else {
        throw TransportFailure(.badURL, "The port \(port) of \(host) is invalid; ports go from 1 to 65535.")
      }
      self = .socks(handshake)
    }
  }

  private static func connect(_ host: String, _ port: Int, by proxy: ProxyServer) -> Self {
    let authority = host.contains(":") ? "[\(host.prefix { $0 != "%" })]:\(port)" : "\(host):\(port)"
    var login = ProxyLogin(
      to: proxy, target: .init(method: "CONNECT", text: authority, hasBody: false),
      connectionSchemes: LoginTokens.schemes, hashes: OpenSSLHashes())
    var field: String?
    if case .send(let first, _) = login.begin() { field = first }
    return .connect(ConnectTunnel(to: Origin(scheme: "http", host: host, port: port), login: field), login)
  }
}

extension SOCKSHandshake.Target {
  /// Makes the target for a version of SOCKS. An address is no name, and its zone has a meaning on this machine alone
  /// (RFC 6874 §4).
  fileprivate init(_ host: String, _ address: IPAddress?, for kind: ProxyServer.Kind) {
    let literal = IPAddress(host: host).flatMap { kind == .socks4a && $0.family != .v4 ? nil : $0 }
    if let address = address ?? literal {
      self = .address(address)
    } else {
      self = .name(host.contains(":") ? String(host.prefix { $0 != "%" }) : host)
    }
  }
}

extension ProxyServer {
  /// Whether it has a name or a password, which may be empty.
  var hasCredential: Bool { username != nil || password != nil }

  /// The value of `Proxy-Authorization` that is sent without being asked for (RFC 7617).
  var basicLogin: String? {
    guard hasCredential else { return nil }
    return "Basic \(Data("\(username ?? ""):\(password ?? "")".utf8).base64EncodedString())"
  }

  /// Throws the reason why the proxy cannot be asked for a host.
  func check(_ host: String) throws(TransportFailure) {
    if let fault = credentialFault {
      throw TransportFailure(
        .proxyAuthenticationRequired, "\(fault) Correct TransportOptions.proxy or the proxy variable.")
    }
    switch kind {
    case .http, .https: break
    case .socks4, .socks4a, .socks5, .socks5h:
      // One byte has the length of a name (RFC 1928 §5).
      guard host.utf8.count > 255 else { return }
      throw TransportFailure(
        .badURL, "The host has \(host.utf8.count) bytes; a SOCKS proxy takes names of at most 255 bytes.")
    }
  }
}
