import Foundation
import FoundationNetworking
import HTTPWire

// The engine's calls about a stream: the trust of the server, the client identity, and the end.
extension ByteStreamCore: ByteStreamWatcher {
  func evaluate(_ chain: PresentedChain) async -> TransportFailure? {
    guard let evaluator = session.trust, let profile = request?.profile else { return nil }
    let trust = ServerTrust(chain, options: profile.options, systemProxies: profile.systemProxies)
    let deadline = timeToDecide
    var verdict: TrustMemory.Verdict?
    if evaluator.isObserved {
      switch await answer(in: ServerProtectionSpace(trust, chain), deadline) {
      case .accept: verdict = .accepted
      case .usual, .identity: break
      case .cancel: return Self.cancelled
      case .refuse:
        return TransportFailure(
          .certificateUntrusted, "The delegate rejected the certificates of \(chain.host).")
      }
    }
    if verdict == nil {
      switch await evaluator.evaluated(trust, forHost: chain.host, deadline) {
      case .success(let found): verdict = found
      case .failure(let error):
        return TransportFailure(
          .trustRefused, "The certificates of \(chain.host) were refused.", cause: error)
      }
    }
    evaluator.remember(verdict ?? .usual, on: chain, in: profile.partition)
    return nil
  }

  func identity() async -> Result<ClientIdentity?, TransportFailure> {
    guard let evaluator = session.trust, let origin = request?.origin else { return .success(nil) }
    let space = URLProtectionSpace(
      host: origin.host, port: origin.port, protocol: nil, realm: nil,
      authenticationMethod: NSURLAuthenticationMethodClientCertificate)
    switch await answer(in: space, timeToDecide) {
    case .identity(let identity): return .success(identity)
    case .cancel: return .failure(Self.cancelled)
    case .accept, .usual, .refuse:
      evaluator.remainAnonymous(toHost: origin.host, port: origin.port)
      return .success(nil)
    }
  }

  private static var cancelled: TransportFailure {
    TransportFailure(.cancelled, "The delegate has cancelled the stream.")
  }

  private var timeToDecide: ContinuousClock.Instant? {
    session.settings.idleTimeout(request?.profile ?? session.settings.profile)
      .map { ContinuousClock.now + $0 }
  }

  private func answer(in space: URLProtectionSpace, _ deadline: ContinuousClock.Instant?) async -> TrustAnswer
  {
    let challenge = URLAuthenticationChallenge(
      protectionSpace: space, proposedCredential: nil, previousFailureCount: 0, failureResponse: nil,
      error: nil, sender: SilentSender())
    let task = task
    return await SingleCompletion.answer(
      whenForgotten: TrustAnswer.usual, whenCancelled: .cancel, deadline: deadline
    ) { [session] completion in
      let delegate = session.delegate
      let facade = session.facade
      session.rootQueue.async {
        delegate.urlSession(facade, task: task, didReceive: challenge) { completion(TrustAnswer($0, $1)) }
      }
    }
  }
}
