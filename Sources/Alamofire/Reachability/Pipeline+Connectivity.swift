import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

extension Pipeline {
  /// Waits for a network, when a request could not be sent for want of one and its session wants to wait. Returns
  /// whether there is one now; the wait ends with the time that the request has altogether.
  @inline(never)
  nonisolated(nonsending) func waitedForConnectivity(
    _ journey: Journey, after failure: TransportFailure
  ) async throws(AFError) -> Bool {
    let host = journey.request.origin.host
    let network = core.session.network
    guard journey.hopHandler.isEngine, failure.explained(host: host, by: network).kind == .notConnected else {
      return false
    }
    if let metrics = failure.metrics { journey.passed(metrics, nil) }
    if !journey.hasWaited, core.isWatched {
      await delegated { delegate, session, task in
        delegate.urlSession(session, taskIsWaitingForConnectivity: task)
      }
    }
    journey.hasWaited = true
    let deadline = journey.request.deadline
    let wait = deadline.map { ContinuousClock.now.duration(to: $0) }
    let monitor = NetworkPathMonitor(
      until: { $0.isConnected(to: host, by: network) }, source: network,
      maximumWait: DispatchTimeInterval(wait))
    let result = await SingleCompletion.answer(whenForgotten: PathResult.timeout, whenCancelled: .timeout) {
      completion in monitor.start { completion($0) }
    }
    monitor.stop()
    try checkAlive()
    guard result == .pathAvailable else {
      throw .sessionTaskFailed(
        error: URLError.made(
          .timedOut, "There was no network until timeoutIntervalForResource was over.",
          url: journey.request.url))
    }
    return true
  }
}

extension DispatchTimeInterval {
  /// Never, without a duration.
  fileprivate init(_ duration: Duration?) {
    guard let duration else {
      self = .never
      return
    }
    let (seconds, attoseconds) = duration.components
    self = .milliseconds(Int(clamping: max(0, seconds) * 1000 + max(0, attoseconds) / 1_000_000_000_000_000))
  }
}
