import CVips
import Foundation
import Synchronization

/// Runs work on images on threads of its own, as many at a time as there are processors.
///
/// They are no threads of a pool, because each thread that worked on an image keeps some megabytes of freed memory for
/// the next one.
final class ImageQueue: Sendable {
  static let shared = ImageQueue(width: ProcessInfo.processInfo.activeProcessorCount)

  /// A piece of work that waits for a thread.
  private struct Piece {
    let body: @Sendable () -> Void
    /// Called instead of the body if the task that waits for it is cancelled before.
    let whenCancelled: (@Sendable () -> Void)?
  }

  private struct State {
    /// The pieces that no thread has taken, and gaps in place of the others.
    private var waiting: [Piece?] = []
    /// The number of places at the beginning that threads have taken.
    private var taken = 0
    /// The number of the first place. Places are counted throughout.
    private var firstPlace = 0
    /// Work that has been started and has not ended.
    var running = 0
    var threads = 0

    var waitingCount: Int { waiting.count - taken }

    /// Adds a piece, and returns its place.
    @discardableResult
    mutating func add(_ piece: Piece) -> Int {
      waiting.append(piece)
      return firstPlace + waiting.count - 1
    }

    /// Removes a piece that no thread has taken. The thread that comes to its place does nothing.
    mutating func withdraw(at place: Int) -> Piece? {
      let index = place - firstPlace
      guard index >= taken else { return nil }
      defer { waiting[index] = nil }
      return waiting[index]
    }

    /// Counts one thread more, if the work needs it.
    mutating func needsThread(_ width: Int) -> Bool {
      guard threads < width, threads < running + waitingCount else { return false }
      threads += 1
      return true
    }

    private mutating func takeFirst() -> (@Sendable () -> Void)? {
      guard taken < waiting.count else { return nil }
      let piece = waiting[taken]
      waiting[taken] = nil
      taken += 1
      if taken * 2 > waiting.count {
        waiting.removeFirst(taken)
        firstPlace += taken
        taken = 0
      }
      // A task that has left the line leaves its place, for which a thread was counted.
      return piece?.body ?? { @Sendable in }
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
    announce(
      needsThread: state.withLock { state in
        state.add(Piece(body: body, whenCancelled: nil))
        return state.needsThread(width)
      })
  }

  /// Announces a piece of work that was added.
  private func announce(needsThread: Bool) {
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

  /// Runs a function on a thread of the queue. It ends early if the calling task is cancelled, which does not wait for
  /// a thread then.
  func run<Value: Sendable>(
    limit: Duration, _ body: @escaping @Sendable () throws -> Value
  ) async throws -> Value {
    let cancellation = ImageCancellation()
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let piece = Piece {
          continuation.resume(
            with: Result {
              let work = ImageWork(limit: limit, cancellation: cancellation)
              if let failure = work.failure { throw failure }
              return try ImageWork.$current.withValue(work) { try body() }
            })
        } whenCancelled: {
          continuation.resume(throwing: ImageError.cancelled)
        }
        run(piece, cancellation)
      }
    } onCancel: {
      cancel(cancellation)
    }
  }

  /// Lets a piece of work wait for a thread, unless it is cancelled already.
  private func run(_ piece: Piece, _ cancellation: ImageCancellation) {
    let needsThread = state.withLock { state -> Bool? in
      guard !cancellation.isCancelled else { return nil }
      cancellation.place.store(state.add(piece), ordering: .relaxed)
      return state.needsThread(width)
    }
    if let needsThread { announce(needsThread: needsThread) } else { piece.whenCancelled?() }
  }

  /// Cancels a piece of work. If it waits for a thread, it leaves the line.
  private func cancel(_ cancellation: ImageCancellation) {
    // Under the lock, so that the piece either has its place or is not added.
    let piece = state.withLock { state in
      cancellation.cancel()
      return state.withdraw(at: cancellation.place.load(ordering: .relaxed))
    }
    piece?.whenCancelled?()
  }
}

/// The cancellation of a piece of work.
final class ImageCancellation: Sendable {
  private let flag = Atomic(false)
  /// The place of the work in its queue, guarded by the lock of the queue; -1 before it has one.
  fileprivate let place = Atomic(-1)

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
