import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

// A server asks for authentication (RFC 9110 §11). A challenge that cannot be answered is a response like any other.
extension AttemptDriver {
  /// Records whether the server accepts the credential of the request.
  @inline(never)
  func evaluateCredentials() -> AttemptEvent {
    guard let head = values.response?.head, values.authentication != nil, let proof = trail.proof else {
      return .done
    }
    let request = values.request
    let memory = core.session.credentials
    guard head.status == 401 else {
      let info = AuthenticationInfo(head.block.values(of: "Authentication-Info"))
      memory.accepted(
        proof, origin: request.origin, target: ProtectionDomain.target(of: request.url),
        nextNonce: info.nextNonce)
      return .done
    }
    // An outdated nonce says nothing about the credential.
    let offers = core.session.authentication.offers(head, challengeContext)
    if !offers.contains(where: { trail.mayAnswer($0, with: proof.credential) }) {
      memory.refused(proof, origin: request.origin)
    }
    return .done
  }

  func answerChallengeAtOnce() throws(AFError) -> AttemptEvent? {
    guard let head = values.response?.head, head.status == 401 else { return .challenge(isAnswered: false) }
    guard !core.observers.contains(.challenges), !core.isUndecided(head) else { return nil }
    guard let answer = defaultAnswer(to: head) else { return .challenge(isAnswered: false) }
    let choice = try fieldAtOnce(
      answer.offer.scheme, answer.credential, answer.offer.digest, for: values.request
    ) { answer.offer.digest.map { DigestTicket.first(for: $0) } }
    switch choice {
    case .field(let field, let ticket): return .challenge(isAnswered: add(answer, field, ticket))
    case .needsBodyHash: return nil
    }
  }

  @inline(never)
  nonisolated(nonsending) func answerChallenge() async throws(AFError) -> AttemptEvent {
    guard let head = values.response?.head else { return .challenge(isAnswered: false) }
    let isAnswered = core.asksAboutChallenge ? try await askDelegate(head) : try await answerByDefault(head)
    if !isAnswered { try await deliverDeclinedChallenge() }
    return .challenge(isAnswered: isAnswered)
  }

  /// Delivers the response with a declined challenge to the handlers and the sink of the request.
  @inline(never)
  nonisolated(nonsending) private func deliverDeclinedChallenge() async throws(AFError) {
    guard let response = values.response, core.isUndecided(response.head) else { return }
    core.declineChallenge()
    let request = values.outgoing
    do throws(TransportFailure) {
      var body = response.body
      if let kept = request.sink as? ChallengeBody { body = try kept.take() }
      if let observed = request.sink as? ObservedBody { body = try observed.keptChallenge() }
      let transport = StoredTransport(
        answer: StoredAnswer(head: response.head, body: body ?? Data()),
        sink: core.hasBodySink ? request.sink : nil)
      _ = try await transport.send(request, observer: StoredAnswerObserver(core))
    } catch {
      throw AFError(error, url: request.url)
    }
  }

  /// Asks the delegate about the offers of a server, one after the other. Returns whether it has answered one.
  nonisolated(nonsending) private func askDelegate(_ head: ResponseHead) async throws(AFError) -> Bool {
    for offer in offersToShow(head) {
      guard let challenge = challenge(head, offer) else { continue }
      let decision = await decision(about: challenge)
      try checkAlive()
      try checkDeadline()
      switch decision {
      case .leave: return false
      // The next weaker scheme, if the server offers one.
      case .reject: if core.session.hasOwnDelegate { continue } else { return false }
      case .cancel: throw .sessionTaskFailed(error: URLError(.cancelled))
      case .usual: return try await answerByDefault(head)
      case .credential(let credential, let source):
        guard trail.mayAnswer(offer, with: credential), offer.takes(credential) else {
          return false
        }
        let answer = ChallengeAnswer(offer: offer, credential: credential, source: source)
        return try await attach(answer)
      }
    }
    return false
  }

  /// Returns the offers that a delegate is shown. A delegate of the caller sees all of them, those that have not failed
  /// first. Ours sees the one that will be answered.
  private func offersToShow(_ head: ResponseHead) -> [AuthenticationOffer] {
    let offers = core.session.authentication.offers(head, challengeContext)
    if core.session.hasOwnDelegate {
      return offers.filter { trail.failureCount(for: $0) == 0 }
        + offers.filter { trail.failureCount(for: $0) > 0 }
    }
    return defaultAnswer(to: head).map { [$0.offer] } ?? Array(offers.prefix(1))
  }

  private var challengeContext: ChallengeContext {
    ChallengeContext(
      request: values.request, initialOrigin: values.initialOrigin, credential: core.passwordCredential,
      authentication: values.authentication)
  }

  private func defaultAnswer(to head: ResponseHead) -> ChallengeAnswer? {
    core.session.authentication.answer(head, challengeContext)
  }

  nonisolated(nonsending) private func answerByDefault(_ head: ResponseHead) async throws(AFError) -> Bool {
    guard let answer = defaultAnswer(to: head) else { return false }
    return try await attach(answer)
  }

  /// Adds an answer to the next hop. Returns false if the answer has no field.
  nonisolated(nonsending) private func attach(_ answer: ChallengeAnswer) async throws(AFError) -> Bool {
    let offer = answer.offer
    let (field, ticket) = try await field(offer.scheme, answer.credential, offer.digest, for: values.request)
    {
      answer.offer.digest.map { DigestTicket.first(for: $0) }
    }
    return add(answer, field, ticket)
  }

  private func add(_ answer: ChallengeAnswer, _ field: String?, _ ticket: DigestTicket?) -> Bool {
    let offer = answer.offer
    guard field != nil || offer.scheme.isOfConnection else { return false }
    add(
      AuthenticationProof(
        scheme: offer.scheme, realm: offer.realm, credential: answer.credential, source: answer.source,
        field: field, digest: offer.digest, ticket: ticket, isAnswer: true))
    return true
  }

  nonisolated(nonsending) private func decision(about challenge: URLAuthenticationChallenge) async
    -> ChallengeDecision
  {
    guard let task = core.tasks(of: request).last else { return .usual }
    return await delegateAnswer(to: challenge, task, whenForgotten: .leave, whenCancelled: .leave) {
      ChallengeDecision($0, $1)
    }
  }

  /// Makes the challenge for a delegate; `nil` for a URL that Foundation cannot parse.
  private func challenge(_ head: ResponseHead, _ offer: AuthenticationOffer) -> URLAuthenticationChallenge? {
    let request = values.request
    guard let space = URLProtectionSpace(challengeTo: request, realm: offer.realm, scheme: offer.scheme)
    else { return nil }
    let proposed =
      core.state.withLock { $0.extras.credential }
      ?? core.session.configuration.urlCredentialStorage?.defaultCredential(like: space)
    return URLAuthenticationChallenge(
      protectionSpace: space, proposedCredential: proposed,
      previousFailureCount: trail.failureCount(for: offer),
      failureResponse: Exchange(url: URL(wire: request.url), head: head).httpResponse, error: nil,
      sender: SilentSender())
  }

  /// Throws if the total time of the request is over, which includes the decisions of delegates
  /// (`timeoutIntervalForResource`).
  func checkDeadline() throws(AFError) {
    let request = values.request
    guard let deadline = request.deadline, deadline <= .now else { return }
    throw .sessionTaskFailed(
      error: URLError.made(
        .timedOut,
        "The delegate did not answer a challenge of \(request.origin.host) before timeoutIntervalForResource was over.",
        url: request.url, phase: .total))
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
