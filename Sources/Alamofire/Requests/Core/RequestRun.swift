import HTTPWire
import Synchronization

/// The hop that is under way, for the thread that reads its response.
struct CurrentHop: Sendable {
  let request: WireRequest
  /// The origin of the caller's request.
  let initialOrigin: Origin
  let authentication: Authentication?
  /// The number of redirects that led to the hop.
  let redirectCount: Int
  /// The way in which a challenge is decided. Chosen once for the hop, because observers come and go.
  var challenge = ChallengeDecision.byDefault
  /// The decision about the response that may lead elsewhere, once there is one.
  var redirect: DecidedRedirect?

  enum ChallengeDecision: Sendable {
    /// A challenge for which there is a credential is answered.
    case byDefault
    /// The body of a challenge is kept until a delegate has decided.
    case byDelegate
    /// The delegate has declined. The response is the last one.
    case declined
  }
}

/// The decision about a response with a status and a `Location`. A class, so that a hop without one is copied cheaply.
final class DecidedRedirect: Sendable {
  let status: Int
  let location: String?
  let decision: Redirect.Decision

  init(status: Int, location: String?, decision: Redirect.Decision) {
    self.status = status
    self.location = location
    self.decision = decision
  }
}

/// The run of a request, from its start to the delivery of its outcome. It holds the task and the transfer that perform
/// the request, and the continuations for which it waits.
///
/// ``RequestLifecycle`` decides, and holds no reference. A run holds the objects to which its decisions apply.
/// Therefore the head decision and the gate are here.
struct RequestRun: Sendable {
  /// The number of earlier runs.
  private var number = 0
  /// The task that performs the attempts, or has performed them until the loop went on with them.
  private(set) var task: Task<Void, Never>?
  /// The number of the tasks that were started, and that of ``task``. Those of one run follow one another.
  private var tasksStarted = 0
  private var taskNumber = 0
  /// Suspends, resumes and cancels the transfer that is under way.
  var control: (any TransferControl)?
  var hop: CurrentHop?
  private(set) var headDecision = HeadDecision.none
  /// Continues the attempt once the request is resumed.
  private var gate: CheckedContinuation<Void, Never>?

  /// The place of a task among those of the runs.
  struct TaskPlace {
    fileprivate let run: Int
    fileprivate let task: Int
  }

  /// Returns the place of a task that is about to start.
  mutating func startTask() -> TaskPlace {
    tasksStarted += 1
    return TaskPlace(run: number, task: tasksStarted)
  }

  /// Adds a task that was started. Returns false if its run has ended, and perhaps another one has begun, or if a later
  /// task of the run was added before, so that this one has ended.
  mutating func add(_ task: Task<Void, Never>, at place: TaskPlace) -> Bool {
    guard number == place.run, taskNumber < place.task else { return false }
    self.task = task
    taskNumber = place.task
    return true
  }

  mutating func end() {
    task = nil
    number += 1
  }

  // MARK: Waits

  mutating func wait(atGate continuation: CheckedContinuation<Void, Never>) { gate = continuation }

  mutating func takeGate() -> CheckedContinuation<Void, Never>? {
    defer { gate = nil }
    return gate
  }

  mutating func openHeadDecision() { headDecision = .open }

  /// Waits for an open decision about the head. Returns false if there is none.
  mutating func wait(forHeadDecision continuation: CheckedContinuation<Void, Never>) -> Bool {
    guard case .open = headDecision else { return false }
    headDecision = .awaited(continuation)
    return true
  }

  /// Closes the decision about the head. Returns the continuation of the attempt that waits for it.
  mutating func closeHeadDecision() -> CheckedContinuation<Void, Never>? {
    defer { headDecision = .none }
    guard case .awaited(let continuation) = headDecision else { return nil }
    return continuation
  }

  // MARK: Cancellation

  /// The objects to which a cancellation applies, outside the lock.
  struct Cancellation: Sendable {
    let task: Task<Void, Never>?
    let control: (any TransferControl)?
    let gate: CheckedContinuation<Void, Never>?
    let headWaiter: CheckedContinuation<Void, Never>?

    /// Cancels task and transfer, and ends the waits of the attempt.
    func perform() {
      task?.cancel()
      control?.cancel()
      gate?.resume()
      headWaiter?.resume()
    }
  }

  mutating func takeCancellation() -> Cancellation {
    Cancellation(task: task, control: control, gate: takeGate(), headWaiter: closeHeadDecision())
  }
}

extension RequestCore.State {
  /// Whether bytes must not move, because the request is suspended or the decision about its head is open.
  var isHeld: Bool { lifecycle.state == .suspended || run.headDecision.isOpen }
}

extension RequestCore {
  var isCancelled: Bool { state.withLock { $0.lifecycle.state == .cancelled } }

  var isSuspended: Bool { state.withLock { $0.lifecycle.state == .suspended } }

  /// Whether the session ended before the request.
  var isAbandoned: Bool { state.withLock { $0.lifecycle.isAbandoned } }

  /// Whether the request is resumed and nothing has failed.
  var maySend: Bool { state.withLock { $0.lifecycle.state == .resumed && $0.results.error == nil } }

  /// Starts a task of the current run, which is cancelled with the request.
  func run(in start: () -> Task<Void, Never>) {
    let place = state.withLock { $0.run.startTask() }
    let task = start()
    // If the request was cancelled or left by its session between the start of the task and here, the task is
    // cancelled.
    let isCancelled = state.withLock { state in
      guard state.run.add(task, at: place) else { return false }
      return state.results.error != nil && !state.lifecycle.mayAttemptAgain
    }
    if isCancelled { task.cancel() }
  }

  /// Cancels the run and ends its waits.
  func cancelRun() {
    state.withLock { $0.run.takeCancellation() }.perform()
  }

  /// Suspends or resumes the running transfer, as the state of the request says. Compares again afterwards, because
  /// another thread may have changed the state.
  func alignControl() {
    func wanted() -> (control: any TransferControl, isHeld: Bool)? {
      state.withLock { state in state.run.control.map { ($0, state.isHeld) } }
    }
    var target = wanted()
    while let (control, isHeld) = target {
      if isHeld { control.suspend() } else { control.resume() }
      target = wanted()
      if target?.isHeld == isHeld { return }
    }
  }

  // MARK: The gate

  /// Continues an attempt that waits until the request is resumed.
  func openGate() {
    state.withLock { $0.run.takeGate() }?.resume()
  }

  /// Waits until the request is resumed. Returns at once if it is, or if it was cancelled.
  nonisolated(nonsending) func untilResumed() async {
    guard !state.withLock({ $0.lifecycle.readyToSend() }) else { return }
    await withCheckedContinuation { continuation in
      let waits = state.withLock { state in
        // Otherwise the request has been resumed or cancelled.
        guard state.lifecycle.run == .gated, state.lifecycle.mayAttemptAgain else { return false }
        state.run.wait(atGate: continuation)
        return true
      }
      if !waits { continuation.resume() }
    }
  }

  /// Waits until a request without observers has been resumed. Its task can be seen before. Returns false, and does
  /// not wait, if it has observers of its own, which have to be notified of the task first.
  nonisolated(nonsending) func untilResumedUnobserved() async -> Bool {
    let mayWait = state.withLock { state -> Bool? in
      guard state.lifecycle.state == .initialized || state.lifecycle.state == .suspended else { return nil }
      guard !state.hasTaskObservers else { return false }
      state.observed.tasks.begin()
      // Observers that are added from now on look at the task themselves.
      state.observed.tasks.isShown = true
      return true
    }
    guard let mayWait else { return true }
    if mayWait { await untilResumed() }
    return mayWait
  }
}
