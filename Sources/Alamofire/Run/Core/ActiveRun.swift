import HTTPWire
import Synchronization

/// The parts of the run of a request that others reach, from its start to the delivery of its outcome: the task and the
/// transfer that perform it, and the gate at which it waits.
///
/// ``RequestLifecycle`` decides, and holds no reference. The objects to which its decisions apply are here.
struct ActiveRun: Sendable {
  /// The number of earlier runs.
  private var number = 0
  /// The task that performs the attempts, or has performed them until the loop went on with them.
  private(set) var task: Task<Void, Never>?
  /// The number of tasks that were started, and the number of ``task`` among them. The tasks of one run follow one
  /// another.
  private var tasksStarted = 0
  private var taskNumber = 0
  /// Suspends, resumes and cancels the transfer that is under way.
  var control: (any TransferControl)?
  var hop: CurrentHop?
  /// Whether a handler has yet to decide about the head of the response.
  private(set) var isHeadUndecided = false
  /// The run that waits at a gate. A run waits for one thing at a time.
  private var parked: (gate: Gate, proceed: @Sendable () -> Void)?

  /// The position of a task: the number of its run, and its own number.
  struct TaskPosition {
    fileprivate let run: Int
    fileprivate let task: Int
  }

  /// Returns the position of a task that is about to start.
  mutating func startTask() -> TaskPosition {
    tasksStarted += 1
    return TaskPosition(run: number, task: tasksStarted)
  }

  /// Adds a task that was started. Returns false if its run has ended, and perhaps another one has begun, or if a later
  /// task of the run was added before, so that this one has ended.
  mutating func add(_ task: Task<Void, Never>, at position: TaskPosition) -> Bool {
    guard number == position.run, taskNumber < position.task else { return false }
    self.task = task
    taskNumber = position.task
    return true
  }

  mutating func end() {
    task = nil
    number += 1
  }

  // MARK: Retriers of late handlers

  /// The task that asks retriers because of a late handler. It is separate from the tasks of the run, so that other
  /// handlers can still be served after it was cancelled.
  private var asking: Task<RetryDecision, Never>?

  mutating func beginAsking(in task: Task<RetryDecision, Never>) { asking = task }

  mutating func endAsking() -> Task<RetryDecision, Never>? { asking.take() }

  // MARK: Gates

  /// Parks the run at a gate. `proceed` continues it once the gate is open.
  mutating func park(at gate: Gate, _ proceed: @escaping @Sendable () -> Void) { parked = (gate, proceed) }

  /// Returns the run that waits at a gate, which is open now; `nil` if none does.
  mutating func leave(_ gate: Gate) -> (@Sendable () -> Void)? {
    guard let parked, parked.gate == gate else { return nil }
    self.parked = nil
    return parked.proceed
  }

  mutating func openHeadDecision() { isHeadUndecided = true }

  /// Closes the decision about the head. Returns the run that waits for it.
  mutating func closeHeadDecision() -> (@Sendable () -> Void)? {
    isHeadUndecided = false
    return leave(.headDecision)
  }

  // MARK: Cancellation

  /// The objects to which a cancellation applies, outside the lock.
  struct Cancellation: Sendable {
    let task: Task<Void, Never>?
    let control: (any TransferControl)?
    let parked: (@Sendable () -> Void)?

    /// Cancels task and transfer, and ends the wait of the run.
    func perform() {
      task?.cancel()
      control?.cancel()
      parked?()
    }
  }

  /// Returns what has to be cancelled. A run that waits for notifications continues to wait, because monitors are
  /// notified of all changes.
  mutating func takeCancellation() -> Cancellation {
    let decision = closeHeadDecision()
    return Cancellation(task: task, control: control, parked: decision ?? leave(.resumed))
  }
}

extension RequestCore.CoreState {
  /// Whether bytes must not move, because the request is suspended or the decision about its head is open.
  var isHeld: Bool { lifecycle.state == .suspended || run.isHeadUndecided }
}

extension RequestCore {
  var isCancelled: Bool { state.withLock { $0.lifecycle.state == .cancelled } }

  var isSuspended: Bool { state.withLock { $0.lifecycle.state == .suspended } }

  /// Whether the session ended before the request.
  var isAbandoned: Bool { state.withLock { $0.lifecycle.isAbandoned } }

  /// Whether no attempt may follow because of a late handler.
  var refusesRetry: Bool { state.withLock { $0.lifecycle.refusesRetry } }

  /// Whether another attempt may be made.
  var mayAttemptAgain: Bool { state.withLock { $0.lifecycle.mayAttemptAgain } }

  /// Whether only handlers are served that were added after the end.
  var servesLateHandlers: Bool { state.withLock { $0.lifecycle.servesLateHandlers } }

  /// Whether the request is resumed and nothing has failed.
  var maySend: Bool { state.withLock { $0.lifecycle.state == .resumed && $0.results.error == nil } }

  /// Starts a task of the current run, which is cancelled with the request.
  func run(in start: () -> Task<Void, Never>) {
    let position = state.withLock { $0.run.startTask() }
    let task = start()
    // If the request was cancelled or left by its session between the start of the task and here, the task is
    // cancelled.
    let isCancelled = state.withLock { state in
      guard state.run.add(task, at: position) else { return false }
      // Late handlers are served although the request may not be sent again.
      let isOver = state.results.error != nil && !state.lifecycle.refusesRetry
      return isOver && !state.lifecycle.mayAttemptAgain
    }
    if isCancelled { task.cancel() }
  }

  /// Cancels the task and the transfer of the run, and ends its waits.
  func cancelRun() {
    kind.readersLeave()
    state.withLock { $0.run.takeCancellation() }.perform()
  }

  /// Returns the answer of retriers because of a late handler. ``refuseRetry()`` ends the wait for it.
  func askRetriers(_ ask: @escaping @Sendable () async -> RetryDecision) async -> RetryDecision {
    let task = Task { await ask() }
    let isRefused = state.withLock { state in
      state.run.beginAsking(in: task)
      return state.lifecycle.refusesRetry
    }
    if isRefused { refuseRetry() }
    let decision = await task.value
    _ = state.withLock { $0.run.endAsking() }
    return decision
  }

  /// Ends the wait for a retrier because of a late handler.
  func refuseRetry() { state.withLock { $0.run.endAsking() }?.cancel() }

  /// Suspends or resumes the running transfer, as the state of the request says. Compares again afterwards, because
  /// another thread may have changed the state.
  func alignControl() {
    func requestedTransfer() -> (control: any TransferControl, isHeld: Bool)? {
      state.withLock { state in state.run.control.map { ($0, state.isHeld) } }
    }
    var target = requestedTransfer()
    while let (control, isHeld) = target {
      if isHeld { control.suspend() } else { control.resume() }
      target = requestedTransfer()
      if target?.isHeld == isHeld { return }
    }
  }

  // MARK: Gates

  /// Parks a run at a gate, and calls `proceed` once the gate is open, on any thread. Returns false, and `proceed` is
  /// never called, if the gate is open already.
  func park(at gate: Gate, _ proceed: @escaping @Sendable () -> Void) -> Bool {
    switch gate {
    case .cookies: return awaitCookies(proceed)
    case .readers: return kind.readersSettled(proceed)
    case .resumed, .headDecision, .notifications: break
    }
    return state.withLock { state in
      guard state.isShut(gate) else { return false }
      state.run.park(at: gate, proceed)
      return true
    }
  }

  /// Waits at a gate in the current task.
  func passed(_ gate: Gate) async {
    await withCheckedContinuation { continuation in
      if !park(at: gate, { continuation.resume() }) { continuation.resume() }
    }
  }

  /// Continues a run that waits until the request is resumed.
  func openGate() {
    state.withLock { $0.run.leave(.resumed) }?()
  }

  /// Notes that a request without observers waits until it is resumed. Its task can be seen before that. Returns false
  /// if the request has its own observers, which have to be notified of the task first.
  func mayWaitUnobserved() -> Bool {
    let (mayWait, _) = state.withLock { state -> (Bool, BegunTask?) in
      guard state.lifecycle.state == .initialized || state.lifecycle.state == .suspended else {
        return (true, nil)
      }
      guard !state.hasTaskObservers else { return (false, nil) }
      // No handler and no sequence has to receive the task.
      return (true, state.beginTask())
    }
    return mayWait
  }
}

extension RequestCore.CoreState {
  /// Whether a run has to wait at a gate. A run that waits until the request is resumed is gated from then on.
  fileprivate mutating func isShut(_ gate: Gate) -> Bool {
    switch gate {
    case .resumed: !lifecycle.readyToSend() && lifecycle.mayAttemptAgain
    case .headDecision: run.isHeadUndecided
    case .notifications: observed.hasPendingChanges
    case .cookies, .readers: false
    }
  }
}
