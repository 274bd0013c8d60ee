import Foundation
import HTTPSystem
import HTTPWire
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
