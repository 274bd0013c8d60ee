/// The decisions of an ``AuthenticationInterceptor``: who waits, who goes on, when a credential is
/// refreshed. Pure: time is passed in, what waits is opaque, and the owner does what is answered.
///
/// A credential and its version go together: the version grows with every change, so that an answer that
/// was found outside of the owner's lock can be told to be out of date.
package struct AuthenticationFlow<
  Credential: Sendable, Adaptation: Sendable, Retry: Sendable
>: Sendable {
  /// How many refreshes may begin within a time, in seconds.
  package struct Limit: Sendable {
    package let interval: Double
    package let attempts: Int

    package init(interval: Double, attempts: Int) {
      self.interval = interval
      self.attempts = attempts
    }
  }

  /// What the owner found out about a credential: whether it is out of date.
  package struct Finding: Sendable {
    package let version: Int
    package let requiresRefresh: Bool

    package init(version: Int, requiresRefresh: Bool) {
      self.version = version
      self.requiresRefresh = requiresRefresh
    }
  }

  /// All that waited, and what becomes of them: adaptations go on with the credential, retries are sent
  /// again; or all fail.
  package struct Release: Sendable {
    package let adaptations: [Adaptation]
    package let retries: [Retry]
    package let outcome: Result<Credential, any Error>
    /// A credential that was replaced; handed out, so that it is not released under the owner's lock.
    package let former: Credential?
  }

  /// A refresh to be made.
  package struct Refresh: Sendable {
    package let credential: Credential
    /// Names it when it ends.
    package let ticket: Int
  }

  package enum AdaptationStep: Sendable {
    /// Ask the credential whether it is out of date, and come again.
    case ask(Credential, version: Int)
    /// It waits.
    case hold
    /// It waits; refresh.
    case refresh(Refresh)
    case apply(Credential)
    case fail(any Error)
    /// Refreshing is refused, which concerns all that wait.
    case release(Release)
  }

  package enum RetryStep: Sendable {
    /// Send it again at once.
    case retry
    /// It waits.
    case hold
    /// It waits; refresh.
    case refresh(Refresh)
    case fail(any Error)
    /// Refreshing is refused, which concerns all that wait.
    case release(Release)
  }

  /// A refresh that is under way.
  private struct Running {
    let ticket: Int
    /// The version of the credential that is refreshed.
    let version: Int
    /// Whether it was begun before a failure, so that new requests wait for it too.
    let isProactive: Bool
  }

  package private(set) var credential: Credential?
  package private(set) var version = 0
  /// Why the last refresh failed; forgotten with the next adaptation or credential.
  package private(set) var failure: (any Error)?
  private var running: Running?
  private var tickets = 0
  private var adaptations: [Adaptation] = []
  private var retries: [Retry] = []
  private let limit: Limit?
  /// When the refreshes began that may still count.
  private var starts: [Double] = []

  package init(credential: Credential?, limit: Limit?) {
    self.credential = credential
    self.limit = limit
  }

  package var isRefreshing: Bool { running != nil }
  package var waitingCount: Int { adaptations.count + retries.count }

  // MARK: Events

  /// The user sets a credential. Returns the former one, to be released outside of the lock.
  package mutating func replace(with new: Credential?) -> Credential? {
    let former = credential
    credential = new
    version += 1
    failure = nil
    return former
  }

  /// A request is about to be sent, at a time in seconds. Without a finding about the credential as it is
  /// now, the answer may be to bring one.
  package mutating func adapt(
    _ adaptation: Adaptation, knowing finding: Finding?, at time: Double
  ) -> AdaptationStep {
    if running?.isProactive == true {
      adaptations.append(adaptation)
      return .hold
    }
    guard let credential else { return .fail(AuthenticationError.missingCredential) }
    guard let finding, finding.version == version else { return .ask(credential, version: version) }
    // A refresh after a failure does not hold up what is new.
    guard finding.requiresRefresh, running == nil else {
      failure = nil
      return .apply(credential)
    }
    adaptations.append(adaptation)
    switch begin(with: credential, isProactive: true, at: time) {
    case .success(let refresh): return .refresh(refresh)
    case .failure(let refusal): return .release(ended(.failure(refusal)))
    }
  }

  /// A request with the credential of `version` was refused, at a time in seconds.
  package mutating func retry(_ retry: Retry, version: Int, at time: Double) -> RetryStep {
    guard version == self.version, let credential else { return .retry }
    if let failure { return .fail(failure) }
    retries.append(retry)
    guard running == nil else { return .hold }
    switch begin(with: credential, isProactive: false, at: time) {
    case .success(let refresh): return .refresh(refresh)
    case .failure(let refusal): return .release(ended(.failure(refusal)))
    }
  }

  /// A refresh has ended; `nil` if it is not the one that runs.
  ///
  /// A credential that was set meanwhile is newer than the outcome, which is left alone then.
  package mutating func refreshed(_ ticket: Int, _ result: Result<Credential, any Error>) -> Release? {
    guard let running, running.ticket == ticket else { return nil }
    self.running = nil
    guard running.version == version else {
      return ended(credential.map { .success($0) } ?? .failure(AuthenticationError.missingCredential))
    }
    switch result {
    case .success(let new):
      let former = replace(with: new)
      return ended(.success(new), former: former)
    case .failure(let error):
      failure = error
      return ended(.failure(error))
    }
  }

  // MARK: Parts

  private mutating func begin(
    with credential: Credential, isProactive: Bool, at time: Double
  ) -> Result<Refresh, AuthenticationError> {
    if let limit {
      starts.removeAll { !(time - $0 <= limit.interval) }
      guard starts.count < limit.attempts else {
        failure = AuthenticationError.excessiveRefresh
        return .failure(.excessiveRefresh)
      }
      starts.append(time)
    }
    tickets += 1
    running = Running(ticket: tickets, version: version, isProactive: isProactive)
    return .success(Refresh(credential: credential, ticket: tickets))
  }

  private mutating func ended(
    _ outcome: Result<Credential, any Error>, former: Credential? = nil
  ) -> Release {
    defer {
      adaptations = []
      retries = []
    }
    return Release(adaptations: adaptations, retries: retries, outcome: outcome, former: former)
  }
}
