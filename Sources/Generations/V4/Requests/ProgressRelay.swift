import Alamofire
import Foundation
import Synchronization

/// Calls a closure of the user's as a body moves, and at least once. A request starts before its caller can add the
/// closure, and a small body may be complete by then.
final class ProgressRelay: Sendable {
  enum Direction { case up, down }

  let direction: Direction
  private let queue: DispatchQueue
  private let closure: Boxed<Request.ProgressHandler>
  private let hasReported = Atomic(false)
  private let isReplaced = Atomic(false)

  init(_ direction: Direction, _ queue: DispatchQueue, _ closure: @escaping Request.ProgressHandler) {
    self.direction = direction
    self.queue = queue
    self.closure = Boxed(closure)
  }

  /// Stops reports, because another closure has replaced this one.
  func replace() { isReplaced.store(true, ordering: .relaxed) }

  /// Called on the queue.
  func report(_ progress: Progress) {
    if isReplaced.load(ordering: .relaxed) { return }
    hasReported.store(true, ordering: .relaxed)
    closure.value(progress)
  }

  /// Reports the last progress when the request has ended, if none was reported before.
  func finish(_ request: Request) {
    let progress = direction == .up ? request.core.uploadProgress : request.core.downloadProgress
    guard progress.completedUnitCount > 0 else { return }
    queue.async { [self] in
      if !hasReported.load(ordering: .relaxed) { report(progress) }
    }
  }
}
