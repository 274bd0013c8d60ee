import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// Runs a request, from its conversion to the delivery of its responses: passes from one owner of steps to the other,
/// and passes itself on when a stage has to wait.
///
/// Three owners perform its steps, one inside the other: ``AttemptLoop``, ``Attempt`` and ``HopLoop``.
///
/// It continues on one of these threads:
/// - the loop's, at the start of a request, after a transfer of the engine and after a gate;
/// - one of the pool, after work that a task has awaited, until the run passes itself on;
/// - the thread of another transport, after its transfer;
/// - the caller's thread, in a session that makes its requests in the call of the factory.
///
/// One thread or task uses the run at a time. It is passed on through the inbox of the loop, as the completion of a
/// transfer, at a gate, or by starting a task. Nothing touches it afterwards. Hence `@unchecked Sendable`.
final class RequestRun: @unchecked Sendable {
  private enum Level { case run, attempt, hops }
  private enum Executor { case loop, task }

  /// The result of a turn.
  private enum Turn {
    case ended
    /// Another owner has the run.
    case passedOn
    case task(@Sendable () async -> RunEntry)
  }

  private let core: RequestCore
  private let request: any RunOwner
  /// The priority of the task that started the request.
  private let priority: TaskPriority
  @exclusivity(unchecked) private var level = Level.run
  @exclusivity(unchecked) private var attempts: AttemptLoop
  @exclusivity(unchecked) private var attempt: Attempt
  @exclusivity(unchecked) private var hops: HopLoop
  @exclusivity(unchecked) private var isFirstAttempt = true
  /// The point where the loop's thread goes on.
  @exclusivity(unchecked) private var next: RunEntry?

  /// Makes the run of a request, which begins later.
  ///
  /// - Parameters:
  ///   - request: The request as the caller's code sees it.
  ///   - registryIndex: The index of the request in the registry of its session; `nil` if the session has ended.
  ///   - event: The event with which the run begins on the loop's thread.
  init(
    _ request: any RunOwner, core: RequestCore, registryIndex: Int?, priority: TaskPriority,
    after event: StageEvent
  ) {
    self.core = core
    self.request = request
    self.priority = priority
    attempts = AttemptLoop(request, core, registryIndex: registryIndex)
    attempt = Attempt(request, core)
    hops = HopLoop(request.hopDelegate, core.session.services)
    next = .event(event)
  }

  // MARK: The owners

  /// Performs stages until the run has ended, is passed on, or needs a task.
  private func turn(after first: consuming Pause<RunEntry>, on executor: Executor) -> Turn {
    var pause = first
    while true {
      switch consume pause {
      case .over(let event):
        guard level != .run else { return .ended }
        leave(after: event)
        pause = self.pause(after: .event(event))
      case .wait(.inner):
        enter()
        pause = self.pause(after: .event(.begun))
      case .wait(.task(let work)): return .task(work)
      case .wait(.transfer): return beginTransfer(on: executor)
      case .wait(.gate(let gate, let then)):
        if executor == .task, staysInTask {
          return .task { [core] in
            await core.passed(gate)
            return then
          }
        }
        if core.park(at: gate, { self.proceed(from: then) }) { return .passedOn }
        pause = self.pause(after: then)
      }
    }
  }

  private func pause(after entry: consuming RunEntry) -> Pause<RunEntry> {
    switch entry {
    case .event(let event):
      switch level {
      case .run: return attempts.turn(after: .event(event))
      case .attempt: return attempt.turn(after: .event(event))
      case .hops: return hops.turn(after: .event(event))
      }
    case .run(let then):
      let outcome = attempts.outcome(of: then)
      return attempts.turn(after: outcome)
    case .attempt(let then):
      let outcome = attempt.outcome(of: then)
      return attempt.turn(after: outcome)
    case .hops(let then):
      let outcome = hops.outcome(of: then)
      return hops.turn(after: outcome)
    }
  }

  /// Begins with the steps of the owner inside.
  private func enter() {
    switch level {
    case .run:
      if !isFirstAttempt {
        attempt = Attempt(request, core)
        hops = HopLoop(request.hopDelegate, core.session.services)
      }
      isFirstAttempt = false
      level = .attempt
    case .attempt:
      hops.begin(attempt.urlRequest, taskIsAnnounced: attempt.order.taskIsAnnounced)
      level = .hops
    case .hops: preconditionFailure("a hop has no owner inside")
    }
  }

  /// Goes on with the steps of the owner around, which gets the result.
  private func leave(after event: StageEvent) {
    switch level {
    case .hops:
      attempt.hops = hops.result()
      if event == .failed { attempt.error = hops.error }
      level = .attempt
    case .attempt:
      if event == .failed { attempts.error = attempt.error }
      level = .run
    case .run: preconditionFailure("a run has no owner around")
    }
  }

  // MARK: Waits

  /// Passes the run to the transport.
  private func beginTransfer(on executor: Executor) -> Turn {
    let transfer = hops.takeTransfer()
    if executor == .task, staysInTask { return .task(transfer.work) }
    // From here on the transport owns the run.
    transfer.transport.send(transfer.request, observer: transfer.observer, completion: self)
    return .passedOn
  }

  private var staysInTask: Bool { core.session.enqueue == nil || core.keepsTask }

  // MARK: The entries

  /// Performs stages in the current task until the run has ended or is passed on.
  nonisolated(nonsending) func run(after event: StageEvent) async { await run(from: .event(event)) }

  nonisolated(nonsending) private func run(from first: consuming RunEntry) async {
    var entry = first
    while case .task(let work) = turn(after: pause(after: entry), on: .task) { entry = await work() }
  }

  nonisolated(nonsending) private func run(awaiting work: @Sendable () async -> RunEntry) async {
    await run(from: await work())
  }

  /// Performs stages on the current thread until the run has ended or is passed on. The first stage that needs a task
  /// starts one. It is detached, because the current task, if any, belongs to another request.
  private func advance(after pause: consuming Pause<RunEntry>) {
    guard case .task(let work) = turn(after: pause, on: .loop) else { return }
    start { [self] in await run(awaiting: work) }
  }

  private func start(_ body: @escaping @Sendable () async -> Void) {
    core.run { Task.detached(priority: priority, operation: body) }
  }

  /// Continues on the loop's thread, from any thread. Without a loop a task continues.
  private func proceed(from entry: RunEntry) {
    guard let enqueue = core.session.enqueue else {
      return start { [self] in await run(from: entry) }
    }
    next = entry
    enqueue(self)
  }
}

/// The point where a run continues: the order of the current owner after an event, or the rest of a stage.
enum RunEntry: Sendable {
  case event(StageEvent)
  case hops(Continuation<HopLoop>)
  case attempt(Continuation<Attempt>)
  case run(Continuation<AttemptLoop>)
}

extension AttemptLoop: StageOwner {
  static func entry(_ continuation: @escaping Continuation<AttemptLoop>) -> RunEntry { .run(continuation) }
}

extension Attempt: StageOwner {
  static func entry(_ continuation: @escaping Continuation<Attempt>) -> RunEntry { .attempt(continuation) }
}

extension HopLoop: StageOwner {
  static func entry(_ continuation: @escaping Continuation<HopLoop>) -> RunEntry { .hops(continuation) }
}

extension RequestRun: LoopWork {
  func runOnLoop() {
    guard let entry = next.take() else { preconditionFailure("a run continues where it was passed on") }
    advance(after: pause(after: entry))
  }
}

extension RequestRun: TransferCompletion {
  func transferEnded(_ result: consuming Result<WireResponse, TransportFailure>) {
    let outcome = hops.transferEnded(result)
    advance(after: hops.turn(after: outcome))
  }
}

extension RequestCore {
  /// Throws if the request was cancelled or its session has ended. The current task is not asked: on the loop's thread
  /// it may belong to another request.
  func checkAlive() throws(AFError) {
    let (error, isCancelled) = state.withLock { state in
      (state.results.error, state.lifecycle.state == .cancelled && !state.lifecycle.isClosing)
    }
    if let error { throw error }
    if isCancelled { throw .explicitlyCancelled }
  }
}
