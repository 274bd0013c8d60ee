import Foundation
import HTTPWire
import Synchronization

/// The delegate and the monitors of a session, as far as they see the evaluation of servers. Read live, because a
/// delegate may change its mind about the events that it wants.
protocol TrustObservers: AnyObject, Sendable {
  /// Whether the session has a delegate or a monitor that could see servers.
  var mayObserveTrust: Bool { get }
  /// Whether the delegate wants to answer challenges about servers.
  var delegateAnswersTrust: Bool { get }
  /// Whether the delegate or a monitor sees each server before the evaluators do.
  var observesTrust: Bool { get }
}

/// Decides about the servers of a session, by evaluators that can run in a handshake, and by the verdicts of earlier
/// evaluations outside of one.
final class TrustService: ServerEvaluator {
  let manager: ServerTrustManager?
  private let observers: any TrustObservers

  private struct State {
    var memory = TrustMemory()
    /// The servers to which no client certificate is presented.
    var anonymous: Set<String> = []
    /// Whether a server was accepted that the trust store on its own might reject. The connections to that server may
    /// be used from then on.
    var hasAccepted = false
    /// The hosts of servers that a delegate has accepted.
    var acceptedByDelegate: Set<String> = []
    /// Whether there were more of these hosts than are noted. Then all hosts count as such.
    var hasOverflowed = false

    mutating func noteAcceptanceByDelegate(of host: String) {
      guard acceptedByDelegate.count < TrustMemory.capacity || acceptedByDelegate.contains(host) else {
        hasOverflowed = true
        return
      }
      acceptedByDelegate.insert(host)
    }
  }

  /// The results of slow evaluators and the servers that get no client certificate, for the loop and attempts.
  private let state = Mutex(State())

  /// Returns `nil` if there is neither a manager nor an observer, so that the trust store alone decides.
  init?(manager: ServerTrustManager?, observers: any TrustObservers) {
    guard manager != nil || observers.mayObserveTrust else { return nil }
    self.manager = manager
    self.observers = observers
  }

  /// Whether the delegate or a monitor sees each server before the evaluators do.
  var isObserved: Bool { observers.observesTrust }

  /// Whether connections may be used as in any session. A server that a delegate has accepted remains accepted after
  /// the delegate stops answering challenges.
  var usesDefaultEvaluation: Bool {
    manager == nil && !observers.delegateAnswersTrust && !state.withLock { $0.hasAccepted }
  }

  func evaluate(_ chain: PresentedChain, for profile: ConnectionProfile) -> TrustVerdict {
    if let verdict = state.withLock({ $0.memory.verdict(on: chain, in: profile.partition) }) {
      return verdict == .usual ? .usual : .accept
    }
    guard !isObserved, manager?.runsUserCode != true else { return .ask }
    do {
      guard let evaluator = try manager?.serverTrustEvaluator(forHost: chain.host) else { return .usual }
      guard let instant = evaluator as? any InstantTrustEvaluator, instant.isInstant else { return .ask }
      try instant.evaluate(ServerTrust(chain, options: profile.options), forHost: chain.host)
      return .accept
    } catch {
      return .refuse(error)
    }
  }

  func requestsStapledResponse(ofHost host: String) -> Bool {
    guard let manager else { return false }
    // A subclass chooses with the caller's code, which does not run on this thread.
    guard !manager.runsUserCode else { return true }
    let evaluator = try? manager.serverTrustEvaluator(forHost: host)
    guard let evaluator else { return false }
    return (evaluator as? any InstantTrustEvaluator)?.requestsStapledResponse ?? true
  }

  /// Runs the evaluators and returns the verdict to remember. The evaluators run on a thread of Dispatch, because an
  /// evaluator that blocks would take one of the few threads of Swift's pool. The wait ends when the task is cancelled
  /// and at `deadline`.
  func evaluated(
    _ trust: ServerTrust, forHost host: String, _ deadline: MonotonicTime?
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

  func choosesIdentity(forHost host: String, port: Int) -> Bool {
    isObserved && !state.withLock { $0.anonymous.contains("\(host):\(port)") }
  }

  /// Stops asking for an identity for this server, because the delegate has chosen none.
  func remainAnonymous(toHost host: String, port: Int) {
    state.withLock { state in
      if state.anonymous.count >= TrustMemory.capacity { state.anonymous.removeAll() }
      state.anonymous.insert("\(host):\(port)")
    }
  }

  func remember(_ verdict: TrustMemory.Verdict, on chain: PresentedChain, in partition: Int) {
    state.withLock { state in
      if verdict != .usual { state.hasAccepted = true }
      if verdict == .acceptedByDelegate { state.noteAcceptanceByDelegate(of: chain.host) }
      state.memory.remember(verdict, on: chain, in: partition)
    }
  }
}

extension ServerTrustManager {
  /// Whether a subclass chooses the evaluators.
  var runsUserCode: Bool { type(of: self) != ServerTrustManager.self }
}

extension TrustService {
  /// Whether an accepted server of this host is authenticated by its evaluator.
  func authenticates(_ host: String) -> Bool {
    guard let evaluator = try? manager?.serverTrustEvaluator(forHost: host) else { return true }
    return (evaluator as? any InstantTrustEvaluator)?.authenticates ?? true
  }

  /// Whether a delegate has accepted a server of this host. It need not have verified the name, and connections to that
  /// server are used by later requests.
  func wasAcceptedByDelegate(_ host: String) -> Bool {
    state.withLock { $0.hasOverflowed || $0.acceptedByDelegate.contains(host) }
  }
}
