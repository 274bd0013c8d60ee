import Foundation
import HTTPWire
import Synchronization

/// The judge of a session: its evaluators, as far as they may run in a handshake, and what was decided elsewhere.
final class SessionTrust: TrustJudge {
  let manager: ServerTrustManager?
  private let watching: SessionWatching

  private struct State {
    var memory = TrustMemory()
    /// The servers to which no client certificate is presented.
    var anonymous: Set<String> = []
    /// Whether a server was accepted otherwise than every session would; its connections may be used from then on.
    var hasAccepted = false
  }

  private let state = Mutex(State())

  /// - Parameters:
  ///   - manager: Whose evaluators decide.
  ///   - watching: Who is asked or told about every server.
  ///
  /// `nil` when there is nobody, and the trust store decides.
  init?(manager: ServerTrustManager?, watching: SessionWatching) {
    guard manager != nil || watching.hasOwnDelegate || watching.eventMonitor.seesMore else { return nil }
    self.manager = manager
    self.watching = watching
  }

  /// Whether somebody wants to see every server before the evaluators do.
  var isWatched: Bool { watching.wants(.trust) || watching.eventMonitor.seesMore }

  /// What a delegate has accepted stays so when it wants to see servers no more.
  var judgesAsUsual: Bool {
    manager == nil && !watching.wants(.trust) && !state.withLock { $0.hasAccepted }
  }

  func judge(_ chain: PresentedChain, for profile: ConnectionProfile) -> TrustVerdict {
    if let verdict = state.withLock({ $0.memory.verdict(on: chain, in: profile.partition) }) {
      return verdict == .accepted ? .accept : .usual
    }
    guard !isWatched, manager?.runsUserCode != true else { return .ask }
    do {
      guard let evaluator = try manager?.serverTrustEvaluator(forHost: chain.host) else { return .usual }
      guard let instant = evaluator as? any InstantTrustEvaluator, instant.isInstant else { return .ask }
      try instant.evaluate(ServerTrust(chain, options: profile.options), forHost: chain.host)
      return .accept
    } catch {
      return .refuse(error)
    }
  }

  func wantsStapledResponse(ofHost host: String) -> Bool {
    guard let manager else { return false }
    // Which evaluator a user's own class would choose is not known here.
    guard !manager.runsUserCode else { return true }
    let evaluator = try? manager.serverTrustEvaluator(forHost: host)
    guard let evaluator else { return false }
    return (evaluator as? any InstantTrustEvaluator)?.wantsStapledResponse ?? true
  }

  /// Asks the evaluators, who may take their time: on a thread of Dispatch's own, since one that waits would keep
  /// Swift's pool, with a thread for each core, from everybody else. Returns what is to be remembered. A task that is
  /// cancelled waits for nobody, nor does one whose time is over.
  func evaluated(
    _ trust: ServerTrust, forHost host: String, _ deadline: ContinuousClock.Instant?
  ) async -> Result<TrustMemory.Verdict, any Error> {
    let cancelled = Result<TrustMemory.Verdict, any Error>.failure(CancellationError())
    return await SingleCompletion.answer(
      whenForgotten: cancelled, whenCancelled: cancelled, deadline: deadline
    ) { completion in
      DispatchQueue(label: "org.alamofire.serverTrust").async { [self] in
        completion(Result { try evaluate(trust, forHost: host) })
      }
    }
  }

  private func evaluate(_ trust: ServerTrust, forHost host: String) throws -> TrustMemory.Verdict {
    guard let evaluator = try manager?.serverTrustEvaluator(forHost: host) else { return .usual }
    try evaluator.evaluate(trust, forHost: host)
    return .accepted
  }

  func wantsToChooseIdentity(forHost host: String, port: Int) -> Bool {
    isWatched && !state.withLock { $0.anonymous.contains("\(host):\(port)") }
  }

  /// Nobody has chosen an identity for this server; it is not asked about again.
  func remainAnonymous(toHost host: String, port: Int) {
    state.withLock { state in
      if state.anonymous.count >= TrustMemory.capacity { state.anonymous.removeAll() }
      state.anonymous.insert("\(host):\(port)")
    }
  }

  func remember(_ verdict: TrustMemory.Verdict, on chain: PresentedChain, in partition: Int) {
    state.withLock { state in
      if verdict == .accepted { state.hasAccepted = true }
      state.memory.remember(verdict, on: chain, in: partition)
    }
  }
}

extension ServerTrustManager {
  /// Whether a subclass chooses the evaluators.
  var runsUserCode: Bool { type(of: self) != ServerTrustManager.self }
}
