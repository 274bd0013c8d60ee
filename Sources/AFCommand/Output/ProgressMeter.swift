import Alamofire
import Foundation

/// Draws the progress of a download on a terminal once it has taken half a second, and takes it away at
/// the end.
final class ProgressMeter: Sendable {
  private struct State {
    var lastDrawn: ContinuousClock.Instant?
    var isOver = false
  }

  private static let patience = Duration.milliseconds(500)
  private static let interval = Duration.milliseconds(100)

  private let environment: Environment
  private let start: ContinuousClock.Instant
  private let state = Mutex(State())

  init(_ environment: Environment) {
    self.environment = environment
    start = environment.now()
  }

  /// Called for received bytes of the body.
  func moved(_ progress: Progress) {
    moved(completed: progress.completedUnitCount, total: progress.totalUnitCount)
  }

  func moved(completed: Int64, total: Int64) {
    let now = environment.now()
    let line = ProgressLine(completed: completed, total: total, elapsed: (now - start) / .seconds(1))
    let text = "\r\(line.text(width: environment.width))\u{1B}[K"
    // Written under the lock, so that nothing is drawn once the line has been taken away.
    state.withLock { state in
      guard !state.isOver, now - start >= Self.patience else { return }
      if let last = state.lastDrawn, now - last < Self.interval { return }
      state.lastDrawn = now
      environment.writeError(text)
    }
  }

  /// Called at the end of the body, or after a failure.
  func finish() {
    let wasDrawn = state.withLock { state in
      state.isOver = true
      return state.lastDrawn != nil
    }
    if wasDrawn { environment.writeError("\r\u{1B}[K") }
  }
}
