import Foundation
import FoundationNetworking
import Synchronization

/// The part of a request that its observers see: its tasks, and the notifications that monitors have yet to receive.
///
/// The monitors belong to the owner of the run.
struct ObservedState: Sendable {
  /// The tasks of the attempts.
  var tasks = AttemptTasks()
  var added = Rare<AddedObservers>()
  /// Whether monitors were added to the request.
  var hasMonitors = false
  /// The number of changes of the state that monitors have yet to be notified of.
  private var pendingChanges = 0

  var hasPendingChanges: Bool { pendingChanges > 0 }

  mutating func beginNotification() { pendingChanges += 1 }

  /// Returns whether no notification is still pending.
  mutating func endNotification() -> Bool {
    pendingChanges -= 1
    return pendingChanges == 0
  }
}

/// The handlers and sequences that were added to a request, and what they have received. Most requests have none.
struct AddedObservers: RareValue {
  static let unchanged = Rare<AddedObservers>.Memory()

  var progress = ProgressReport()
  var headHandler: HeadHandler?
  /// The handlers that wait for a `URLRequest` to be created.
  var watchers = RequestWatchers()
  /// The asynchronous sequences of the request.
  var listeners: RequestListeners?
  var taskHandler: RequestWatchers.Handler<URLSessionTask>?
  /// The responses that are stored at the end of the attempt if the observers allow it.
  var cacheCandidates: [CacheCandidate] = []
}

extension RequestCore.CoreState {
  /// Whether the request has its own handlers, sequences or monitors that receive its tasks.
  var hasTaskObservers: Bool {
    observed.hasMonitors
      || observed.added.read { $0.taskHandler != nil || $0.listeners?.tasks.isEmpty == false } == true
  }

  /// Counts the current attempt before it is sent; further calls have no effect. The handler and the sequences that
  /// were added before receive its task from the caller, and the ones that are added later look at it themselves.
  mutating func beginTask() -> BegunTask {
    let isFirst = !observed.tasks.hasBegun
    var begun = BegunTask(forgotten: observed.tasks.begin())
    guard isFirst, observed.added.isChanged else { return begun }
    begun.handler = observed.added.value.taskHandler
    begun.listeners = observed.added.value.listeners?.tasks ?? []
    return begun
  }

  /// Notes that monitors have been notified of a change. Returns the run that waits for the last such notification. If
  /// two threads resume and cancel a request, the notification of the first may be late.
  mutating func endNotification() -> (@Sendable () -> Void)? {
    observed.endNotification() ? run.leave(.notifications) : nil
  }
}

/// The beginning of an attempt's task: the handler and the sequences that receive the task.
struct BegunTask: Sendable {
  /// The tasks of earlier attempts that were forgotten. They are released with this value, outside of the lock.
  let forgotten: [any Sendable]
  fileprivate(set) var handler: RequestWatchers.Handler<URLSessionTask>?
  fileprivate(set) var listeners: [AsyncStream<URLSessionTask>.Continuation] = []

  fileprivate init(forgotten: [any Sendable]) { self.forgotten = forgotten }

  /// Gives the task to the handler and the sequences. Called outside of the lock.
  func show(of request: any RunOwner) {
    guard handler != nil || !listeners.isEmpty, let task = request.core.tasks(of: request).last else {
      return
    }
    if let handler { handler.queue.async { handler.closure(task) } }
    for continuation in listeners { continuation.yield(task) }
  }
}

extension RequestCore {
  /// Shows the task of the attempt, which is about to be announced, unless that was done before.
  func showTask(of request: any RunOwner) {
    let begun = state.withLock { state in
      state.observed.tasks.owner = request
      return state.beginTask()
    }
    begun.show(of: request)
  }

  /// Returns the state of the request, of which monitors are to be notified as the state of the announced task. Returns
  /// `nil` if they know it. From then on, changes concern the task, and monitors were notified of all earlier ones.
  ///
  /// - Parameter announced: The state of the task that monitors were last notified of; `nil` at first.
  func taskState(after announced: RequestState?) async -> RequestState? {
    while true {
      let (isPending, next) = state.withLock { state -> (Bool, RequestState?) in
        if state.observed.hasPendingChanges { return (true, nil) }
        if state.lifecycle.state != announced { return (false, state.lifecycle.state) }
        state.observed.tasks.isNotified = true
        return (false, nil)
      }
      guard isPending else { return next }
      await passed(.notifications)
    }
  }
}

extension RequestObservers {
  /// Makes the events whose observers were added to the request itself.
  fileprivate init(_ interests: RequestInterests) {
    self = []
    if interests.isEmpty { return }
    if interests.contains(.events) { formUnion(.monitors) }
    if interests.contains(.redirects) { insert(.redirects) }
    if interests.contains(.storing) { insert(.storing) }
    if interests.contains(.body) { insert(.bodies) }
    if interests.contains(.transfers) { formUnion([.bodies, .chunks]) }
  }
}

/// The events for which a handler, a sequence or a monitor was added to the request itself, and whether it is
/// intercepted. Most requests have none. One atomic holds them, so that no step has to take the lock to find out that
/// there are none.
struct RequestInterests: OptionSet, Sendable {
  let rawValue: UInt16

  /// The number of bytes that have moved.
  static let progress = RequestInterests(rawValue: 1)
  /// The head of the response, before its body is read.
  static let head = RequestInterests(rawValue: 2)
  /// The body of the response as it arrives, for chunk readers. The body is not stored then.
  static let body = RequestInterests(rawValue: 4)
  /// The events of this request, for a monitor or a handler of tasks.
  static let events = RequestInterests(rawValue: 8)
  static let redirects = RequestInterests(rawValue: 16)
  /// The storage of the response.
  static let storing = RequestInterests(rawValue: 32)
  /// The events of the URL session, for a monitor.
  static let transfers = RequestInterests(rawValue: 64)
  /// The adapters and retriers of the request or its session.
  static let interceptors = RequestInterests(rawValue: 128)
  /// The interceptors that may change the request.
  static let adapters = RequestInterests(rawValue: 256)
  /// The interceptors that may send the request again.
  static let retriers = RequestInterests(rawValue: 512)
}

extension RequestCore {
  /// The events that have observers at present.
  var observers: RequestObservers {
    let own = RequestInterests(rawValue: interests.load(ordering: .acquiring))
    return session.observers.observedEvents.union(RequestObservers(own))
  }
}
