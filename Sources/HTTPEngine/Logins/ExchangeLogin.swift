import HTTPSystem
import HTTPWire

/// The login of one exchange: with its server, with the proxy that forwards its requests, or with both. Each round is a
/// request and a response of the exchange; only the last response is delivered. Belongs to the loop's thread.
final class ExchangeLogin {
  enum ExchangeLoginStep {
    /// Send the request with the present ``fields``.
    case send
    /// Make the token that answers a challenge, and call ``answered(_:)``.
    case ask(NegotiateConversation, challenge: [UInt8])
    /// The response is the response to the request.
    case deliver
  }

  private enum Side { case server, proxy }

  private struct Credentials {
    var field: String?
    var withholdsBody = false
  }

  private let request: WireRequest
  private let proxyServer: ProxyServer?
  /// Returns the ticket of an answer to the proxy by Digest.
  private let ticket: (DigestChallenge) -> DigestTicket
  private var server: LoginFlow?
  private var serverTokens: LoginTokens?
  private var proxy: ProxyLogin?
  private var proxyTokens: LoginTokens?
  private var asking = Side.server
  private var forServer = Credentials()
  private var forProxy = Credentials()
  /// The next step, while the rest of a response is read that only continues the login.
  var next: ExchangeLoginStep?
  /// Whether the next request has to follow on the same connection, because it answers a challenge of this connection.
  /// The server may still await its answer if only the proxy has asked again.
  var needsConnection: Bool { server?.needsConnection == true || proxy?.needsConnection == true }
  /// The token that is being generated. It is given up with the login.
  var pendingToken: PendingToken?
  /// Whether a response has asked for another round. The next one may belong to the same connection.
  private(set) var isUnderWay = false

  /// Makes the login of a request; `nil` if the request needs none, or knows its credentials in advance.
  ///
  /// - Parameters:
  ///   - route: The way of the request. A proxy that makes a tunnel has its login there.
  ///   - ticket: Returns the ticket of an answer to the proxy by Digest.
  init?(_ request: WireRequest, _ route: Route, ticket: @escaping (DigestChallenge) -> DigestTicket) {
    self.request = request
    self.ticket = ticket
    let mayAsk = route.forwards && !request.fields.contains { FieldName.equal($0.name, Self.proxyField) }
    let proxy = mayAsk ? route.proxy.flatMap { $0.answersChallenges ? $0 : nil } : nil
    guard request.login != nil || proxy != nil else { return nil }
    proxyServer = proxy
  }

  private static let proxyField = "Proxy-Authorization"

  /// Whether the connection is authenticated for this exchange alone.
  var bindsConnection: Bool { server != nil }

  /// Whether the next request is sent with empty content.
  var withholdsBody: Bool { forServer.withholdsBody || forProxy.withholdsBody }

  /// The fields with the credentials.
  var fields: [HTTPHeader] {
    var fields: [HTTPHeader] = []
    if let value = forServer.field { fields.append(HTTPHeader(name: "Authorization", value: value)) }
    if let value = forProxy.field { fields.append(HTTPHeader(name: Self.proxyField, value: value)) }
    if proxyServer != nil, hasLongBody, !withholdsBody, !request.expectsContinue {
      // The proxy may refuse the request, also because a nonce is stale, so the body waits for its answer (RFC 9110
      // §10.1.1). Bug in Squid 5: after a refusal, a long body that it has not read blocks the connection for ever.
      fields.append(HTTPHeader(name: "Expect", value: "100-continue"))
    }
    return fields
  }

  /// Whether the body is longer than what a proxy usually reads together with the head.
  private var hasLongBody: Bool {
    switch RequestHeadWriter.Content(of: request) {
    case .none: false
    case .length(let length): length > 16_384
    case .chunked: true
    }
  }

  /// The credentials that the proxy has accepted.
  var acceptedProof: AuthenticationProof? { proxy?.proof }

  // MARK: Rounds

  /// Begins the login, on a new connection if it authenticates one.
  ///
  /// - Parameter remembered: Returns the credentials of an earlier request that the proxy has accepted.
  func begin(_ remembered: () -> AuthenticationProof?) -> ExchangeLoginStep {
    beginWithProxy(remembered)
    guard let login = request.login else { return .send }
    var flow = LoginFlow(login.scheme, of: .origin, hasBody: hasBody)
    serverTokens = LoginTokens(login.credential, host: request.origin.host, login.scheme)
    let step = flow.begin()
    server = flow
    return act(on: step)
  }

  /// Whether the request has a body that can be withheld. Without an empty one it is still the same request, which the
  /// server may perform.
  private var hasBody: Bool { !RequestHeadWriter.Content(of: request).isEmpty }

  /// Begins the login with the proxy; its first step is always to send the request.
  private func beginWithProxy(_ remembered: () -> AuthenticationProof?) {
    guard let proxyServer else { return }
    let target = RequestHeadWriter(request, form: .absolute).target
    var login = ProxyLogin(
      to: proxyServer, target: .init(method: request.method, text: target, hasBody: hasBody),
      connectionSchemes: LoginTokens.schemes, remembered: remembered(), hashes: OpenSSLHashes())
    if case .send(let field, let withBody) = login.begin() {
      forProxy = Credentials(field: field, withholdsBody: !withBody)
    }
    proxy = login
    proxyTokens = nil
  }

  /// Takes the head of a response.
  ///
  /// - Parameters:
  ///   - keepsConnection: Whether another request can be sent on the connection.
  ///   - remembered: Returns the credentials that the proxy has accepted, for another request.
  func received(_ head: ResponseHead, keepsConnection: Bool, _ remembered: () -> AuthenticationProof?)
    -> ExchangeLoginStep
  {
    isUnderWay = true
    if var proxy, !proxy.isOver {
      let step = proxy.received(head, keepsConnection: keepsConnection, ticket: ticket)
      self.proxy = proxy
      if step != .deliver { return act(on: step) }
    }
    guard head.status != 407, var server, !server.isOver else { return .deliver }
    let step = server.received(head, keepsConnection: keepsConnection)
    self.server = server
    guard step != .deliver else { return .deliver }
    beginWithProxy(remembered)
    return act(on: step)
  }

  /// Takes the token that was asked for; `nil` if there is none.
  func answered(_ token: [UInt8]?) -> ExchangeLoginStep {
    pendingToken = nil
    switch asking {
    case .server:
      guard var server else { return .deliver }
      let step = server.answered(token)
      self.server = server
      return act(on: step)
    case .proxy:
      guard var proxy else { return .deliver }
      let step = proxy.answered(token, ticket: ticket)
      self.proxy = proxy
      return act(on: step)
    }
  }

  private func act(on step: LoginFlow.LoginStep) -> ExchangeLoginStep {
    switch step {
    case .send(let field, let withBody):
      forServer = Credentials(field: field, withholdsBody: !withBody)
      return .send
    case .ask(let challenge):
      asking = .server
      return ask(serverTokens, challenge)
    case .deliver: return .deliver
    }
  }

  private func act(on step: ProxyLogin.ProxyLoginStep) -> ExchangeLoginStep {
    switch step {
    case .send(let field, let withBody):
      forProxy = Credentials(field: field, withholdsBody: !withBody)
      return .send
    case .ask(let scheme, let challenge):
      asking = .proxy
      let tokens = challenge.isEmpty ? nil : proxyTokens
      proxyTokens = tokens ?? proxyServer.map { LoginTokens($0.credential, host: $0.host, scheme) }
      return ask(proxyTokens, challenge)
    case .deliver: return .deliver
    }
  }

  private func ask(_ tokens: LoginTokens?, _ challenge: [UInt8]) -> ExchangeLoginStep {
    switch tokens?.answer(to: challenge) {
    case .token(let token): return answered(token)
    case .takesTime(let conversation):
      return .ask(conversation, challenge: challenge)
    case nil: return answered(nil)
    }
  }
}

extension ProxyServer {
  /// Whether the challenges of a proxy that forwards requests are answered. Basic does not need a challenge.
  fileprivate var answersChallenges: Bool {
    authentication == .negotiated && (username != nil || password != nil)
  }

  /// The proxy itself as the server that its logins are for.
  var origin: Origin { Origin(scheme: "http", host: host, port: port) }

  var credential: PasswordCredential { PasswordCredential(user: username ?? "", password: password ?? "") }
}
