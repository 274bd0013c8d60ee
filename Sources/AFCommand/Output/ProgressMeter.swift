import Alamofire
import Foundation

/// Draws the progress of a body on a terminal once it has taken half a second, and removes it at the end.
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
  /// Whether progress may be printed. It is printed under the lock.
  private let state: Mutex<State>

  /// Makes the meter of an invocation; `nil` if its progress is not shown.
  init?(_ environment: Environment, _ invocation: Invocation) {
    guard !invocation.isQuiet, environment.replacesErrorLines || invocation.isProgressForced else {
      return nil
    }
    self.environment = environment
    state = Mutex(State(start: environment.now(), direction: invocation.hasBody ? .sent : .received))
  }

  /// Shows the progress of a request. Without a body, its upload reports none.
  func follow(_ sending: DataRequest) {
    // Serial, so that the line is drawn in order; the main queue waits for the response.
    let queue = DispatchQueue(label: "af.progress")
    sending.downloadProgress(queue: queue) { self.received($0) }
    sending.uploadProgress(queue: queue) { self.sent($0) }
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

  /// Called when only the rest of a file is received, because its beginning exists: the progress counts the whole file.
  func continues(at offset: Int64) { state.withLock { $0.offset = max(0, offset) } }

  private func moved(_ direction: ProgressLine.Direction, completed: Int64, total: Int64) {
    let now = environment.now()
    // Written under the lock, so that the line is not drawn again after its removal.
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

  /// Called before a body on the terminal, at the end of the body, or after a failure. Removes the line once, because
  /// text of the body may be on its line later.
  func finish() {
    let wasDrawn = state.withLock { state in
      defer { (state.isOver, state.lastDrawn) = (true, nil) }
      return state.lastDrawn != nil
    }
    if wasDrawn { erase() }
  }

  private func erase() { environment.writeError("\r\u{1B}[K") }
}

/// The progress of a body, as a line that fits into a terminal.
package struct ProgressLine: Equatable, Sendable {
  /// The body that is measured.
  package enum Direction: Sendable {
    case sent, received
  }

  /// Bytes of this run so far.
  package var completed: Int64
  /// The expected number of bytes of this run; −1 if the length is unknown.
  package var total: Int64
  /// Bytes of an earlier run, which are part of the file.
  package var offset: Int64
  /// Seconds since the start.
  package var elapsed: Double
  package var direction: Direction

  package init(
    completed: Int64, total: Int64, offset: Int64 = 0, elapsed: Double, direction: Direction = .received
  ) {
    self.completed = completed
    self.total = total
    self.offset = offset
    self.elapsed = elapsed
    self.direction = direction
  }

  /// Returns the part of the line that has room in `width` columns.
  package func text(width: Int) -> String {
    let speed = elapsed > 0 ? "  \(ByteCount.text(Int64(clamping: Double(completed) / elapsed)))/s" : ""
    let saved = Self.sum(offset, completed)
    let whole = Self.sum(offset, total)
    let count = (direction == .sent ? "sent " : "") + ByteCount.text(saved)
    guard total > 0 else { return String("\(count)\(speed)".prefix(max(0, width))) }
    let share = max(0, min(1, Double(saved) / Double(whole)))
    let percent = "\(Int64(clamping: share * 100))%"
    let numbers = "\(count) of \(ByteCount.text(whole))\(speed)\(timeLeft)"
    // One column stays free: a line as wide as the terminal would break.
    let room = width - 1 - 4 - 2 - 2 - numbers.count
    guard room >= 8 else { return String("\(percent)  \(numbers)".prefix(max(0, width - 1))) }
    let barWidth = min(40, room)
    let filled = Int(Int64(clamping: share * Double(barWidth)))
    let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: barWidth - filled)
    return String(repeating: " ", count: 4 - percent.count) + "\(percent)  \(bar)  \(numbers)"
  }

  /// Returns a sum of numbers of bytes that servers may have named, at most the largest number.
  private static func sum(_ first: Int64, _ second: Int64) -> Int64 {
    let (sum, overflows) = first.addingReportingOverflow(max(0, second))
    return overflows ? .max : sum
  }

  private var timeLeft: String {
    guard completed > 0, completed < total, elapsed > 0 else { return "" }
    let time = (elapsed * Double(total - completed) / Double(completed)).rounded(.up)
    // A server can name any length.
    guard time < 1e9 else { return "" }
    let seconds = Int64(clamping: time)
    return seconds < 60 ? "  \(seconds) s left" : "  \(seconds / 60) min left"
  }
}

extension Int64 {
  /// Rounds a computed number towards zero, to a whole number. NaN becomes 0, and a number out of range the nearest one
  /// within.
  init(clamping value: Double) {
    if value.isNaN {
      self = 0
    } else {
      self = Int64(exactly: value.rounded(.towardZero)) ?? (value < 0 ? .min : .max)
    }
  }
}

/// Sizes and times as people read them.
enum ByteCount {
  /// Returns a text such as `512 B`, `1.5 kB` or `12 MB`, in steps of a thousand and with two digits at least.
  static func text(_ count: Int64) -> String {
    guard count >= 1000 else { return "\(count) B" }
    var value = Double(count)
    for unit in ["kB", "MB", "GB"] {
      value /= 1000
      // 999.95 would be written as 1000.0.
      if value < 999.5 || unit == "GB" { return "\(digits(value)) \(unit)" }
    }
    return "\(count) B"
  }

  private static func digits(_ value: Double) -> String {
    let tenths = Int64(clamping: (value * 10).rounded())
    return tenths < 100 ? "\(tenths / 10).\(tenths % 10)" : "\(Int64(clamping: value.rounded()))"
  }
}

/// A time in milliseconds as people read it.
enum Milliseconds {
  /// Returns a text such as `0.4 ms`, `12.3 ms` or `1.25 s`.
  static func text(_ milliseconds: Double) -> String {
    guard milliseconds < 999.95 else {
      let hundredths = Int64(clamping: (milliseconds / 10).rounded())
      let fraction = hundredths % 100
      return "\(hundredths / 100).\(fraction < 10 ? "0" : "")\(fraction) s"
    }
    let tenths = Int64(clamping: (milliseconds * 10).rounded())
    return "\(tenths / 10).\(tenths % 10) ms"
  }
}
