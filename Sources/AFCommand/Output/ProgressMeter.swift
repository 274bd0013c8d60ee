import Alamofire
import Foundation

/// Draws the progress of a body on a terminal once it has taken half a second, and takes it away at the end.
final class ProgressMeter: Sendable {
  private struct State {
    var start: ContinuousClock.Instant
    var direction = ProgressLine.Direction.received
    var completed: Int64 = 0
    /// The bytes that an earlier run has saved.
    var offset: Int64 = 0
    var lastDrawn: ContinuousClock.Instant?
    var isOver = false
  }

  private static let patience = Duration.milliseconds(500)
  private static let interval = Duration.milliseconds(100)

  private let environment: Environment
  private let state: Mutex<State>

  /// Makes the meter of an invocation; `nil` if its progress is not shown.
  init?(_ environment: Environment, _ invocation: Invocation) {
    guard !invocation.isQuiet, environment.isErrorTerminal || invocation.isProgressForced else { return nil }
    self.environment = environment
    state = Mutex(State(start: environment.now(), direction: invocation.hasBody ? .sent : .received))
  }

  /// Called for bytes of the request body.
  func sent(_ progress: Progress) {
    moved(.sent, completed: progress.completedUnitCount, total: progress.totalUnitCount)
  }

  /// Called for bytes of the response body.
  func received(_ progress: Progress) {
    received(completed: progress.completedUnitCount, total: progress.totalUnitCount)
  }

  func received(completed: Int64, total: Int64) { moved(.received, completed: completed, total: total) }

  /// Called when the rest of a file comes, whose beginning is there: the progress is that of the whole file.
  func continues(at offset: Int64) { state.withLock { $0.offset = max(0, offset) } }

  private func moved(_ direction: ProgressLine.Direction, completed: Int64, total: Int64) {
    let now = environment.now()
    // Written under the lock, so that nothing is drawn once the line has been taken away.
    state.withLock { state in
      guard !state.isOver, state.direction == direction else { return }
      // A body that is sent again, after a redirect or a challenge.
      if completed < state.completed { state.start = now }
      state.completed = completed
      guard now - state.start >= Self.patience else { return }
      if let last = state.lastDrawn, now - last < Self.interval { return }
      state.lastDrawn = now
      let line = ProgressLine(
        completed: completed, total: total, offset: state.offset,
        elapsed: (now - state.start) / .seconds(1), direction: direction)
      environment.writeError("\r\(line.text(width: environment.width))\u{1B}[K")
    }
  }

  /// Called for the head of the response: what is measured from now on is its body.
  func beginResponse() {
    let wasDrawn = state.withLock { state in
      guard state.direction == .sent else { return false }
      defer { state.lastDrawn = nil }
      (state.direction, state.start, state.completed) = (.received, environment.now(), 0)
      return state.lastDrawn != nil
    }
    if wasDrawn { erase() }
  }

  /// Called at the end of the body, or after a failure.
  func finish() {
    let wasDrawn = state.withLock { state in
      state.isOver = true
      return state.lastDrawn != nil
    }
    if wasDrawn { erase() }
  }

  private func erase() { environment.writeError("\r\u{1B}[K") }
}
