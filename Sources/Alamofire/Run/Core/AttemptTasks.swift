import Foundation
import FoundationNetworking
import Synchronization

/// The tasks of a request's attempts; each is created on first access.
struct AttemptTasks: Sendable {
  /// The request, once it has an observer of its tasks; weak.
  var owner: (any RunOwner)? {
    get { ownerLink?.request }
    set { ownerLink = newValue.map { RequestLink($0) } }
  }
  private var ownerLink: RequestLink?
  /// The number of attempts that have begun to be sent, without those that are forgotten.
  private(set) var count = 0
  /// Whether the current attempt has begun to be sent.
  private(set) var hasBegun = false
  /// The number of all attempts that have begun to be sent.
  private(set) var number = 0
  /// Whether monitors have received the task of the current attempt.
  var isNotified = false
  private(set) var tasks: [URLSessionTask] = []
  /// Whether the next attempt replaces the tasks of earlier ones.
  private var forgetsEarlier = false

  /// Counts the current attempt before it is sent; further calls have no effect. A run begins by
  /// ``RequestCore/CoreState/beginTask()``.
  ///
  /// - Returns: What was forgotten of earlier attempts, which has to be released outside of the lock, because it may
  ///   hold objects of the caller.
  mutating func begin() -> [any Sendable] {
    guard !hasBegun else { return [] }
    defer {
      hasBegun = true
      count += 1
      number += 1
    }
    if forgetsEarlier {
      let forgotten: [any Sendable] = [tasks, unseen]
      (tasks, unseen, count) = ([], [:], 0)
      forgetsEarlier = false
      return forgotten
    }
    return count >= AttemptHistory.limit ? forgetFirst() : []
  }

  /// Forgets the oldest attempt, whose task others may still have. Returns what is left of it.
  private mutating func forgetFirst() -> [any Sendable] {
    count -= 1
    var forgotten: [any Sendable] = []
    if !tasks.isEmpty {
      forgotten.append(tasks.removeFirst())
    } else if let view = unseen.removeValue(forKey: 0) {
      forgotten.append(view)
    }
    // Tasks are created in the order of the attempts, so that these are later ones.
    unseen = Dictionary(uniqueKeysWithValues: unseen.map { ($0 - 1, $1) })
    return forgotten
  }

  /// Whether the task of the current attempt was created.
  var isSeen: Bool { hasBegun && tasks.count == count }

  /// The final views of retried attempts whose tasks were not created; usually empty.
  private var unseen: [Int: TaskRecord.View] = [:]

  /// Ends the current attempt; its task shows `view` from now on.
  mutating func end(_ view: TaskRecord.View?) {
    forgetCurrent()
    guard let view, let task = tasks.last as? any RecordedTask else { return }
    task.record.end(view)
  }

  private mutating func forgetCurrent() {
    hasBegun = false
    isNotified = false
  }

  /// Ends the current attempt before a retry, and retains its view for a task that is created later.
  ///
  /// - Parameter keeps: Whether its task stays when the next attempt begins.
  mutating func endForRetry(_ view: TaskRecord.View, keeps: Bool = true) {
    guard hasBegun else { return }
    forgetsEarlier = !keeps
    guard isSeen else {
      unseen[count - 1] = view
      forgetCurrent()
      return
    }
    end(view)
  }

  /// Makes the missing tasks. The task of the last attempt shows `last` if the attempt has ended.
  mutating func make(of request: any RunOwner, last: () -> TaskRecord.View) -> [URLSessionTask] {
    while tasks.count < count {
      let record = TaskRecord(of: request)
      let isCurrent = hasBegun && tasks.count == count - 1
      if !isCurrent { record.end(unseen.removeValue(forKey: tasks.count) ?? last()) }
      tasks.append(request.makeTask(record))
    }
    return tasks
  }
}

/// A weak reference to a request, in an object, because a structure with a weak reference cannot be moved as plain
/// memory.
private final class RequestLink: Sendable {
  weak let request: (any RunOwner)?

  init(_ request: any RunOwner) { self.request = request }
}

extension RequestCore.CoreState {
  /// The view of the current attempt's task.
  var taskView: TaskRecord.View {
    mutating get { makeTaskView() }
  }

  /// The response to the current hop whose body is being read.
  var begunResponse: LazyResponse? {
    mutating get { results.begunResponse(to: urlOfHop) }
  }

  /// The URL of the current hop as the caller knows it.
  private var urlOfHop: URL? {
    guard let hop = run.hop, hop.redirectCount > 0 else { return results.request?.url }
    return URL(wire: hop.request.url)
  }

  /// The request of the current hop as the caller knows it.
  var currentRequest: URLRequest? {
    run.hop.flatMap { URLRequest(hop: $0.request, of: results.request) } ?? results.request
  }

  private mutating func makeTaskView() -> TaskRecord.View {
    var view = TaskRecord.View(originalRequest: results.request)
    view.currentRequest = currentRequest
    view.response = results.exchange?.other ?? results.exchange?.httpResponse ?? begunResponse?.value
    view.count = observed.added.value.progress.count
    view.state = lifecycle.taskState
    return view
  }

  mutating func endAttempt() {
    observed.tasks.end(observed.tasks.isSeen ? endedView : nil)
  }

  /// Ends the current attempt before a retry.
  mutating func endAttemptForRetry() {
    guard observed.tasks.hasBegun else { return }
    observed.tasks.endForRetry(endedView, keeps: keepsEarlierAttempts)
  }

  /// The view of the last attempt's task after its end.
  var endedView: TaskRecord.View {
    mutating get {
      var view = taskView
      view.error = results.error?.ofTask
      view.state = .completed
      return view
    }
  }
}

extension RequestCore {
  /// The current view of the current attempt's task.
  var taskView: TaskRecord.View { state.withLock { $0.taskView } }

  func tasks(of request: any RunOwner) -> [URLSessionTask] {
    state.withLock { state in
      var past = state
      return state.observed.tasks.make(of: request) { past.endedView }
    }
  }
}
