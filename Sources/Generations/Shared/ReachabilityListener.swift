import Alamofire
import Foundation

/// A reachability manager of the current generation, with a listener and a queue that can be set at any time.
final class ReachabilityListener<Status>: Sendable {
  /// Called with each status that differs from the one before.
  typealias Listener = (Status) -> Void

  private struct State: Sendable {
    var listener: Boxed<Listener>?
    var queue = DispatchQueue.main
  }

  let manager: Alamofire::NetworkReachabilityManager
  /// The listener, for any thread.
  private let state = Mutex(State())

  /// Observes a host, or all of the network without one. `nil` if the manager cannot be created.
  init?(host: String?) {
    let made =
      host.map { Alamofire::NetworkReachabilityManager(host: $0) } ?? Alamofire::NetworkReachabilityManager()
    guard let made else { return nil }
    manager = made
  }

  deinit { manager.stopListening() }

  var listener: Listener? {
    get { state.withLock { $0.listener }?.value }
    set { state.set(\.listener, to: newValue.map { Boxed($0) }) }
  }

  var queue: DispatchQueue {
    get { state.withLock { $0.queue } }
    set { state.set(\.queue, to: newValue) }
  }
}
