import Alamofire

/// A progress bar. On a terminal it is redrawn in place; elsewhere it prints a line at every quarter.
final class ProgressBar: Sendable {
  let queue = DispatchQueue(label: "progress")
  private let stage: Stage
  nonisolated(unsafe) private var quarters = 0  // accessed only on the queue

  init(stage: Stage) {
    self.stage = stage
  }

  func draw(_ progress: Progress) { draw(progress.fractionCompleted) }

  func draw(_ fraction: Double) {
    let filled = Int(fraction * 40)
    let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: 40 - filled)
    let line = "\(bar) \(Int(fraction * 100)) %"
    if stage.isTerminal {
      stage.draw("\r    \(line)\u{1B}[K")
    } else if filled / 10 > quarters {
      quarters = filled / 10
      stage.say(line)
    }
  }

  /// Waits until the last state is drawn.
  func finish() {
    queue.sync { if stage.isTerminal { stage.draw("\n") } }
  }
}
