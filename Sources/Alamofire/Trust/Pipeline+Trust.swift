import Foundation
import FoundationNetworking
import HTTPWire

extension Pipeline {
  /// Judges what a server has shown where it may take its time: the delegate first, then the evaluators. Returns
  /// when the server is accepted, and the request can be sent again.
  nonisolated(nonsending) func judge(_ chain: PresentedChain, _ journey: Journey) async throws(AFError) {
    let session = core.session
    guard let judge = session.trust else { return }
    let profile = journey.request.profile
    let trust = ServerTrust(chain, options: profile.options, systemProxies: profile.systemProxies)
    var verdict: TrustMemory.Verdict? = nil
    if core.isMonitored || session.watching.wants(.trust), let task = core.tasks(of: request).last {
      let answer = await answer(to: journey.challenge(trust, chain), task, journey.request.deadline)
      try checkTime(journey)
      switch answer {
      case .accept: verdict = .accepted
      case .usual, .identity: break
      case .cancel: throw .sessionTaskFailed(error: URLError(.cancelled))
      case .refuse:
        throw .sessionTaskFailed(
          error: URLError.made(
            .serverCertificateUntrusted, "The delegate rejected the certificates of \(chain.host).",
            url: journey.request.url))
      }
    }
    try checkAlive()
    if verdict == nil {
      let deadline = journey.request.deadline
      let outcome = await offLoop { await judge.evaluated(trust, forHost: chain.host, deadline) }
      try checkAlive()
      try checkTime(journey)
      do { verdict = try outcome.get() } catch { throw AFError(refusal: error) }
    }
    judge.remember(verdict ?? .usual, on: chain, in: profile.partition)
  }

  /// Lets the delegate choose who the client is. Returns when the request can be sent again.
  nonisolated(nonsending) func chooseIdentity(_ journey: Journey) async throws(AFError) {
    let session = core.session
    let origin = journey.request.origin
    guard let judge = session.trust, let task = core.tasks(of: request).last else { return }
    let answer = await answer(to: journey.challengeForIdentity(), task, journey.request.deadline)
    try checkAlive()
    try checkTime(journey)
    switch answer {
    case .identity(let identity):
      let profile = core.profile(presenting: identity, inPlaceOf: journey.request.profile)
      journey.request = journey.request.changing { $0.profile = profile }
    case .cancel: throw .sessionTaskFailed(error: URLError(.cancelled))
    case .accept, .usual, .refuse: judge.remainAnonymous(toHost: origin.host, port: origin.port)
    }
  }

  nonisolated(nonsending) private func answer(
    to challenge: URLAuthenticationChallenge, _ task: URLSessionTask, _ deadline: ContinuousClock.Instant?
  ) async -> TrustAnswer {
    await asked(challenge, task, deadline, whenForgotten: .usual, whenCancelled: .cancel) {
      TrustAnswer($0, $1)
    }
  }
}

/// What a delegate says about a server.
enum TrustAnswer: Sendable {
  case accept
  /// The client is this one.
  case identity(ClientIdentity)
  /// The evaluators decide.
  case usual
  case refuse
  case cancel

  init(_ disposition: URLSession.AuthChallengeDisposition, _ credential: URLCredential?) {
    switch disposition {
    case .useCredential:
      if let credential = credential as? ClientIdentityCredential {
        self = .identity(credential.clientIdentity)
      } else {
        // Delegates that answer every challenge with the same password do not speak about certificates.
        self = credential?.meansTrust == true ? .accept : .usual
      }
    case .performDefaultHandling: self = .usual
    case .cancelAuthenticationChallenge: self = .cancel
    case .rejectProtectionSpace: self = .refuse
    @unknown default: self = .refuse
    }
  }
}

extension Journey {
  func challenge(_ trust: ServerTrust, _ chain: PresentedChain) -> URLAuthenticationChallenge {
    URLAuthenticationChallenge(
      protectionSpace: ServerProtectionSpace(trust, chain), proposedCredential: nil,
      previousFailureCount: 0, failureResponse: nil, error: nil, sender: SilentSender())
  }
}

extension Journey {
  fileprivate func challengeForIdentity() -> URLAuthenticationChallenge {
    let space = URLProtectionSpace(
      host: request.origin.host, port: request.origin.port, protocol: "https", realm: nil,
      authenticationMethod: NSURLAuthenticationMethodClientCertificate)
    return URLAuthenticationChallenge(
      protectionSpace: space, proposedCredential: nil, previousFailureCount: 0, failureResponse: nil,
      error: nil, sender: SilentSender())
  }
}

extension AFError {
  /// What an evaluator threw.
  init(refusal error: any Error) {
    self = error.asAFError(or: .serverTrustEvaluationFailed(reason: .customEvaluationFailed(error: error)))
  }
}
