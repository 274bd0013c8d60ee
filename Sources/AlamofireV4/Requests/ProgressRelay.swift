import Alamofire
import Foundation
import Synchronization

/// Calls a closure of the user's as a body moves, and at least once: a request starts before anybody can add such a
/// closure, and a small body may have come by then.
final class ProgressRelay: Sendable {
  private let queue: DispatchQueue
  private let closure: Boxed<Request.ProgressHandler>
  private let find: @Sendable (Request) -> Progress
  private let hasReported = Atomic(false)

  init(
    _ queue: DispatchQueue, _ closure: @escaping Request.ProgressHandler,
    _ find: @escaping @Sendable (Request) -> Progress
  ) {
    self.queue = queue
    self.closure = Boxed(closure)
    self.find = find
  }

  /// Called on the queue.
  func report(_ progress: Progress) {
    hasReported.store(true, ordering: .relaxed)
    closure.value(progress)
  }

  /// The request is over.
  func finish(_ request: Request) {
    let progress = find(request)
    guard progress.completedUnitCount > 0 else { return }
    queue.async { [self] in
      if !hasReported.load(ordering: .relaxed) { report(progress) }
    }
  }
}
