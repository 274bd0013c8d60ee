/// The decisions of an ``AuthenticationInterceptor``: which requests wait, which continue, and when a credential is
/// refreshed. It has no I/O: the time is a parameter, and the owner performs the returned steps.
///
/// Each change of the credential increments the version. A result that the owner obtained outside of its lock is
/// ignored if its version is old.
package struct AuthenticationFlow<
  Credential: Sendable, Adaptation: Sendable, Retry: Sendable
>: Sendable {
  /// The maximum number of refreshes in an interval, in seconds.
  package struct Limit: Sendable {
    package let interval: Double
    package let attempts: Int

    package init(interval: Double, attempts: Int) {
      self.interval = interval
      self.attempts = attempts
    }
  }

  /// Whether the credential of a version requires a refresh; the owner calls the user's code for it outside of the
  /// lock.
  package struct Finding: Sendable {
    package let version: Int
    package let requiresRefresh: Bool

    package init(version: Int, requiresRefresh: Bool) {
      self.version = version
      self.requiresRefresh = requiresRefresh
    }
  }

  /// The objects that a change has replaced; returned, so that they are not released under the owner's lock.
  package struct Former: Sendable {
    package var credential: Credential?
    package var failure: (any Error)?
  }

  /// All waiting requests and the outcome for them. With a credential, adaptations apply it and retries are sent
  /// again; with an error, all fail.
  package struct Release: Sendable {
    package let adaptations: [Adaptation]
    package let retries: [Retry]
    package let outcome: Result<Credential, any Error>
    package let former: Former
  }

  /// A refresh to start.
  package struct Refresh: Sendable {
    package let credential: Credential
    /// Identifies the refresh when it ends.
    package let ticket: Int
  }

  package enum AdaptationStep: Sendable {
    /// Find out whether the credential requires a refresh, and call `adapt` again.
    case ask(Credential, version: Int)
    /// The adaptation waits.
    case hold
    /// The adaptation waits; start the refresh.
    case refresh(Refresh)
    case apply(Credential, Former)
    case fail(any Error)
    /// The limit is reached; all waiting requests fail.
    case release(Release)
  }

  package enum RetryStep: Sendable {
    /// Send it again at once.
    case retry
    /// The retry waits.
    case hold
    /// The retry waits; start the refresh.
    case refresh(Refresh)
    case fail(any Error)
    /// The limit is reached; all waiting requests fail.
    case release(Release)
  }

  /// The running refresh.
  private struct Running {
    let ticket: Int
    /// The version of the credential that is refreshed.
    let version: Int
    /// Whether the refresh was started before any failure, so that new requests wait for it too.
    let isProactive: Bool
  }

  package private(set) var credential: Credential?
  package private(set) var version = 0
  /// The error of the last refresh; cleared by the next adaptation or credential.
  package private(set) var failure: (any Error)?
  private var running: Running?
  private var tickets = 0
  private var adaptations: [Adaptation] = []
  private var retries: [Retry] = []
  private let limit: Limit?
  /// The start times of the refreshes within the limit's interval.
  private var starts: [Double] = []

  package init(credential: Credential?, limit: Limit?) {
    self.credential = credential
    self.limit = limit
  }

  package var isRefreshing: Bool { running != nil }
  package var waitingCount: Int { adaptations.count + retries.count }

  // MARK: Events

  /// Sets the user's credential. Returns what it replaces, to be released outside of the lock.
  package mutating func replace(with new: Credential?) -> Former {
    let former = Former(credential: credential, failure: failure.take())
    credential = new
    version += 1
    return former
  }

  /// Adapts a request, at a time in seconds. Without a result about the current credential, the step may be to obtain
  /// one.
  package mutating func adapt(
    _ adaptation: Adaptation, knowing finding: Finding?, at time: Double
  ) -> AdaptationStep {
    // The result of a refresh of an earlier credential is discarded, so no new request waits for it.
    if let running, running.isProactive, running.version == version {
      adaptations.append(adaptation)
      return .hold
    }
    guard let credential else { return .fail(AuthenticationError.missingCredential) }
    guard let finding, finding.version == version else { return .ask(credential, version: version) }
    // A refresh after a failure does not delay new requests.
    guard finding.requiresRefresh, running == nil else {
      return .apply(credential, Former(failure: failure.take()))
    }
    adaptations.append(adaptation)
    switch begin(with: credential, isProactive: true, at: time) {
    case .success(let refresh): return .refresh(refresh)
    case .failure(let refusal): return .release(failed(refusal))
    }
  }

  /// Decides about a request that was refused with the credential of `version`, at a time in seconds.
  package mutating func retry(_ retry: Retry, version: Int, at time: Double) -> RetryStep {
    guard version == self.version, let credential else { return .retry }
    if let failure { return .fail(failure) }
    retries.append(retry)
    guard running == nil else { return .hold }
    switch begin(with: credential, isProactive: false, at: time) {
    case .success(let refresh): return .refresh(refresh)
    case .failure(let refusal): return .release(failed(refusal))
    }
  }

  /// Ends a refresh; returns `nil` if it is not the running one.
  ///
  /// If a credential was set during the refresh, the result of the refresh is discarded.
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
      return failed(error)
    }
  }

  // MARK: Parts

  private mutating func begin(
    with credential: Credential, isProactive: Bool, at time: Double
  ) -> Result<Refresh, AuthenticationError> {
    if let limit {
      starts.removeAll { !(time - $0 <= limit.interval) }
      guard starts.count < limit.attempts else {
        return .failure(.excessiveRefresh)
      }
      starts.append(time)
    }
    tickets += 1
    running = Running(ticket: tickets, version: version, isProactive: isProactive)
    return .success(Refresh(credential: credential, ticket: tickets))
  }

  private mutating func failed(_ error: any Error) -> Release {
    let former = Former(failure: failure)
    failure = error
    return ended(.failure(error), former: former)
  }

  private mutating func ended(
    _ outcome: Result<Credential, any Error>, former: Former = Former()
  ) -> Release {
    defer {
      adaptations = []
      retries = []
    }
    return Release(adaptations: adaptations, retries: retries, outcome: outcome, former: former)
  }
}
