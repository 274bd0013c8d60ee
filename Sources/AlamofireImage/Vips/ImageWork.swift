import CVips
import Foundation
import Synchronization

/// The cancellation of a piece of work.
final class ImageCancellation: Sendable {
  private let flag = Atomic(false)

  func cancel() { flag.store(true, ordering: .relaxed) }
  var isCancelled: Bool { flag.load(ordering: .relaxed) }
}

/// A piece of work on an image that has begun, with its time limit and its cancellation.
final class ImageWork: Sendable {
  private let limit: Duration
  private let end: ContinuousClock.Instant
  private let cancellation: ImageCancellation?
  init(limit: Duration, cancellation: ImageCancellation? = nil) {
    self.limit = limit
    self.cancellation = cancellation
    end = .now + limit
  }

  /// The work that the code runs in, if it runs in a queue.
  @TaskLocal static var current: ImageWork?

  /// The reason why the work must not go on.
  var failure: ImageError? {
    if let cancellation, cancellation.isCancelled { return .cancelled }
    let now = ContinuousClock.now
    guard now > end else { return nil }
    return .limitExceeded(.time, limit: limit.milliseconds, actual: (limit + (now - end)).milliseconds)
  }

  /// Throws before the first row, and before each sixteenth, if the work must not go on.
  func check(row: Int) throws(ImageError) {
    if row % 16 == 0, let failure { throw failure }
  }
}

/// Ends what libvips computes when it takes too long or was cancelled.
///
/// libvips could ask on its own, but only between parts of a result, and a thumbnail is one part.
final class ImageWatch: Sendable {
  static let shared = ImageWatch()

  private struct State {
    /// The images are known by their addresses.
    var watched: [UInt: ImageWork] = [:]
    /// Whether the queue looks again. There is never more than one row of looks.
    var isLooking = false
  }

  // A lock, because work begins and ends on any thread. An image is killed while the lock is held, so that it cannot be
  // released at the same time.
  private let state = Mutex(State())
  // A serial queue gets a thread, even if the caller's work blocks all threads of the global queues.
  private let queue = DispatchQueue(label: "org.alamofire.images.watch")

  /// Watches an image until ``end(_:)``.
  func begin(_ image: VipsImageReference, _ work: ImageWork) {
    let begins = state.withLock { state in
      state.watched[UInt(bitPattern: image)] = work
      defer { state.isLooking = true }
      return !state.isLooking
    }
    if begins { lookLater() }
  }

  func end(_ image: VipsImageReference) {
    state.withLock { _ = $0.watched.removeValue(forKey: UInt(bitPattern: image)) }
  }

  /// Looks every 20 milliseconds while there is something to watch.
  private func lookLater() {
    queue.asyncAfter(deadline: .now() + .milliseconds(20)) { [self] in
      let goesOn = state.withLock { state in
        for (address, work) in state.watched where work.failure != nil {
          if let image = VipsImageReference(bitPattern: address) { cvips_kill(image) }
        }
        state.isLooking = !state.watched.isEmpty
        return state.isLooking
      }
      if goesOn { lookLater() }
    }
  }
}

extension Duration {
  fileprivate var milliseconds: Int {
    let (seconds, attoseconds) = components
    let (product, overflows) = seconds.multipliedReportingOverflow(by: 1_000)
    return overflows ? .max : Int(clamping: product) + Int(attoseconds / 1_000_000_000_000_000)
  }
}
