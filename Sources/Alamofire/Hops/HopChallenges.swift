import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire

// A server asks for authentication (RFC 9110 §11). A challenge that cannot be answered is a response like any other.
extension HopLoop {
  /// Records whether the server accepts the credential of the request.
  mutating func evaluateCredentials() -> Outcome<HopLoop> {
    guard let head = responses.last?.head, let proof = credentials.proof else {
      return .done
    }
    let request = request
    let memory = services.credentials
    guard head.status == 401 else {
      // No server has seen a credential that was not sent. A response that is `public` answers any. The next
      // nonce in a stored response was for the request after that response.
      guard let sent = caching.source.sentHead(head), sent.judgesCredentials else { return .done }
      let info = AuthenticationInfo(sent.block.values(of: "Authentication-Info"))
      memory.accepted(
        proof, origin: request.origin, target: ProtectionDomain.target(of: request.url),
        nextNonce: info.nextNonce)
      return .done
    }
    // An outdated nonce says nothing about the credential.
    let offers = services.authentication.offers(head, challengeContext)
    credentials.refused(by: offers)
    if !offers.contains(where: { credentials.history.mayAnswer($0, with: proof.credential) }) {
      memory.refused(proof, origin: request.origin)
    }
    return .done
  }

  mutating func answerChallenge() throws(AFError) -> Outcome<HopLoop> {
    guard let head = responses.last?.head, head.status == 401 else {
      return .event(.challenge(isAnswered: false))
    }
    guard delegate.observers.contains(.challenges) || delegate.isUndecided(head) else {
      return try answerByDefault(head)
    }
    guard delegate.asksAboutChallenge else { return try answerByDefault(head) }
    return try askDelegate(head, about: offersToShow(head)[...])
  }

  /// Delivers the response with a challenge that was not answered. Handlers and the sink of the request get it if they
  /// have waited for the decision.
  private mutating func leaveChallenge() throws(AFError) -> Outcome<HopLoop> {
    guard let response = responses.last, delegate.isUndecided(response.head) else {
      return .event(.challenge(isAnswered: false))
    }
    delegate.declineChallenge()
    let request = outgoing
    let body: Data?
    do throws(TransportFailure) {
      body = try delegate.challengeBody(in: request.sink) ?? response.body
    } catch {
      throw AFError(error, url: request.url)
    }
    let answer = StoredAnswer(head: response.head, body: body ?? Data())
    return replay(answer, of: request) { (_, result) throws(AFError) in
      if case .failure(let failure) = result { throw AFError(failure, url: request.url) }
      return .event(.challenge(isAnswered: false))
    }
  }

  /// Asks the delegate about the offers of a server, one after the other.
  private mutating func askDelegate(
    _ head: ResponseHead, about offers: ArraySlice<AuthenticationOffer>
  ) throws(AFError) -> Outcome<HopLoop> {
    var rest = offers
    while let offer = rest.popFirst() {
      guard let challenge = challenge(head, offer) else { continue }
      let question = delegate.question(
        about: challenge, whenForgotten: .leave, whenCancelled: .leave, deadline: request.deadline
      ) { ChallengeDecision($0, $1) }
      guard let question else { return try answerByDefault(head) }
      return .task(question) { [rest] (hops, decision) throws(AFError) in
        try hops.apply(decision, to: offer, of: head, otherwise: rest)
      }
    }
    return try leaveChallenge()
  }

  private mutating func apply(
    _ decision: ChallengeDecision, to offer: AuthenticationOffer, of head: ResponseHead,
    otherwise rest: ArraySlice<AuthenticationOffer>
  ) throws(AFError) -> Outcome<HopLoop> {
    try delegate.checkAlive()
    try checkDeadline()
    switch decision {
    case .leave: return try leaveChallenge()
    // The next weaker scheme, if the server offers one.
    case .reject:
      return delegate.hasOwnDelegate ? try askDelegate(head, about: rest) : try leaveChallenge()
    case .cancel: throw .sessionTaskFailed(error: URLError(.cancelled))
    case .usual: return try answerByDefault(head)
    case .credential(let credential, let source):
      guard credentials.history.mayAnswer(offer, with: credential), offer.takes(credential) else {
        return try leaveChallenge()
      }
      return try send(ChallengeAnswer(offer: offer, credential: credential, source: source))
    }
  }

  /// Returns the offers that a delegate is shown. The caller's delegate sees all of them, beginning with the offers
  /// that have not failed. Ours sees only the one that will be answered.
  private func offersToShow(_ head: ResponseHead) -> [AuthenticationOffer] {
    let offers = services.authentication.offers(head, challengeContext)
    if delegate.hasOwnDelegate {
      return offers.filter { credentials.history.failureCount(for: $0) == 0 }
        + offers.filter { credentials.history.failureCount(for: $0) > 0 }
    }
    return defaultAnswer(to: head).map { [$0.offer] } ?? Array(offers.prefix(1))
  }

  private var challengeContext: ChallengeContext {
    let isOfWebSocket = if case .webSocket = route.handler { true } else { false }
    return ChallengeContext(
      request: request, initialOrigin: redirects.initialOrigin, credential: delegate.passwordCredential,
      authentication: credentials.authentication, isOfWebSocket: isOfWebSocket)
  }

  private func defaultAnswer(to head: ResponseHead) -> ChallengeAnswer? {
    services.authentication.answer(head, challengeContext)
  }

  private mutating func answerByDefault(_ head: ResponseHead) throws(AFError) -> Outcome<HopLoop> {
    guard let answer = defaultAnswer(to: head) else { return try leaveChallenge() }
    return try send(answer)
  }

  /// Adds an answer to the next hop, unless it has no field.
  private mutating func send(_ answer: ChallengeAnswer, bodyHash: BodyHash = .unknown) throws(AFError)
    -> Outcome<HopLoop>
  {
    let offer = answer.offer
    let made = try field(offer.scheme, answer.credential, offer.digest, bodyHash: bodyHash) {
      offer.digest.map { services.credentials.ticket(answering: $0, origin: request.origin) }
    }
    guard case .made(let field, let ticket) = made else {
      return hashBody(for: offer.digest) { (hops, hash) throws(AFError) in
        try hops.send(answer, bodyHash: hash)
      }
    }
    return add(answer, field, ticket) ? .event(.challenge(isAnswered: true)) : try leaveChallenge()
  }

  private mutating func add(_ answer: ChallengeAnswer, _ field: String?, _ ticket: DigestTicket?) -> Bool {
    let offer = answer.offer
    guard field != nil || offer.scheme.isOfConnection else { return false }
    add(
      AuthenticationProof(
        scheme: offer.scheme, realm: offer.realm, credential: answer.credential, source: answer.source,
        field: field, digest: offer.digest, ticket: ticket, isAnswer: true))
    return true
  }

  /// Makes the challenge for a delegate; `nil` for a URL that Foundation cannot parse.
  private func challenge(_ head: ResponseHead, _ offer: AuthenticationOffer) -> URLAuthenticationChallenge? {
    let request = request
    guard let space = URLProtectionSpace(challengeTo: request, realm: offer.realm, scheme: offer.scheme)
    else { return nil }
    let proposed =
      delegate.credential ?? services.authentication.storage?.defaultCredential(like: space)
    return URLAuthenticationChallenge(
      protectionSpace: space, proposedCredential: proposed,
      previousFailureCount: credentials.history.failureCount(for: offer),
      failureResponse: Exchange(url: URL(wire: request.url), head: head).httpResponse, error: nil,
      sender: SilentSender())
  }

  /// Throws if the total time of the request is over, which includes the decisions of delegates
  /// (`timeoutIntervalForResource`).
  ///
  /// - Parameter asked: The object of the caller that was asked.
  func checkDeadline(asked: String = "The delegate") throws(AFError) {
    let request = request
    guard let deadline = request.deadline, deadline <= .now else { return }
    throw .unansweredQuestion(to: request.url, asked, request.profile.options.timeLimits)
  }
}

extension AFError {
  /// Makes the error of a request whose delegate, or another object of the caller, did not answer in time.
  static func unansweredQuestion(
    to url: String?, _ asked: String, _ limits: TransportOptions.TimeLimits
  ) -> AFError {
    let host = url.flatMap { URL(string: $0)?.host } ?? "the server"
    return .sessionTaskFailed(
      error: URLError(
        .timedOut,
        "\(asked) did not answer a question about \(host) before \(limits.totalSetting) was over.",
        url: url, phase: .total))
  }
}

extension ResponseHead {
  /// Whether the status shows that the server has checked the credential. Gateways, and servers that have too much to
  /// do, respond before that.
  fileprivate var judgesCredentials: Bool {
    switch status {
    case 407, 408, 421, 425, 429, 502...504: false
    default: true
    }
  }
}

/// The decision of a delegate about a challenge.
private enum ChallengeDecision: Sendable {
  /// The response of the challenge is the result.
  case leave
  /// The next offer of the server is shown to the delegate. Without further offers this is the same as ``leave``.
  case reject
  /// The answer that is given without a delegate.
  case usual
  case credential(PasswordCredential, AuthenticationProof.Source)
  case cancel

  init(_ disposition: URLSession.AuthChallengeDisposition, _ credential: URLCredential?) {
    switch disposition {
    case .useCredential:
      // A certificate, or trust in a server, does not answer a challenge for a password.
      if let credential, !(credential is ClientIdentityCredential), !credential.meansTrust,
        let password = PasswordCredential(credential)
      {
        self = .credential(password, credential.persistence == .none ? .request : .session)
      } else {
        self = .leave
      }
    case .performDefaultHandling: self = .usual
    case .cancelAuthenticationChallenge: self = .cancel
    case .rejectProtectionSpace: self = .reject
    @unknown default: self = .leave
    }
  }
}
