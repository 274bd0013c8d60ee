/// The client's side of a tunnel through an HTTP proxy (`CONNECT`, RFC 9110 §9.3.6), with the rounds of its login.
/// Pure: its owner sends and receives the bytes, and knows the credentials.
///
/// The request has no field but `Host` and those that the owner gives. A response that asks for a login is read to its
/// end, so that the connection can carry the next request; otherwise the proxy is connected to again.
package struct ConnectTunnel: Sendable {
  package enum TunnelStep: Sendable {
    case send([UInt8])
    case needsMore
    /// The proxy wants a login. The owner calls ``ConnectTunnel/answered(_:belongsToConnection:)``, and gives no bytes
    /// before.
    case ask(LoginQuestion)
    /// The last answer belongs to a connection that cannot be used any more. The owner calls
    /// ``ConnectTunnel/answered(_:belongsToConnection:)`` with the first value of another login, or with `nil`.
    case restartLogin
    /// Connect to the proxy on another connection, and call ``ConnectTunnel/begin()``.
    case connectAgain
    /// The tunnel is open. The bytes that were not consumed come from the target.
    case open
    case fail(Failure)
  }

  /// A response that wants a login.
  package struct LoginQuestion: Sendable {
    package let head: ResponseHead
    /// The challenges. Some proxies send 401 with the field of servers.
    package let challenges: [String]
    /// The number of this question, beginning with 1.
    package let round: Int
    /// Whether the connection can carry the next request, according to its head. If not, a login that belongs to the
    /// connection ends.
    package let keepsConnection: Bool
  }

  package enum Failure: Error, Sendable, Equatable {
    /// The proxy refused the tunnel with this status.
    case refused(status: Int)
    /// The proxy wants a login, and none was sent.
    case loginRequired(status: Int)
    /// The proxy did not accept the login, or not after ``ConnectTunnel/mostRounds`` rounds.
    case loginRejected(status: Int)
    case invalidRequest(RequestHeadViolation)
    case invalidResponse(HeadViolation)
    /// The head of a response is larger than ``ConnectTunnel/headSizeLimit``.
    case headTooLarge
    /// The proxy closed the connection.
    case closed
  }

  private enum TunnelState: Sendable {
    case start
    case head
    case asking(keepsConnection: Bool)
    /// The first value of a login for the next connection is awaited.
    case restartingLogin
    /// The rest of a response is read before the next request is sent.
    case refusedBody(left: Int)
    case over(Failure?)
  }

  /// A value of `Proxy-Authorization`.
  private struct LoginField: Sendable {
    let value: String
    let belongsToConnection: Bool
  }

  /// The largest head of a response, including informational responses before it.
  package static var headSizeLimit: Int { 65_536 }
  /// The largest body that is read for the sake of its connection.
  package static var bodySizeLimit: Int { 65_536 }
  /// The largest number of questions that are answered.
  package static var mostRounds: Int { 6 }

  private let origin: Origin
  private let fields: [HTTPHeader]
  private var login: LoginField?
  private var state = TunnelState.start
  private var reader = HTTP1Reader(method: "CONNECT", headerSizeLimit: Self.headSizeLimit)
  private var rounds = 0
  /// The status of the last response.
  private var status = 0
  /// The number of requests on this connection.
  private var requests = 0

  /// Makes a tunnel.
  ///
  /// - Parameters:
  ///   - origin: The host and the port of the target.
  ///   - fields: The fields for the proxy, without the login.
  ///   - login: The value of `Proxy-Authorization` for the first request; `nil` to be asked.
  package init(to origin: Origin, fields: [HTTPHeader] = [], login: String? = nil) {
    self.origin = origin
    self.fields = fields
    self.login = login.map { LoginField(value: $0, belongsToConnection: false) }
  }

  /// Begins on a new connection.
  package mutating func begin() -> TunnelStep {
    if case .over(let failure) = state { return failure.map { .fail($0) } ?? .open }
    requests = 0
    return send()
  }

  /// Takes bytes of the proxy at `position`, which it moves past them, until a step other than ``TunnelStep/needsMore``
  /// follows from them.
  package mutating func read(_ bytes: UnsafeRawBufferPointer, from position: inout Int) -> TunnelStep {
    switch state {
    case .start, .asking, .restartingLogin: return .needsMore
    case .head: return readHead(bytes, &position)
    case .refusedBody(let left): return readBody(bytes, &position, left: left)
    case .over(let failure): return failure.map { .fail($0) } ?? .open
    }
  }

  /// Continues with the value of `Proxy-Authorization`; `nil` without a login for the challenges. After
  /// ``TunnelStep/needsMore`` the owner passes the rest of its bytes, even if there are none.
  ///
  /// - Parameter belongsToConnection: Whether the value is worthless on another connection, as one is that answers a
  ///   challenge of NTLM or Negotiate.
  package mutating func answered(_ login: String?, belongsToConnection: Bool = false) -> TunnelStep {
    let field = login.map { LoginField(value: $0, belongsToConnection: belongsToConnection) }
    switch state {
    case .asking(let keepsConnection):
      guard let field else {
        return end(self.login == nil ? .loginRequired(status: status) : .loginRejected(status: status))
      }
      self.login = field
      guard keepsConnection else { return connectAgain() }
      state = .refusedBody(left: Self.bodySizeLimit)
    case .restartingLogin:
      guard let field else { return end(.closed) }
      self.login = field
      return connectAgain()
    case .start, .head, .refusedBody, .over: break
    }
    return .needsMore
  }

  /// Continues after the end of the connection. A proxy may close a connection after any response, so a further request
  /// without an answer is sent on another one.
  package mutating func connectionEnded() -> TunnelStep {
    switch state {
    case .over(let failure): return failure.map { .fail($0) } ?? .open
    case .start, .restartingLogin: return .needsMore
    case .asking:
      state = .asking(keepsConnection: false)
      return .needsMore
    case .refusedBody: return connectAgain()
    case .head: return requests > 1 && !reader.hasBegun ? connectAgain() : end(.closed)
    }
  }

  private mutating func send() -> TunnelStep {
    var request: [UInt8] = []
    let authorization = login.map { [HTTPHeader(name: "Proxy-Authorization", value: $0.value)] } ?? []
    do throws(RequestHeadViolation) {
      _ = try RequestHeadWriter(tunnelTo: origin, fields: fields + authorization).write(into: &request)
    } catch {
      return end(.invalidRequest(error))
    }
    reader.restart(method: "CONNECT", headerSizeLimit: Self.headSizeLimit)
    state = .head
    requests += 1
    return .send(request)
  }

  /// Leaves the connection. A login that belongs to it has to begin again before the next one.
  private mutating func connectAgain() -> TunnelStep {
    guard login?.belongsToConnection != true else {
      state = .restartingLogin
      return .restartLogin
    }
    state = .start
    return .connectAgain
  }

  private mutating func end(_ failure: Failure?) -> TunnelStep {
    state = .over(failure)
    return failure.map { .fail($0) } ?? .open
  }
}

extension ConnectTunnel {
  private mutating func readHead(_ bytes: UnsafeRawBufferPointer, _ position: inout Int) -> TunnelStep {
    while true {
      switch reader.read(bytes, from: &position) {
      case .informational: continue
      case .head(let head): return headReceived(head)
      case .refuse(let violation): return end(.invalidResponse(violation))
      case .refuseHead: return end(.headTooLarge)
      case .needsMore, .content, .end: return .needsMore
      }
    }
  }

  private mutating func headReceived(_ head: ResponseHead) -> TunnelStep {
    status = head.status
    switch head.status {
    case 200..<300: return end(nil)
    case 101: return end(.invalidResponse(.unrequestedUpgrade))
    // Only the proxy can have answered, whatever the status says.
    case 401, 407: break
    default: return end(.refused(status: head.status))
    }
    guard rounds < Self.mostRounds else { return end(.loginRejected(status: head.status)) }
    rounds += 1
    let keepsConnection = mayGoOn(after: head)
    state = .asking(keepsConnection: keepsConnection)
    let challenges = head.block.values(of: "Proxy-Authenticate")
    return .ask(
      LoginQuestion(
        head: head,
        challenges: head.status == 401 ? challenges + head.block.values(of: "WWW-Authenticate") : challenges,
        round: rounds, keepsConnection: keepsConnection))
  }

  /// Whether the connection can carry another request after the response.
  private func mayGoOn(after head: ResponseHead) -> Bool {
    let persistence = ConnectionPersistence(head, framing: reader.framing, isFromProxy: true)
    return persistence.isPersistent && !reader.endsWithConnection
      && reader.contentLeft <= Int64(Self.bodySizeLimit)
  }

  /// Reads the rest of a response, with its chunk framing, up to a limit.
  private mutating func readBody(
    _ bytes: UnsafeRawBufferPointer, _ position: inout Int, left: Int
  ) -> TunnelStep {
    let start = position
    while true {
      let step = reader.read(bytes, from: &position)
      if case .content(let range) = step { reader.contentTaken(range.count, from: &position) }
      guard position - start <= left else { return connectAgain() }
      switch step {
      case .content: continue
      // Bytes after the response would be mistaken for the next one.
      case .end: return position < bytes.count ? connectAgain() : send()
      case .needsMore:
        state = .refusedBody(left: left - (position - start))
        return .needsMore
      case .informational, .head, .refuseHead, .refuse: return connectAgain()
      }
    }
  }
}
