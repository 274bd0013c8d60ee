import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

extension Pipeline {
  /// Stage 2: a server asks who sends the request. Returns whether it is sent again, with an answer; a challenge
  /// that cannot be answered is a response like any other.
  nonisolated(nonsending) func answered(_ journey: Journey, _ head: ResponseHead) async throws(AFError)
    -> Bool
  {
    guard core.isWatched || core.session.watching.wants(.authentication) else {
      return try await answeredByDefault(journey, head)
    }
    for offer in offersToShow(journey, head) {
      guard let challenge = journey.challenge(head, offer) else { continue }
      let decision = await decision(about: challenge, journey)
      try checkAlive()
      try checkTime(journey)
      switch decision {
      case .leave: return false
      // The next weaker scheme, if the server has one.
      case .reject: if core.session.hasOwnDelegate { continue } else { return false }
      case .cancel: throw .sessionTaskFailed(error: URLError(.cancelled))
      case .usual: return try await answeredByDefault(journey, head)
      case .credential(let credential, let source):
        guard journey.trail.mayAnswer(offer, with: credential), offer.takes(credential) else { return false }
        return try await brings(
          ChallengeAnswer(offer: offer, credential: credential, source: source), journey)
      }
    }
    return false
  }

  /// What is shown: to a delegate of the user's all that the server offers, else what will be answered, or would be.
  private func offersToShow(_ journey: Journey, _ head: ResponseHead) -> [AuthenticationOffer] {
    let (request, home, authentication) = (journey.request, journey.home, journey.authentication)
    let offers = core.offers(head, to: request, home: home, authentication)
    if core.session.hasOwnDelegate { return offers }
    let answer = core.answer(to: head, of: request, home: home, authentication)
    return answer.map { [$0.offer] } ?? Array(offers.prefix(1))
  }

  nonisolated(nonsending) private func answeredByDefault(_ journey: Journey, _ head: ResponseHead)
    async throws(AFError) -> Bool
  {
    let answer = core.answer(to: head, of: journey.request, home: journey.home, journey.authentication)
    guard let answer else { return false }
    return try await brings(answer, journey)
  }

  /// Asks the delegate.
  nonisolated(nonsending) private func decision(
    about challenge: URLAuthenticationChallenge, _ journey: Journey
  ) async -> ChallengeDecision {
    guard let task = core.tasks(of: request).last else { return .usual }
    let deadline = journey.request.deadline
    return await asked(challenge, task, deadline, whenForgotten: .leave, whenCancelled: .leave) {
      disposition, credential in
      ChallengeDecision(disposition, credential)
    }
  }

  /// The total time of a request also counts what is asked in the middle of it (`timeoutIntervalForResource`).
  func checkTime(_ journey: Journey) throws(AFError) {
    let request = journey.request
    guard let deadline = request.deadline, deadline <= .now else { return }
    throw .sessionTaskFailed(
      error: URLError.made(
        .timedOut,
        "Nobody has decided in time about a challenge of \(request.origin.host) (timeoutIntervalForResource).",
        url: request.url))
  }

  /// Asks the delegate, on the root queue; a task that is cancelled waits for no answer, nor does one whose time is over.
  nonisolated(nonsending) func asked<Answer: Sendable>(
    _ challenge: URLAuthenticationChallenge, _ task: URLSessionTask, _ deadline: ContinuousClock.Instant?,
    whenForgotten: Answer,
    whenCancelled: Answer,
    _ read: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Answer
  ) async -> Answer {
    let session = core.session
    return await offLoop { () -> Answer in
      await SingleCompletion.answer(
        whenForgotten: whenForgotten, whenCancelled: whenCancelled, deadline: deadline
      ) { completion in
        let delegate = session.delegate
        let facade = session.facade
        session.rootQueue.async {
          delegate.urlSession(facade, task: task, didReceive: challenge) { completion(read($0, $1)) }
        }
      }
    }
  }
}

/// What is done about a challenge.
private enum ChallengeDecision: Sendable {
  /// The response is that of the challenge.
  case leave
  /// The same, but for what else the server offers.
  case reject
  /// What would have been done without asking.
  case usual
  case credential(PasswordCredential, AuthenticationProof.Source)
  case cancel

  init(_ disposition: URLSession.AuthChallengeDisposition, _ credential: URLCredential?) {
    switch disposition {
    case .useCredential:
      // A certificate, or trust in a server, is no answer to the question for a password.
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

extension Journey {
  /// What a delegate is shown; `nil` for a URL that Foundation does not read.
  func challenge(_ head: ResponseHead, _ offer: AuthenticationOffer) -> URLAuthenticationChallenge? {
    guard let space = URLProtectionSpace(challengeTo: request, realm: offer.realm, scheme: offer.scheme)
    else {
      return nil
    }
    let proposed =
      core.state.withLock { $0.extras.credential }
      ?? core.session.configuration.urlCredentialStorage?.defaultCredential(like: space)
    return URLAuthenticationChallenge(
      protectionSpace: space, proposedCredential: proposed,
      previousFailureCount: trail.failureCount(for: offer),
      failureResponse: Exchange(url: URL(string: request.url), head: head).httpResponse, error: nil,
      sender: SilentSender())
  }
}

/// Challenges are answered by the completion handler of the delegate's method; this way of old does nothing.
final class SilentSender: NSObject, URLAuthenticationChallengeSender, Sendable {
  func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {}
  func continueWithoutCredential(for challenge: URLAuthenticationChallenge) {}
  func cancel(_ challenge: URLAuthenticationChallenge) {}
  func performDefaultHandling(for challenge: URLAuthenticationChallenge) {}
  func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {}
}
