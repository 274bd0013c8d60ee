public import Foundation
import FoundationNetworking
import Synchronization

/// Holds requests that failed because the machine was offline, and retries them when a network is available.
///
/// One wait serves all requests that fail during it. If a network becomes available, all are retried. If the wait
/// times out, all end with their errors, and the next failure starts another wait. A network is a default route over
/// an interface that is up; no packets are sent to test it.
///
/// A `POST` that was redirected to a `GET` is not retried if the `GET` fails, because the server may have performed it.
///
/// ```swift
/// let session = Session(interceptor: .offlineRetrier(maximumWait: .seconds(30)))
/// ```
///
/// If the retrier is released, the wait ends, and held requests end with their errors. Upstream's initialiser with an
/// `NWPathMonitor` takes a ``NetworkReachabilityManager`` here, because Linux has no `NWPathMonitor`.
public final class OfflineRetrier: RequestInterceptor {
  /// The default duration of a wait: 5 seconds.
  public static let defaultWait = DispatchTimeInterval.seconds(5)
  /// The codes of `URLError` that mean that the machine is offline: `notConnectedToInternet`.
  public static let defaultURLErrorOfflineCodes: Set<URLError.Code> = [.notConnectedToInternet]
  /// Whether an error, or the one below it in an `AFError`, is a `URLError` with one of
  /// ``defaultURLErrorOfflineCodes``.
  public static let defaultIsOfflineError: @Sendable (any Error) -> Bool = { error in
    if let error = error as? URLError { return defaultURLErrorOfflineCodes.contains(error.code) }
    var next: (any Error)? = (error as? AFError)?.underlyingError
    while let error = next {
      if let error = error as? URLError { return defaultURLErrorOfflineCodes.contains(error.code) }
      next = (error as? AFError)?.underlyingError
    }
    return false
  }

  /// A request at one of its attempts.
  fileprivate struct Attempt: Sendable {
    weak let request: Request?
    let retryCount: Int
  }

  fileprivate struct State {
    var held: [(attempt: Attempt, completion: @Sendable (RetryResult) -> Void)] = []
    /// Attempts whose wait timed out. The retrier is called again for each handler and must not wait again.
    var givenUp: [ObjectIdentifier: Attempt] = [:]
    var monitor: (any PathMonitor)?
    /// The number of the current wait; no wait runs while no request is held.
    var wait = 0
  }

  let makeMonitor: @Sendable () -> any PathMonitor
  private let isOfflineError: @Sendable (any Error) -> Bool
  /// The requests that wait for a network, for attempts and the queue of the monitor.
  private let state = Mutex(State())

  /// Makes a retrier for which any interface is sufficient.
  ///
  /// - Parameters:
  ///   - maximumWait:    The duration of a wait, from the first held request.
  ///   - isOfflineError: Whether an error means that the machine is offline; called on Swift's pool. The method of the
  ///     request counts only after a redirect. Accept only errors that occur before a request is sent, or a `POST` may
  ///     be performed twice.
  @preconcurrency
  public convenience init(
    maximumWait: DispatchTimeInterval = OfflineRetrier.defaultWait,
    isOfflineError: @escaping @Sendable (any Error) -> Bool = OfflineRetrier.defaultIsOfflineError
  ) {
    self.init(isOfflineError: isOfflineError) {
      NetworkPathMonitor(maximumWait: maximumWait) { _ in true }
    }
  }

  /// Makes a retrier that requires an interface of one type. For the other parameters, see
  /// ``init(maximumWait:isOfflineError:)``.
  @preconcurrency
  public convenience init(
    requiredInterfaceType: NetworkInterfaceType,
    maximumWait: DispatchTimeInterval = OfflineRetrier.defaultWait,
    isOfflineError: @escaping @Sendable (any Error) -> Bool = OfflineRetrier.defaultIsOfflineError
  ) {
    self.init(isOfflineError: isOfflineError) {
      NetworkPathMonitor(maximumWait: maximumWait) { $0 == requiredInterfaceType }
    }
  }

  /// Makes a retrier that ignores interfaces of some types. For the other parameters, see
  /// ``init(maximumWait:isOfflineError:)``.
  @preconcurrency
  public convenience init(
    prohibitedInterfaceTypes: [NetworkInterfaceType],
    maximumWait: DispatchTimeInterval = OfflineRetrier.defaultWait,
    isOfflineError: @escaping @Sendable (any Error) -> Bool = OfflineRetrier.defaultIsOfflineError
  ) {
    self.init(isOfflineError: isOfflineError) {
      NetworkPathMonitor(maximumWait: maximumWait) { !prohibitedInterfaceTypes.contains($0) }
    }
  }

  /// Makes a retrier that waits until a manager reports that its host is reachable, for example in a network without
  /// a default route.
  ///
  /// ```swift
  /// let retrier = OfflineRetrier(
  ///   monitor: NetworkReachabilityManager(host: "10.0.0.7"), maximumWait: .seconds(30))
  /// ```
  ///
  /// - Parameters:
  ///   - monitor:        Evaluated for each wait, which replaces and then stops the manager's listener. Therefore make
  ///     a separate manager for the retrier. With `nil` requests fail without a wait.
  ///   - maximumWait:    The duration of a wait, from the first held request.
  ///   - isOfflineError: Whether an error means that the machine is offline; called on Swift's pool.
  @preconcurrency
  public convenience init(
    monitor: @escaping @Sendable @autoclosure () -> NetworkReachabilityManager?,
    maximumWait: DispatchTimeInterval = OfflineRetrier.defaultWait,
    isOfflineError: @escaping @Sendable (any Error) -> Bool = OfflineRetrier.defaultIsOfflineError
  ) {
    self.init(isOfflineError: isOfflineError) {
      ManagedPathMonitor(monitor(), maximumWait: maximumWait)
    }
  }

  /// Makes a retrier with any monitor; tests use a scripted one.
  package init(
    isOfflineError: @escaping @Sendable (any Error) -> Bool = OfflineRetrier.defaultIsOfflineError,
    makeMonitor: @escaping @Sendable () -> any PathMonitor
  ) {
    self.makeMonitor = makeMonitor
    self.isOfflineError = isOfflineError
  }

  deinit {
    // The release of the held completions counts as "do not retry".
    state.withLock { $0.monitor }?.stop()
  }

  /// Holds a request whose error means that the machine is offline; does not retry others, nor a request that a server
  /// may have performed before its redirect.
  @preconcurrency
  public func retry(
    _ request: Request, for session: Session, dueTo error: any Error,
    completion: @escaping @Sendable (RetryResult) -> Void
  ) {
    guard isOfflineError(error), !request.mayHaveBeenPerformed else { return completion(.doNotRetry) }
    let attempt = Attempt(request: request, retryCount: request.retryCount)
    let (isGivenUp, begun) = state.withLock { state -> (Bool, Int?) in
      guard !state.hasGivenUp(attempt) else { return (true, nil) }
      state.held.append((attempt, completion))
      guard state.held.count == 1 else { return (false, nil) }
      state.wait += 1
      return (false, state.wait)
    }
    if isGivenUp { return completion(.doNotRetry) }
    guard let begun else { return }
    let monitor = makeMonitor()
    state.withLock { $0.monitor = monitor }
    monitor.start { [weak self] result in self?.ended(begun, result) }
  }

  private func ended(_ wait: Int, _ result: PathResult) {
    typealias Held = [@Sendable (RetryResult) -> Void]
    let (held, monitor, _) = state.withLock { state -> (Held, (any PathMonitor)?, [Request]) in
      guard state.wait == wait else { return ([], nil, []) }
      // Released outside the lock, because these may be the last references.
      let requests = state.requests
      state.givenUp = state.givenUp.filter { $0.value.request != nil }
      if result == .timeout {
        for (attempt, _) in state.held {
          attempt.request.map { state.givenUp[ObjectIdentifier($0)] = attempt }
        }
      }
      defer {
        state.held = []
        state.monitor = nil
      }
      return (state.held.map(\.completion), state.monitor, requests)
    }
    monitor?.stop()
    for completion in held { completion(result == .pathAvailable ? .retry : .doNotRetry) }
  }
}

extension OfflineRetrier.State {
  /// The requests of all attempts that still exist.
  fileprivate var requests: [Request] {
    givenUp.values.compactMap(\.request) + held.compactMap(\.attempt.request)
  }

  fileprivate func hasGivenUp(_ attempt: OfflineRetrier.Attempt) -> Bool {
    guard let request = attempt.request, let last = givenUp[ObjectIdentifier(request)] else { return false }
    return last.request === request && last.retryCount == attempt.retryCount
  }
}

extension RequestInterceptor where Self == OfflineRetrier {
  /// Waits up to five seconds for a network, over any interface.
  public static var offlineRetrier: OfflineRetrier { OfflineRetrier() }

  /// Waits for a network, over any interface.
  @preconcurrency
  public static func offlineRetrier(
    maximumWait: DispatchTimeInterval = OfflineRetrier.defaultWait,
    isOfflineError: @escaping @Sendable (any Error) -> Bool = OfflineRetrier.defaultIsOfflineError
  ) -> OfflineRetrier {
    OfflineRetrier(maximumWait: maximumWait, isOfflineError: isOfflineError)
  }

  /// Waits until a manager reports that its host is reachable.
  @preconcurrency
  public static func offlineRetrier(
    monitor: @escaping @Sendable @autoclosure () -> NetworkReachabilityManager?,
    maximumWait: DispatchTimeInterval = OfflineRetrier.defaultWait,
    isOfflineError: @escaping @Sendable (any Error) -> Bool = OfflineRetrier.defaultIsOfflineError
  ) -> OfflineRetrier {
    OfflineRetrier(monitor: monitor(), maximumWait: maximumWait, isOfflineError: isOfflineError)
  }

  /// Waits for a network over interfaces of one type.
  @preconcurrency
  public static func offlineRetrier(
    requiredInterfaceType: NetworkInterfaceType,
    maximumWait: DispatchTimeInterval = OfflineRetrier.defaultWait,
    isOfflineError: @escaping @Sendable (any Error) -> Bool = OfflineRetrier.defaultIsOfflineError
  ) -> OfflineRetrier {
    OfflineRetrier(
      requiredInterfaceType: requiredInterfaceType, maximumWait: maximumWait, isOfflineError: isOfflineError)
  }

  /// Waits for a network over interfaces of other types than these.
  @preconcurrency
  public static func offlineRetrier(
    prohibitedInterfaceTypes: [NetworkInterfaceType],
    maximumWait: DispatchTimeInterval = OfflineRetrier.defaultWait,
    isOfflineError: @escaping @Sendable (any Error) -> Bool = OfflineRetrier.defaultIsOfflineError
  ) -> OfflineRetrier {
    OfflineRetrier(
      prohibitedInterfaceTypes: prohibitedInterfaceTypes, maximumWait: maximumWait,
      isOfflineError: isOfflineError)
  }
}
