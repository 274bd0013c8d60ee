import Alamofire
import Foundation
import HTTPSystem
import HTTPWire
import Synchronization

/// A network that the test switches on and off.
final class ScriptedNetwork: NetworkSource {
  private struct State {
    var network: NetworkState?
    var hosts: [String: [IPAddress]] = [:]
    var routes: [IPAddress: RouteAnswer] = [:]
    var watches: [ObjectIdentifier: Watch] = [:]
    var refusesWatches = false
  }

  private let script = Mutex(State(network: ScriptedNetwork.online()))
  /// The names that were resolved.
  let lookups = Recorder<String>()
  let gate: DispatchSemaphore?
  let isAvailable: Bool

  init(isAvailable: Bool = true, holdsLookups: Bool = false) {
    self.isAvailable = isAvailable
    gate = holdsLookups ? DispatchSemaphore(value: 0) : nil
  }

  static func online(over kind: NetworkLinkKind = .wired) -> NetworkState {
    NetworkState(
      links: [.init(index: 2, name: "net0", kind: kind)], addresses: [.init(link: 2, family: .v4)],
      routes: [.init(family: .v4, link: 2)])
  }

  static let offline = NetworkState(links: [.init(index: 1, name: "lo", kind: .loopback)])

  /// Sets the state of the network, and notifies all observers.
  func become(_ network: NetworkState?) {
    let watches = script.withLock { state in
      state.network = network
      return Array(state.watches.values)
    }
    for watch in watches { watch.tell() }
  }

  func set(_ host: String, _ addresses: [IPAddress]) {
    script.withLock { $0.hosts[host] = addresses }
  }

  func refuseWatches() { script.withLock { $0.refusesWatches = true } }

  var watchCount: Int { script.withLock { $0.watches.count } }

  func state() -> NetworkState? { script.withLock { $0.network } }

  /// Sets the route to an address. Other addresses have a route over the first interface.
  func set(_ address: IPAddress, _ route: RouteAnswer) { script.withLock { $0.routes[address] = route } }

  func route(to address: IPAddress) -> RouteAnswer {
    script.withLock { $0.routes[address] ?? .link(2, hasGateway: true) }
  }

  func addresses(of host: String, literalsOnly: Bool) -> [IPAddress] {
    if literalsOnly { return host == "192.0.2.1" ? [Self.address].compactMap { $0 } : [] }
    lookups.add(host)
    gate?.wait()
    return script.withLock { $0.hosts[host] ?? [] }
  }

  static let address = IPAddress(.v4, bytes: [192, 0, 2, 1])

  func watch(on queue: DispatchQueue, _ changed: @escaping @Sendable () -> Void) -> (any NetworkWatch)? {
    let watch = Watch(self, queue, changed)
    return script.withLock { state in
      guard !state.refusesWatches else { return nil }
      state.watches[ObjectIdentifier(watch)] = watch
      return watch
    }
  }

  final class Watch: NetworkWatch {
    private let network: ScriptedNetwork
    private let queue: DispatchQueue
    private let changed: @Sendable () -> Void

    init(_ network: ScriptedNetwork, _ queue: DispatchQueue, _ changed: @escaping @Sendable () -> Void) {
      self.network = network
      self.queue = queue
      self.changed = changed
    }

    func tell() { queue.async(execute: changed) }

    func stop() {
      _ = network.script.withLock { $0.watches.removeValue(forKey: ObjectIdentifier(self)) }
    }
  }
}
