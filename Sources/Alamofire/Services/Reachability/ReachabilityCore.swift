import Foundation
package import HTTPSystem
package import HTTPWire
import Synchronization

/// The destination whose reachability is tested.
package enum ReachabilityTarget: Sendable {
  case anywhere
  case host(String)
}

/// The implementation of a ``NetworkReachabilityManager``, without the members that a subclass can override.
final class ReachabilityCore: Sendable {
  typealias Status = NetworkReachabilityManager.NetworkReachabilityStatus
  typealias Listener = NetworkReachabilityManager.Listener

  private struct Listening {
    var watch: any NetworkWatch
    var queue: DispatchQueue
    var listener: Listener
    var last: Status?
  }

  /// The state of the look-up of the host's name.
  private enum Lookup: Equatable {
    case none
    case running
    /// The network has changed since the look-up began, so it will be repeated.
    case outdated
  }

  private struct State {
    var listening: Listening?
    /// The number of the current listener; notifications for earlier ones are dropped.
    var generation = 0
    /// The addresses of the last look-up; `nil` before the first one.
    var addresses: [IPAddress]?
    var lookup = Lookup.none
  }

  private let target: ReachabilityTarget
  private let source: any NetworkSource
  private let queue: DispatchQueue
  /// Whether the host is a literal address or `localhost`, which need no look-up.
  private let isLiteral: Bool
  /// The listener, the status and the addresses of the host, for users and the queues.
  private let state: Mutex<State>

  init(_ target: ReachabilityTarget, _ source: any NetworkSource, queue: DispatchQueue) {
    self.target = target
    self.source = source
    self.queue = queue
    var state = State()
    switch target {
    case .anywhere: isLiteral = true
    case .host(let host):
      let addresses = IPAddress.loopback(of: host) ?? source.addresses(of: host, literalsOnly: true)
      isLiteral = !addresses.isEmpty
      if isLiteral { state.addresses = addresses }
    }
    self.state = Mutex(state)
  }

  /// Returns the current flags. If the host has no addresses yet, it starts a look-up and returns `nil`.
  func currentFlags() -> NetworkReachabilityFlags? {
    guard let flags = flags() else {
      lookUp(again: false)
      return nil
    }
    return flags
  }

  /// Returns the current flags; `nil` without the addresses of the host, or if the system does not report its state.
  private func flags() -> NetworkReachabilityFlags? {
    switch target {
    case .anywhere: return source.state().map { NetworkReachabilityFlags($0.pathToAnywhere()) }
    case .host:
      guard let addresses = state.withLock({ $0.addresses }), let network = source.state() else { return nil }
      return NetworkReachabilityFlags(network.path(to: addresses.map(source.route)))
    }
  }

  func start(_ listenerQueue: DispatchQueue, _ listener: @escaping Listener) -> Bool {
    stop()
    // The watch starts before the first evaluation, so that no change is missed.
    guard let watch = source.watch(on: queue, { [weak self] in self?.changed() }) else { return false }
    let replaced = state.withLock { state in
      state.generation += 1
      defer {
        state.listening = Listening(watch: watch, queue: listenerQueue, listener: listener, last: nil)
      }
      return state.listening
    }
    // Two threads may start at the same time; the later listener replaces the earlier one.
    replaced?.watch.stop()
    queue.async { [weak self] in self?.changed() }
    return true
  }

  func stop() {
    let stopped = state.withLock { state in
      state.generation += 1
      defer { state.listening = nil }
      return state.listening
    }
    stopped?.watch.stop()
  }

  /// Evaluates a possible change; on `queue`.
  private func changed() {
    if !isLiteral {
      // The addresses of the name may have changed with the network.
      lookUp(again: true)
      guard state.withLock({ $0.addresses != nil }) else { return }
    }
    notify()
  }

  /// Notifies the listener if the status has changed; on `queue`.
  private func notify() {
    let status = Status(flags())
    let told = state.withLock { state -> (queue: DispatchQueue, listener: Listener, generation: Int)? in
      guard let listening = state.listening, listening.last != status else { return nil }
      state.listening?.last = status
      return (listening.queue, listening.listener, state.generation)
    }
    guard let told else { return }
    told.queue.async { [weak self] in
      guard let self, state.withLock({ $0.generation == told.generation }) else { return }
      told.listener(status)
    }
  }

  /// Looks the name up in the background; one look-up at a time.
  private func lookUp(again: Bool) {
    guard case .host(let host) = target, !isLiteral else { return }
    let begins = state.withLock { state in
      switch state.lookup {
      case .none:
        guard again || state.addresses == nil else { return false }
        state.lookup = .running
        return true
      case .running, .outdated:
        if again { state.lookup = .outdated }
        return false
      }
    }
    guard begins else { return }
    let source = source
    DispatchQueue.global(qos: .utility).async { [weak self] in
      let addresses = source.addresses(of: host, literalsOnly: false)
      guard let self else { return }
      queue.async { [weak self] in self?.lookedUp(addresses) }
    }
  }

  private func lookedUp(_ addresses: [IPAddress]) {
    let isOutdated = state.withLock { state in
      // If a later look-up fails, the known addresses are retained, because routes to them can still be evaluated.
      if !addresses.isEmpty || state.addresses == nil { state.addresses = addresses }
      defer { state.lookup = .none }
      return state.lookup == .outdated
    }
    notify()
    if isOutdated { lookUp(again: true) }
  }
}

/// The wait of an ``OfflineRetrier`` for a network; used once.
package protocol PathMonitor: AnyObject, Sendable {
  /// Calls `onResult` once, on any thread, unless it is stopped before.
  func start(onResult: @escaping @Sendable (PathResult) -> Void)
  func stop()
}

/// The result of a wait for a network.
package enum PathResult: Sendable, Equatable {
  case pathAvailable
  case timeout
}

/// Waits until an allowed network is available, with a timeout.
package final class NetworkPathMonitor: PathMonitor {
  private struct State {
    var watch: (any NetworkWatch)?
    var onResult: (@Sendable (PathResult) -> Void)?
    var timer: (any DispatchSourceTimer)?
  }

  private let source: any NetworkSource
  let maximumWait: DispatchTimeInterval
  let isThere: @Sendable (NetworkState) -> Bool
  /// The queue of changes and of the timeout. Serial, so that changes come in their order.
  private let queue = DispatchQueue(label: "org.alamofire.offlineRetrier.monitor")
  /// The wait for a network, for attempts and the queue of the monitor.
  private let state = Mutex(State())

  /// Makes a wait for a default route over an allowed interface.
  package convenience init(
    source: any NetworkSource = SystemNetwork(), maximumWait: DispatchTimeInterval,
    isAllowed: @escaping @Sendable (NetworkInterfaceType) -> Bool
  ) {
    self.init(
      until: { network in network.pathToAnywhere { isAllowed(NetworkInterfaceType($0)) } != .unreachable },
      source: source, maximumWait: maximumWait)
  }

  /// Makes a wait for a network that passes `isThere`.
  package init(
    until isThere: @escaping @Sendable (NetworkState) -> Bool, source: any NetworkSource,
    maximumWait: DispatchTimeInterval
  ) {
    self.source = source
    self.maximumWait = maximumWait
    self.isThere = isThere
  }

  deinit { stop() }

  package func start(onResult: @escaping @Sendable (PathResult) -> Void) {
    state.withLock { $0.onResult = onResult }
    let watch = source.watch(on: queue) { [weak self] in self?.look() }
    let isObserved = state.withLock { state in
      guard state.onResult != nil else { return false }
      state.watch = watch
      state.timer = DispatchSource.timer(at: .now() + maximumWait, on: queue) { [weak self] in
        self?.end(.timeout)
      }
      return true
    }
    if !isObserved { watch?.stop() }
    queue.async { [weak self] in self?.look() }
  }

  package func stop() { _ = taken() }

  private func look() {
    if let network = source.state(), isThere(network) { end(.pathAvailable) }
  }

  private func end(_ result: PathResult) { taken()?(result) }

  private func taken() -> (@Sendable (PathResult) -> Void)? {
    let taken = state.withLock { replace(&$0, with: State()) }
    taken.watch?.stop()
    taken.timer?.cancel()
    return taken.onResult
  }
}

/// Waits until a manager reports that its target is reachable, with a timeout.
final class ManagedPathMonitor: PathMonitor {
  private struct State {
    var onResult: (@Sendable (PathResult) -> Void)?
    var timer: (any DispatchSourceTimer)?
  }

  private let manager: NetworkReachabilityManager?
  let maximumWait: DispatchTimeInterval
  /// The wait for a network, for attempts and the queue of the monitor.
  private let state = Mutex(State())

  /// Makes a monitor that waits for a manager.
  ///
  /// - Parameter manager: `nil`, if the system does not report the state of its network, ends the wait at once.
  init(_ manager: NetworkReachabilityManager?, maximumWait: DispatchTimeInterval) {
    self.manager = manager
    self.maximumWait = maximumWait
  }

  deinit { stop() }

  func start(onResult: @escaping @Sendable (PathResult) -> Void) {
    state.withLock { $0.onResult = onResult }
    guard let manager else { return end(.timeout) }
    let queue = manager.reachabilityQueue
    let isListening = manager.startListening(onQueue: queue) { [weak self] status in
      if case .reachable = status { self?.end(.pathAvailable) }
    }
    guard isListening else { return end(.timeout) }
    state.withLock { state in
      guard state.onResult != nil else { return }
      state.timer = DispatchSource.timer(at: .now() + maximumWait, on: queue) { [weak self] in
        self?.end(.timeout)
      }
    }
  }

  func stop() { _ = taken() }

  private func end(_ result: PathResult) { taken()?(result) }

  private func taken() -> (@Sendable (PathResult) -> Void)? {
    let taken = state.withLock { replace(&$0, with: State()) }
    taken.timer?.cancel()
    if taken.onResult != nil { manager?.stopListening() }
    return taken.onResult
  }
}

extension NetworkPathMonitor {
  /// Waits until there is a path to a host, which may be a proxy. The deadline ends the wait, and so does the
  /// cancellation of the task.
  static func path(
    to host: String, isProxy: Bool, in source: any NetworkSource, before deadline: MonotonicTime?
  ) async -> PathResult {
    let wait = deadline.map { MonotonicTime.now.duration(to: $0) }
    let monitor = NetworkPathMonitor(
      until: { $0.isConnected(to: host, isProxy: isProxy, by: source) }, source: source,
      maximumWait: DispatchTimeInterval(wait))
    let result = await SingleCompletion.answer(whenForgotten: PathResult.timeout, whenCancelled: .timeout) {
      completion in monitor.start { completion($0) }
    }
    monitor.stop()
    return result
  }
}

extension DispatchTimeInterval {
  /// Makes an interval for a duration; `.never` without one.
  fileprivate init(_ duration: Duration?) {
    guard let duration else {
      self = .never
      return
    }
    self = .milliseconds(Int(duration.wholeMilliseconds))
  }
}
