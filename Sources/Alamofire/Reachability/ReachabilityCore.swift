import Foundation
import HTTPWire
import Synchronization

/// To where the way is looked for.
package enum ReachabilityTarget: Sendable {
  case anywhere
  case host(String)
}

/// The inside of a ``NetworkReachabilityManager``, without what a subclass may change.
final class ReachabilityCore: Sendable {
  typealias Status = NetworkReachabilityManager.NetworkReachabilityStatus
  typealias Listener = NetworkReachabilityManager.Listener

  private struct Listening {
    var watch: any NetworkWatch
    var queue: DispatchQueue
    var listener: Listener
    var last: Status?
  }

  /// How far the name of a host has been looked up.
  private enum Lookup: Equatable {
    case none
    case running
    /// Something has changed since it began: it will be done again.
    case outdated
  }

  private struct State {
    var listening: Listening?
    /// Which listener the one at hand is; what was sent for an earlier one does not arrive.
    var generation = 0
    /// Those that the last look-up found; `nil` before there was one.
    var addresses: [IPAddress]?
    var lookup = Lookup.none
  }

  private let target: ReachabilityTarget
  private let source: any NetworkSource
  private let queue: DispatchQueue
  /// A literal address and `localhost` need no look-up.
  private let isLiteral: Bool
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

  /// What is known now; starts to look the name up if nobody has.
  func currentFlags() -> NetworkReachabilityFlags? {
    guard let flags = flags() else {
      lookUp(again: false)
      return nil
    }
    return flags
  }

  /// What is known now; `nil` without the addresses of the host, or when the system does not tell.
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
    // Watched before the first look, so that no change falls in between.
    guard let watch = source.watch(on: queue, { [weak self] in self?.changed() }) else { return false }
    let replaced = state.withLock { state in
      state.generation += 1
      defer {
        state.listening = Listening(watch: watch, queue: listenerQueue, listener: listener, last: nil)
      }
      return state.listening
    }
    // Two threads that start at once: one of them wins.
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

  /// On `queue`: something may be different now.
  private func changed() {
    if !isLiteral {
      // What the name leads to may have changed with the network.
      lookUp(again: true)
      guard state.withLock({ $0.addresses != nil }) else { return }
    }
    notify()
  }

  /// On `queue`: tells the listener if it does not know yet.
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

  /// Looks the name up, away from the caller; one look-up at a time.
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
      // Names that cannot be looked up for a while keep their addresses: the routes tell the rest.
      if !addresses.isEmpty || state.addresses == nil { state.addresses = addresses }
      defer { state.lookup = .none }
      return state.lookup == .outdated
    }
    notify()
    if isOutdated { lookUp(again: true) }
  }
}
