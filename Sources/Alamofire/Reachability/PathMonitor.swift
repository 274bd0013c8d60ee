import Foundation
import HTTPWire
import Synchronization

/// What an ``OfflineRetrier`` waits with; used once.
package protocol PathMonitor: AnyObject, Sendable {
  /// Calls `onResult` once, on any thread, unless it is stopped before.
  func start(onResult: @escaping @Sendable (PathResult) -> Void)
  func stop()
}

/// How the wait for a network ended.
package enum PathResult: Sendable, Equatable {
  case pathAvailable
  case timeout
}

/// Waits until there is a default route over an interface that counts, but not for ever.
package final class NetworkPathMonitor: PathMonitor {
  private struct State {
    var watch: (any NetworkWatch)?
    var onResult: (@Sendable (PathResult) -> Void)?
  }

  private let source: any NetworkSource
  private let maximumWait: DispatchTimeInterval
  private let isAllowed: @Sendable (NetworkInterfaceType) -> Bool
  /// Where changes and the end of the wait are told, one after the other.
  private let queue = DispatchQueue(label: "org.alamofire.offlineRetrier.monitor")
  private let state = Mutex(State())

  package init(
    source: any NetworkSource = SystemNetwork(), maximumWait: DispatchTimeInterval,
    isAllowed: @escaping @Sendable (NetworkInterfaceType) -> Bool
  ) {
    self.source = source
    self.maximumWait = maximumWait
    self.isAllowed = isAllowed
  }

  deinit { stop() }

  package func start(onResult: @escaping @Sendable (PathResult) -> Void) {
    state.withLock { $0.onResult = onResult }
    let watch = source.watch(on: queue) { [weak self] in self?.look() }
    let isWanted = state.withLock { state in
      guard state.onResult != nil else { return false }
      state.watch = watch
      return true
    }
    if !isWanted { watch?.stop() }
    queue.async { [weak self] in self?.look() }
    queue.asyncAfter(deadline: .now() + maximumWait) { [weak self] in self?.end(.timeout) }
  }

  package func stop() { _ = taken() }

  private func look() {
    guard let network = source.state() else { return }
    let path = network.pathToAnywhere { isAllowed(NetworkInterfaceType($0)) }
    if path != .unreachable { end(.pathAvailable) }
  }

  private func end(_ result: PathResult) { taken()?(result) }

  private func taken() -> (@Sendable (PathResult) -> Void)? {
    let (watch, onResult) = state.withLock { state in
      defer { state = State() }
      return (state.watch, state.onResult)
    }
    watch?.stop()
    return onResult
  }
}
