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
  /// The number of times that libvips has asked whether to stop. It also shows the thread sanitizer the order of the
  /// initialiser and the threads of libvips, whose locks it does not see.
  private let questions = Atomic(0)

  init(limit: Duration, cancellation: ImageCancellation? = nil) {
    self.limit = limit
    self.cancellation = cancellation
    end = .now + limit
    questions.store(0, ordering: .releasing)
  }

  /// The work that the code runs in, if it runs in a queue.
  @TaskLocal static var current: ImageWork?

  var questionCount: Int { questions.load(ordering: .acquiring) }

  /// The reason why the work must not go on.
  var failure: ImageError? {
    if let cancellation, cancellation.isCancelled { return .cancelled }
    let now = ContinuousClock.now
    guard now > end else { return nil }
    return .limitExceeded(.time, limit: limit.milliseconds, actual: (limit + (now - end)).milliseconds)
  }

  /// The function that libvips calls while it computes, with the work as its context.
  static let shouldStop: @convention(c) (UnsafeMutableRawPointer?) -> Bool = { context in
    guard let context else { return false }
    let work = Unmanaged<ImageWork>.fromOpaque(context).takeUnretainedValue()
    work.questions.add(1, ordering: .acquiringAndReleasing)
    return work.failure != nil
  }
}

extension Duration {
  fileprivate var milliseconds: Int {
    let (seconds, attoseconds) = components
    let (product, overflows) = seconds.multipliedReportingOverflow(by: 1_000)
    return overflows ? .max : Int(clamping: product) + Int(attoseconds / 1_000_000_000_000_000)
  }
}

/// Runs work on images on threads of its own, as many at a time as there are processors.
final class ImageQueue: Sendable {
  static let shared = ImageQueue(width: ProcessInfo.processInfo.activeProcessorCount)

  private let queue: OperationQueue

  init(width: Int) {
    queue = OperationQueue()
    queue.name = "org.alamofire.image"
    queue.maxConcurrentOperationCount = max(1, width)
  }

  /// Runs a function on a thread of the queue, without waiting for it.
  func run(_ body: @escaping @Sendable () -> Void) { queue.addOperation(body) }

  /// Runs a function on a thread of the queue. It ends early if the calling task is cancelled.
  func run<Value: Sendable>(
    limit: Duration, _ body: @escaping @Sendable () throws -> Value
  ) async throws -> Value {
    let cancellation = ImageCancellation()
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        run {
          continuation.resume(
            with: Result {
              let work = ImageWork(limit: limit, cancellation: cancellation)
              if let failure = work.failure { throw failure }
              return try ImageWork.$current.withValue(work) { try body() }
            })
        }
      }
    } onCancel: {
      cancellation.cancel()
    }
  }
}
