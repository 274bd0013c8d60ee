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
