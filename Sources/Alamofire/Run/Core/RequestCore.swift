import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// The internal part of a request. It holds the core of its session, never the session.
///
/// Its files follow the parts of its state: ``RequestLifecycle``, ``RequestResults``, ``RequestHandlers``,
/// ``ObservedState`` and ``ActiveRun``.
package final class RequestCore: Sendable {
  /// The state that changes, guarded by the lock of the core.
  struct CoreState: Sendable {
    var lifecycle = RequestLifecycle()
    var results = RequestResults()
    var handlers = RequestHandlers()
    var observed = ObservedState()
    var run = ActiveRun()
    var options = Rare<RequestOptions>()
    var bodies = Rare<SharedBodies>()
  }

  let session: RunSession
  package let convertible: any URLRequestConvertible
  /// Whether the conversion runs the caller's code: a router, a modifier, the encoding of a value.
  let convertsByUserCode: Bool
  let kind: any RequestKind
  /// The traits of the kind when the request was made. The traits of an upload may change later.
  private let initialTraits: KindTraits
  let shouldAutomaticallyResume: Bool?
  /// All state of the request that changes, for its users, attempts and the loop.
  let state = Mutex(CoreState())
  /// See ``RequestInterests``. Read for each chunk of a body.
  let interests: Atomic<UInt16>
  /// Whether cookies of the last response are being stored.
  let storesCookies = Atomic<Bool>(false)

  init(
    session: RunSession, convertible: any URLRequestConvertible, convertsByUserCode: Bool,
    kind: any RequestKind, interests: RequestInterests, shouldAutomaticallyResume: Bool?
  ) {
    self.session = session
    self.convertible = convertible
    self.convertsByUserCode = convertsByUserCode
    self.kind = kind
    initialTraits = kind.traits
    self.shouldAutomaticallyResume = shouldAutomaticallyResume
    self.interests = Atomic(interests.rawValue)
  }

  deinit {
    // A request that was never started is released without an end, which would end its sequences.
    state.withLock { $0.observed.added.read { $0.listeners } }?.finish()
  }

  var resumesAutomatically: Bool { shouldAutomaticallyResume ?? session.startsRequestsImmediately }

  // MARK: Calls from the caller, on any thread

  func resume(_ request: any RunOwner) {
    change(request, to: .resumed) { $0.lifecycle.resumed() }
  }

  func suspend(_ request: any RunOwner) {
    change(request, to: .suspended) { $0.lifecycle.suspended() }
  }

  func cancel(_ request: any RunOwner, because error: AFError = .explicitlyCancelled) {
    change(request, to: .cancelled) { $0.cancel(because: error) }
    // A request that has ended may be sent again, with readers that get everything.
    if isCancelled { kind.endDelivery() }
  }

  /// Cancels a WebSocket request by a closing handshake, which `beginClosing` begins. A request that has not been
  /// resumed yet is never sent, and one that has failed is not retried.
  func close(_ request: any RunOwner, _ beginClosing: () -> Void) {
    change(request, to: .cancelled) { state in
      guard state.lifecycle.run == .running, state.results.error == nil else {
        return state.cancel(because: .explicitlyCancelled)
      }
      return state.lifecycle.closed()
    }
    beginClosing()
  }

  func add(_ sink: any ResponseSink, for request: any RunOwner) {
    let resumes = resumesAutomatically
    change(request, to: .resumed) { state in
      state.handlers.add(sink)
      return state.lifecycle.handlerAdded(resumesAutomatically: resumes)
    }
  }

  /// Adds a reader of the body. Returns false, without a change, if its chunks belong to an earlier run.
  func add(_ reader: ResponseChunkReader, of chunks: ResponseChunks, for request: any RunOwner) -> Bool {
    let resumes = resumesAutomatically
    var isAdded = false
    change(request, to: .resumed) { state in
      guard state.bodies.read({ $0.chunks }) === chunks else { return .nothing }
      add(.body)
      state.handlers.add(reader)
      isAdded = true
      return state.lifecycle.handlerAdded(resumesAutomatically: resumes)
    }
    return isAdded
  }

  /// Changes the state as the caller asks. Monitors are notified of the change before it takes effect.
  private func change(
    _ request: any RunOwner, to requested: RequestState,
    _ body: (inout sending CoreState) -> RequestLifecycle.Action
  ) {
    let notifies = notifiesMonitors
    let (action, isNotified, isUnstarted, concernsTask) = state.withLock { state in
      let before = state.lifecycle.state
      let action = body(&state)
      // A handler that is added after the end resumes a finished request, which is not an event.
      let isNotified =
        notifies && before != .finished && before != state.lifecycle.state
        && state.lifecycle.state == requested
      if isNotified { state.observed.beginNotification() }
      return (action, isNotified, state.lifecycle.run == .notStarted, state.observed.tasks.isNotified)
    }
    if isNotified {
      request.notify(.changed(requested, concernsTask: concernsTask))
      state.withLock { $0.endNotification() }?()
    }
    perform(action, for: request)
    if isUnstarted { awaitStart(of: request) }
  }

  /// Sets up a request that has just been created, as its session requires.
  ///
  /// - Parameter isEager: Whether the `URLRequest` is created before the request is resumed.
  func setUp(_ request: any RunOwner, isEager: Bool) {
    let isImmediate = session.makesRequestsAtOnce
    guard isEager || isImmediate else { return }
    guard state.withLock({ $0.lifecycle.setUpEagerly() }) == .start else { return }
    start(request, sends: true, isResumed: false, isImmediate: isImmediate)
  }

  /// Registers a request that has something to wait for and was not started, so that its session can end it. A session
  /// that has ended already ends it at once.
  func awaitStart(of request: any RunOwner) {
    if let reason = session.registry.registerUnstarted(request) { abandonUnstarted(request, with: reason) }
  }

  /// Ends the request because its session has ended; an earlier error stays. Does nothing after the end of the request.
  func abandon(_ request: any RunOwner, with error: AFError) {
    end(request, because: error) { $0.abandoned() }
  }

  /// Ends the request if it was not started, because its session refuses further ones.
  func abandonUnstarted(_ request: any RunOwner, with error: AFError) {
    end(request, because: error) { $0.refused() }
  }

  private func end(
    _ request: any RunOwner, because error: AFError,
    _ change: (inout RequestLifecycle) -> RequestLifecycle.Action
  ) {
    let action = state.withLock { state in
      let action = change(&state.lifecycle)
      // While late handlers are served, the outcome stays.
      if action != .nothing, action != .refuseRetry { state.results.fail(error) }
      return action
    }
    perform(action, for: request)
    // What a request that has ended well has not delivered yet is still for its readers.
    if action != .nothing, action != .refuseRetry { kind.endDelivery() }
  }

  /// Cancels a running request without an event for monitors, as a delegate does that wants no body. A decision about
  /// an earlier attempt has no effect.
  ///
  /// - Parameter attempt: The number of retries when the delegate was asked.
  func cancelWhileRunning(attempt: Int) {
    let action = state.withLock { state in
      guard state.results.retryCount == attempt else { return RequestLifecycle.Action.nothing }
      return state.cancel(because: .explicitlyCancelled)
    }
    if action == .cancel { cancelRun() }
  }

  // MARK: Actions

  func perform(_ action: RequestLifecycle.Action, for request: any RunOwner) {
    switch action {
    case .nothing: break
    case .start: start(request, sends: true)
    case .finish: start(request, sends: false)
    case .proceed:
      // If its session has ended, the request is refused although its run goes on to the handlers.
      if !isAbandoned { kind.resumed() }
      openGate()
      alignControl()
    case .hold:
      alignControl()
      // Other transfers of a discretionary session do not wait for this one.
      kind.held()
    case .cancel: cancelRun()
    case .refuseRetry: refuseRetry()
    }
  }

  /// Starts the run of the request, or the delivery of its outcome to late handlers.
  ///
  /// - The loop's thread performs the first steps, and no task is needed.
  /// - If the caller's code has to run first, a task begins on the pool. It has the task-local values of the current
  ///   task.
  /// - Late handlers wait for the next turn of the loop. If a run ends on the loop, its handlers are called when the
  ///   turn is over. If it ends elsewhere, late handlers are not served before it has delivered its responses.
  /// - A request that is created in the factory call begins on the current thread.
  private func start(
    _ request: any RunOwner, sends: Bool, isResumed: Bool = true, isImmediate: Bool = false
  ) {
    let index = session.registry.register(request)
    // Handlers that are added after the end receive the outcome, even if the session has ended.
    if index == nil, sends { refuse(because: session.reasonOfEnd) }
    if index != nil, sends, isResumed { kind.resumed() }
    if session.hasOwnDelegate || observers.contains(.task) {
      state.withLock { $0.observed.tasks.owner = request }
    }
    let first = sends ? StageEvent.begun : .begunForLateHandlers
    let run = RequestRun(
      request, core: self, registryIndex: index, priority: Task.currentPriority, after: first)
    let beginsOnLoop = sends ? index != nil && !startsWithUserCode : !keepsTask
    if !isImmediate, beginsOnLoop, let enqueue = session.enqueue {
      return sends ? enqueue(run) : session.services.engine.enqueueForNextTurn(run)
    }
    self.run {
      if isImmediate { return Task.immediate { await run.run(after: first) } }
      return Task { await run.run(after: first) }
    }
  }

  /// Ends the request before its first step, because the session has ended.
  private func refuse(because error: AFError) {
    state.withLock { state in
      state.results.fail(error)
      _ = state.lifecycle.abandoned()
    }
  }

  private var startsWithUserCode: Bool {
    convertsByUserCode || has(.adapters) || traits.contains(.makesBodyByUserCode)
  }

  /// Whether the task of the request stays until its end. Only that task carries the task-local values, which retriers
  /// and the code of a further attempt have to see, too.
  var keepsTask: Bool { mayBeRetried && startsWithUserCode }
}

extension RequestCore.CoreState {
  mutating func cancel(because error: AFError) -> RequestLifecycle.Action {
    // If a WebSocket request is being closed, the end of its connection shows whether closing has failed.
    let wasCancelled = lifecycle.state == .cancelled
    let action = lifecycle.cancelled()
    if lifecycle.state == .cancelled, !wasCancelled { results.fail(error) }
    return action
  }
}

extension RequestCore {
  /// Whether the body of the response is passed on as it arrives, so that only the body for the caller may be.
  var hasBodySink: Bool { traits.contains(.passesBodyOn) || has(.body) }

  var traits: KindTraits { initialTraits.contains(.hasBody) ? kind.traits : initialTraits }
}

extension RequestCore {
  /// Whether the session or the request has monitors. Asked before an event is created for them.
  var notifiesMonitors: Bool { session.observers.hasMonitors || has(.events) }

  /// Whether the request has adapters or retriers.
  var isIntercepted: Bool { has(.interceptors) }

  /// Whether the request has retriers.
  var mayBeRetried: Bool { has(.retriers) }

  /// Whether any of these interests was added.
  func has(_ interests: RequestInterests) -> Bool {
    self.interests.load(ordering: .acquiring) & interests.rawValue != 0
  }

  func add(_ interests: RequestInterests) {
    self.interests.bitwiseOr(interests.rawValue, ordering: .releasing)
  }

  func remove(_ interests: RequestInterests) {
    self.interests.bitwiseAnd(~interests.rawValue, ordering: .releasing)
  }
}
