import Foundation
package import HTTPSystem
package import HTTPWire
import Synchronization

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
  /// The serial queue for changes and the timeout.
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
  /// Waits until there is a path to a host. The deadline ends the wait, and so does the cancellation of the task.
  static func path(
    to host: String, in source: any NetworkSource, before deadline: MonotonicTime?
  ) async -> PathResult {
    let wait = deadline.map { MonotonicTime.now.duration(to: $0) }
    let monitor = NetworkPathMonitor(
      until: { $0.isConnected(to: host, by: source) }, source: source, maximumWait: DispatchTimeInterval(wait)
    )
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
