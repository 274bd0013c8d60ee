/// The login of one request or tunnel to an HTTP proxy: which challenge of a 407 is answered, and how. Pure; the owner
/// sends the requests and makes the tokens of NTLM and Negotiate.
package struct ProxyLogin: Sendable {
  package enum ProxyLoginStep: Sendable, Equatable {
    /// Send the request with this value of `Proxy-Authorization`; `nil` sends none.
    case send(field: String?, withBody: Bool)
    /// Make a token of the scheme that answers these bytes, which are empty for the first one; then call
    /// ``answered(_:)``.
    case ask(AuthenticationScheme, challenge: [UInt8])
    /// The last response is the response to the request. If its status is 407, the proxy has refused the credential.
    case deliver
  }

  /// The request that the proxy receives, for Digest.
  package struct Target: Sendable, Equatable {
    package let method: String
    /// The text of the request line: `host:port` for a tunnel, otherwise the URL.
    package let text: String
    package let hasBody: Bool

    package init(method: String, text: String, hasBody: Bool) {
      self.method = method
      self.text = text
      self.hasBody = hasBody
    }
  }

  private let credential: PasswordCredential?
  private let isNegotiated: Bool
  private let target: Target
  private let schemes: Set<AuthenticationScheme>
  private let hashes: any HashFunctions
  private let remembered: AuthenticationProof?
  private var history = AuthenticationHistory()
  private var flow: LoginFlow?
  /// The challenges of the last 407.
  private var challenges: [Challenge] = []
  /// The number of 407 so far.
  private var refusals = 0
  /// The credentials of the last request, which the next request through the proxy may begin with.
  package var proof: AuthenticationProof? { history.proof }
  package private(set) var isOver = false
  /// Whether the present credentials answer a challenge, so that they are worthless on another connection.
  package var needsConnection: Bool { !isOver && flow?.needsConnection == true }

  /// Makes the login of one request.
  ///
  /// - Parameters:
  ///   - connectionSchemes: The schemes of ``LoginFlow`` that the engine supports.
  ///   - remembered: The ``proof`` of an earlier request that the proxy has accepted.
  package init(
    to proxy: ProxyServer, target: Target, connectionSchemes: Set<AuthenticationScheme>,
    remembered: AuthenticationProof? = nil, hashes: any HashFunctions
  ) {
    let hasCredential = proxy.username != nil || proxy.password != nil
    credential =
      hasCredential ? PasswordCredential(user: proxy.username ?? "", password: proxy.password ?? "") : nil
    isNegotiated = proxy.authentication == .negotiated
    self.target = target
    // The ticket of the process is used only where no user is named.
    schemes =
      credential?.user.isEmpty == true ? connectionSchemes : connectionSchemes.subtracting([.negotiate])
    self.hashes = hashes
    self.remembered = remembered
  }

  /// Returns the first step: to send the request with Basic, or without credentials until the proxy asks for them.
  package mutating func begin() -> ProxyLoginStep {
    guard let credential else { return .send(field: nil, withBody: true) }
    guard isNegotiated else { return send(basicProof(credential, realm: nil, isAnswer: false)) }
    guard let remembered, remembered.credential == credential else {
      return .send(field: nil, withBody: true)
    }
    switch remembered.scheme {
    case .basic: return send(basicProof(credential, realm: remembered.realm, isAnswer: false))
    case .digest:
      guard let challenge = remembered.digest, let next = remembered.ticket?.next else { break }
      return send(digestProof(challenge, credential, next, isAnswer: false))
    case .ntlm, .negotiate: break
    }
    return .send(field: nil, withBody: true)
  }

  /// Takes the head of a response.
  ///
  /// - Parameters:
  ///   - keepsConnection: Whether another request can be sent on the connection.
  ///   - ticket: Returns the ticket of an answer by Digest. Requests that share a nonce share its count.
  package mutating func received(
    _ head: ResponseHead, keepsConnection: Bool,
    ticket: (DigestChallenge) -> DigestTicket = DigestTicket.first(for:)
  ) -> ProxyLoginStep {
    guard !isOver else { return .deliver }
    if head.status == 407 { refusals += 1 }
    if var flow, refusals <= LoginFlow.mostRounds {
      let step = flow.received(head, keepsConnection: keepsConnection)
      self.flow = flow
      if step != .deliver { return passed(step) }
    }
    // A proxy could name another realm each time.
    guard head.status == 407, isNegotiated, let credential, refusals <= LoginFlow.mostRounds else {
      return end()
    }
    flow = nil
    challenges = head.block.challenges(of: "Proxy-Authenticate")
    return answer(challenges, with: credential, ticket)
  }

  /// Takes the token that was asked for; `nil` if there is none.
  ///
  /// - Parameter ticket: Returns the ticket of an answer by Digest.
  package mutating func answered(
    _ token: [UInt8]?, ticket: (DigestChallenge) -> DigestTicket = DigestTicket.first(for:)
  ) -> ProxyLoginStep {
    guard var flow, !isOver else { return end() }
    let step = flow.answered(token)
    if case .send(field: nil, _) = step, let credential {
      // Without a ticket or the like, the proxy may take another scheme. Otherwise it shall refuse the request itself.
      self.flow = nil
      let other = answer(challenges, with: credential, ticket)
      guard other == .deliver else { return other }
      isOver = false
    }
    self.flow = flow
    return step == .deliver ? end() : passed(step)
  }

  /// Takes the end of a connection that ``needsConnection``. Returns the first step of the login on another one, or
  /// ``ProxyLoginStep/deliver`` if it may not begin again.
  package mutating func connectionEnded() -> ProxyLoginStep {
    guard var flow, !isOver else { return end() }
    let step = flow.connectionEnded()
    self.flow = flow
    return step == .deliver ? end() : passed(step)
  }

  private mutating func answer(
    _ challenges: [Challenge], with credential: PasswordCredential,
    _ ticket: (DigestChallenge) -> DigestTicket
  ) -> ProxyLoginStep {
    let offers = AuthenticationOffer.ranked(challenges, connectionSchemes: schemes) { hash in
      hashes.hash(hash, []) != nil
    }
    history.recordRefusal(offers)
    // Without a name, a ticket is meant.
    let ordered = offers.filter { $0.scheme == .negotiate } + offers.filter { $0.scheme != .negotiate }
    for offer in ordered where history.mayAnswer(offer, with: credential) {
      switch offer.scheme {
      case .basic:
        guard let proof = basicProof(credential, realm: offer.realm, isAnswer: true) else { continue }
        return send(proof)
      case .digest:
        guard let digest = offer.digest,
          let proof = digestProof(digest, credential, ticket(digest), isAnswer: true)
        else { continue }
        return send(proof)
      case .ntlm, .negotiate:
        history.recordSent(
          AuthenticationProof(
            scheme: offer.scheme, realm: nil, credential: credential, source: .request, field: nil,
            isAnswer: true))
        var flow = LoginFlow(offer.scheme, of: .proxy, hasBody: target.hasBody)
        let step = flow.begin()
        self.flow = flow
        return passed(step)
      }
    }
    return end()
  }

  private func basicProof(
    _ credential: PasswordCredential, realm: String?, isAnswer: Bool
  ) -> AuthenticationProof? {
    credential.basicField.map {
      AuthenticationProof(
        scheme: .basic, realm: realm, credential: credential, source: .request, field: $0, isAnswer: isAnswer)
    }
  }

  /// Makes an answer with the quality `auth`, or without one for a proxy of RFC 2069. The body is not hashed.
  private func digestProof(
    _ challenge: DigestChallenge, _ credential: PasswordCredential, _ ticket: DigestTicket, isAnswer: Bool
  ) -> AuthenticationProof? {
    guard challenge.qualities.isEmpty || challenge.qualities.contains(.auth) else { return nil }
    var answer = DigestAnswer(
      challenge: challenge, credential: credential, ticket: ticket, method: target.method,
      target: target.text,
      quality: challenge.qualities.isEmpty ? nil : .auth)
    return answer.field(with: hashes).map {
      AuthenticationProof(
        scheme: .digest, realm: challenge.realm, credential: credential, source: .request, field: $0,
        digest: challenge, ticket: answer.ticket, isAnswer: isAnswer)
    }
  }

  private mutating func send(_ proof: AuthenticationProof?) -> ProxyLoginStep {
    if let proof { history.recordSent(proof) }
    return .send(field: proof?.field, withBody: true)
  }

  private func passed(_ step: LoginFlow.LoginStep) -> ProxyLoginStep {
    switch step {
    case .send(let field, let withBody): .send(field: field, withBody: withBody)
    case .ask(let challenge): .ask(flow?.scheme ?? .negotiate, challenge: challenge)
    case .deliver: .deliver
    }
  }

  private mutating func end() -> ProxyLoginStep {
    isOver = true
    return .deliver
  }
}
