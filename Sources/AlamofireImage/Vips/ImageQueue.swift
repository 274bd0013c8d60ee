import CVips
import Foundation
import Synchronization

/// Runs work on images on threads of its own, as many at a time as there are processors.
///
/// They are no threads of a pool, because each thread that worked on an image keeps some megabytes of freed memory for
/// the next one.
final class ImageQueue: Sendable {
  static let shared = ImageQueue(width: ProcessInfo.processInfo.activeProcessorCount)

  private struct State {
    private var waiting: [(@Sendable () -> Void)?] = []
    /// The number of pieces at the beginning that were taken.
    private var taken = 0
    /// Work that has been started and has not ended.
    var running = 0
    var threads = 0

    var waitingCount: Int { waiting.count - taken }

    mutating func add(_ body: @escaping @Sendable () -> Void) { waiting.append(body) }

    private mutating func takeFirst() -> (@Sendable () -> Void)? {
      guard taken < waiting.count else { return nil }
      let body = waiting[taken]
      waiting[taken] = nil
      taken += 1
      if taken * 2 > waiting.count {
        waiting.removeFirst(taken)
        taken = 0
      }
      return body
    }

    enum Next {
      case work(@Sendable () -> Void)
      case wait
      case end
    }

    /// Decides what a thread does after it has waited, for too long or for work that arrived.
    mutating func next(_ isLate: Bool) -> Next {
      if !isLate, let body = takeFirst() {
        running += 1
        return .work(body)
      }
      // What has just been added was counted on this thread, and will be announced.
      guard waitingCount == 0 else { return .wait }
      threads -= 1
      return .end
    }
  }

  private let width: Int
  private let idleLimit: DispatchTimeInterval
  private let startThread: @Sendable (ImageQueue) -> Bool
  // A lock, because work comes from any thread.
  private let state = Mutex(State())
  /// Its value is the number of pieces of work that no thread has taken.
  private let arrivals = DispatchSemaphore(value: 0)

  /// Makes a queue without threads. A thread ends after a time without work.
  ///
  /// - Parameter startThread: Returns whether a thread that calls ``serve()`` was started.
  init(
    width: Int, idleLimit: DispatchTimeInterval = .seconds(10),
    startThread: @escaping @Sendable (ImageQueue) -> Bool = { $0.startThreadOfSystem() }
  ) {
    self.width = max(1, width)
    self.idleLimit = idleLimit
    self.startThread = startThread
  }

  /// The number of threads that work or wait for work.
  var threadCount: Int { state.withLock { $0.threads } }

  /// Runs a function on a thread of the queue, without waiting for it. If the system has no thread left, and the queue
  /// has none, the calling thread runs it: that is slow, but no work is lost.
  func run(_ body: @escaping @Sendable () -> Void) {
    let needsThread = state.withLock { state in
      state.add(body)
      guard state.threads < width, state.threads < state.running + state.waitingCount else { return false }
      state.threads += 1
      return true
    }
    arrivals.signal()
    guard needsThread, !startThread(self) else { return }
    let isAlone = state.withLock { state in
      if state.threads == 1 { return true }
      state.threads -= 1
      return false
    }
    if isAlone { serve(until: .nanoseconds(0)) }
  }

  /// Starts a thread that calls ``serve()``. Foundation would not say that the system has no thread left.
  private func startThreadOfSystem() -> Bool {
    let context = Unmanaged.passRetained(self)
    var thread = pthread_t()
    let status = pthread_create(
      &thread, nil,
      { context in
        if let context { Unmanaged<ImageQueue>.fromOpaque(context).takeRetainedValue().serve() }
        return nil
      }, context.toOpaque())
    guard status == 0 else {
      context.release()
      return false
    }
    pthread_detach(thread)
    return true
  }

  /// Runs what arrives, on a thread of the queue, until nothing has arrived for a time.
  func serve() { serve(until: idleLimit) }

  /// Runs what arrives, until nothing has arrived for the time.
  private func serve(until limit: DispatchTimeInterval) {
    while true {
      let isLate = arrivals.wait(timeout: .now() + limit) == .timedOut
      switch state.withLock({ $0.next(isLate) }) {
      case .work(let body):
        body()
        state.withLock { $0.running -= 1 }
      case .wait: continue
      case .end: return
      }
    }
  }

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
