import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// The hop that is under way, for the thread that reads its response.
struct CurrentHop: Sendable {
  let request: WireRequest
  /// The origin of the caller's request.
  let initialOrigin: Origin
  let authentication: Authentication?
}

/// The inside of one request: its state under its one lock, what it collected from its user, and what
/// its attempts left behind. Holds the core of its session, never the session.
package final class RequestCore: Sendable {
  /// Everything that changes. Guarded by the one lock of the core.
  struct State: Sendable {
    var lifecycle = RequestLifecycle()
    var error: AFError?
    /// Handlers in the order in which they were added.
    var sinks: ShortList<any ResponseSink> = []
    /// How many of them have been serialized since the last attempt.
    var serializedSinks = 0
    var validators: [Validator] = []
    var request: URLRequest?
    var exchange: Exchange?
    var data: Data?
    var retryCount = 0
    var hop: CurrentHop?
    var headDecision = HeadDecision.none
    var attempts = AttemptTasks()
    var task: Task<Void, Never>?
    /// How many runs have ended; each has a task of its own.
    var endings = 0
    var control: (any TransferControl)?
    var gate: CheckedContinuation<Void, Never>?
    /// Changes of the lifecycle that monitors have yet to be told of.
    var untoldChanges = 0
    /// What few requests have: one element, or none; see ``extras``.
    var ownExtras: [RequestExtras] = []

    /// Whether bytes must not move: the request is suspended, or its head has not been decided about.
    var isHeld: Bool {
      if lifecycle.state == .suspended { return true }
      switch headDecision {
      case .none: return false
      case .open, .awaited: return true
      }
    }

    /// The body, unless it is handed out as it comes: nobody finds it here then.
    var collected: Data? { hasExtras && extras.pieces != nil ? nil : data }

    /// All that were made, in their order.
    var requests: [URLRequest] { extras.earlierRequests + (request.map { [$0] } ?? []) }
    var exchanges: [Exchange] { extras.earlierExchanges + (exchange.map { [$0] } ?? []) }

    mutating func add(_ new: URLRequest) {
      if let request { extras.earlierRequests.append(request) }
      request = new
    }

    /// Makes room for the exchange of another attempt.
    mutating func keepEarlier() {
      if let exchange { extras.earlierExchanges.append(exchange) }
      exchange = nil
    }
  }

  package let session: SessionCore
  package let convertible: any URLRequestConvertible
  /// Whether making the request runs code of a user: a router, a modifier, an encodable value.
  let convertsByUserCode: Bool
  /// What an upload sends.
  let body: UploadBody?
  /// The file that a download writes.
  let download: DownloadPlan?
  /// Where the body of a stream request goes.
  let stream: StreamFlow?
  let interceptor: (any RequestInterceptor)?
  /// Whether the session or the request was made with an interceptor.
  let beginsIntercepted: Bool
  let shouldAutomaticallyResume: Bool?
  let state = Mutex(State())
  /// See ``RequestInterests``. Read for each chunk of a body.
  let interests = Atomic<UInt8>(0)
  /// Whether cookies of the last response are being stored.
  let storesCookies = Atomic<Bool>(false)

  init(
    session: SessionCore, convertible: any URLRequestConvertible, convertsByUserCode: Bool,
    body: UploadBody? = nil, download: DownloadPlan? = nil, stream: StreamFlow? = nil,
    interceptor: (any RequestInterceptor)?, shouldAutomaticallyResume: Bool?
  ) {
    self.session = session
    self.convertible = convertible
    self.convertsByUserCode = convertsByUserCode
    self.body = body
    self.download = download
    self.stream = stream
    self.interceptor = interceptor
    beginsIntercepted = interceptor != nil || session.isIntercepted
    self.shouldAutomaticallyResume = shouldAutomaticallyResume
  }

  deinit {
    // A request that was never started is released without an end: its sequences end here.
    state.withLock { $0.hasExtras ? $0.extras.listeners : nil }?.finish()
  }

  /// Whether bodies go somewhere as they come, and only those that the user asked for may.
  var hasBodySink: Bool {
    download != nil || stream != nil || has(.body)
  }

  var kind: RequestAttempt.Kind {
    if body != nil { return .upload }
    if download != nil { return .download }
    return stream != nil ? .stream : .data
  }

  var resumesAutomatically: Bool { shouldAutomaticallyResume ?? session.startsRequestsImmediately }

  // MARK: What users do, from any thread

  func resume(_ request: Request) {
    change(request, to: .resumed) { $0.lifecycle.resumed() }
  }

  func suspend(_ request: Request) {
    change(request, to: .suspended) { $0.lifecycle.suspended() }
  }

  func cancel(_ request: Request) {
    change(request, to: .cancelled) { state in
      let action = state.lifecycle.cancelled()
      if state.lifecycle.state == .cancelled, state.error == nil { state.error = .explicitlyCancelled }
      return action
    }
  }

  /// Changes the state by a wish of the user's. Who watches is told before anything comes of it.
  private func change(
    _ request: Request, to wish: Request.State, _ body: (inout sending State) -> RequestLifecycle.Action
  ) {
    let isMonitored = isMonitored
    let (action, isTold, isDormant, concernsTask) = state.withLock { state in
      let before = state.lifecycle.state
      let action = body(&state)
      let isTold = isMonitored && before != state.lifecycle.state
      if isTold { state.untoldChanges += 1 }
      return (action, isTold, state.lifecycle.run == .notStarted, state.attempts.isTold)
    }
    if isTold { tellChange(of: request, to: wish, concernsTask: concernsTask) }
    perform(action, for: request)
    if isDormant { awaitStart(of: request) }
  }

  /// The request has just been created; as the session wants it, it begins to be made.
  func setUp(_ request: Request, _ setup: Session.RequestSetup) {
    let isImmediate = session.makesRequestsAtOnce
    guard setup == .eager || isImmediate else { return }
    guard state.withLock({ $0.lifecycle.setUpEagerly() }) == .start else { return }
    start(request, sends: true, isImmediate: isImmediate)
  }

  func add(_ sink: any ResponseSink, for request: Request) {
    let resumes = resumesAutomatically
    let isMonitored = isMonitored
    let (action, isTold, isDormant, concernsTask) = state.withLock { state in
      let before = state.lifecycle.state
      state.sinks.append(sink)
      let action = state.lifecycle.handlerAdded(resumesAutomatically: resumes)
      let isTold = isMonitored && before == .initialized && state.lifecycle.state == .resumed
      if isTold { state.untoldChanges += 1 }
      return (action, isTold, state.lifecycle.run == .notStarted, state.attempts.isTold)
    }
    if isTold { tellChange(of: request, to: .resumed, concernsTask: concernsTask) }
    perform(action, for: request)
    if isDormant { awaitStart(of: request) }
  }

  /// Registers a request that has something to wait for and was not started, so that its session can end it. A session
  /// that has ended already ends it at once.
  func awaitStart(of request: Request) {
    if let reason = session.registerDormant(request) { abandon(request, with: reason) }
  }

  /// Ends the request because its session has ended; an earlier error stays. Does nothing after the end of the request.
  func abandon(_ request: Request, with error: AFError) {
    let action = state.withLock { state in
      let action = state.lifecycle.abandoned()
      if action != .nothing, state.error == nil { state.error = error }
      return action
    }
    perform(action, for: request)
  }

  // MARK: Doing it

  func perform(_ action: RequestLifecycle.Action, for request: Request) {
    switch action {
    case .nothing: break
    case .start: start(request, sends: true)
    case .finish: start(request, sends: false)
    case .proceed:
      let gate = state.withLock { state in
        defer { state.gate = nil }
        return state.gate
      }
      gate?.resume()
      alignControl()
    case .hold: alignControl()
    case .cancel: cancelTask()
    }
  }

  /// Suspends or resumes the running transfer, as the state of the request says. Compares again afterwards, because another
  /// thread may have changed the state meanwhile.
  func alignControl() {
    func wanted() -> (control: any TransferControl, isHeld: Bool)? {
      state.withLock { state in state.control.map { ($0, state.isHeld) } }
    }
    var target = wanted()
    while let (control, isHeld) = target {
      if isHeld { control.suspend() } else { control.resume() }
      target = wanted()
      if target?.isHeld == isHeld { return }
    }
  }

  /// Cancels the attempt and ends its waits.
  private func cancelTask() {
    let (gate, decision, task, control) = state.withLock { state in
      defer {
        state.gate = nil
        state.headDecision = .none
      }
      return (state.gate, state.headDecision, state.task, state.control)
    }
    task?.cancel()
    control?.cancel()
    gate?.resume()
    if case .awaited(let continuation) = decision { continuation.resume() }
  }

  /// Cancels a running request because of `error`.
  func cancelWhileRunning(because error: AFError = .explicitlyCancelled) {
    let action = state.withLock { state in
      let action = state.lifecycle.cancelled()
      if state.lifecycle.state == .cancelled, state.error == nil { state.error = error }
      return action
    }
    if action == .cancel { cancelTask() }
  }

  /// Starts the attempts of the request, or the delivery of its outcome to late handlers.
  ///
  /// - A plain request needs no task: the thread of the engine performs its steps.
  /// - The task of another request starts on the pool if code of the caller is ahead, and visits the thread of the engine
  ///   for the transfer alone; otherwise it starts on that thread.
  /// - An immediate request is performed on the current thread until it has to wait.
  private func start(_ request: Request, sends: Bool, isImmediate: Bool = false) {
    let index = session.register(request)
    // Handlers that are added after the end receive the outcome, even if the session has ended.
    if index == nil, sends { refuse(because: session.reasonOfEnd) }
    if session.hasOwnDelegate || isWatched { state.withLock { $0.attempts.owner = request } }
    let driver = AttemptDriver(
      request, core: self, registryIndex: index, priority: Task.currentPriority)
    if sends, !isImmediate, index != nil, isPlain, let enqueue = session.enqueue { return enqueue(driver) }
    run {
      if isImmediate { return Task.immediate { await driver.run(after: .begun) } }
      let executor = startsWithUserCode ? nil : session.executor
      return Task(executorPreference: executor) {
        await driver.run(after: sends ? .begun : .begunForLateHandlers)
      }
    }
  }

  /// The session is gone: nothing is sent, and nothing waited for.
  private func refuse(because error: AFError) {
    state.withLock { state in
      if state.error == nil { state.error = error }
      _ = state.lifecycle.abandoned()
    }
  }

  /// Starts a task of the run at hand, which is cancelled with the request.
  func run(in start: () -> Task<Void, Never>) {
    let endings = state.withLock { $0.endings }
    let task = start()
    // Cancelled or left by its session between its start and here, the request is cancelled now.
    let isCancelled = state.withLock { state in
      // Over already, and perhaps another run has begun, whose task this is not.
      guard state.endings == endings else { return false }
      state.task = task
      return state.error != nil && !state.lifecycle.mayAttemptAgain
    }
    if isCancelled { task.cancel() }
  }

  private var startsWithUserCode: Bool {
    convertsByUserCode || isIntercepted || body?.runsUserCode == true
  }

  /// Whether the transfer is the only thing that the request is known to wait for.
  var isPlain: Bool {
    body == nil && download == nil && stream == nil && !convertsByUserCode && !isIntercepted && !isWatched
  }
}
