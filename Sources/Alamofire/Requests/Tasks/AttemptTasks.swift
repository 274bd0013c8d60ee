import Foundation
import FoundationNetworking
import Synchronization

/// The tasks of a request's attempts, as far as somebody has looked at them.
struct AttemptTasks: Sendable {
  /// The request, once somebody watches it.
  var owner: Request? {
    get { ownerLink?.request }
    set { ownerLink = newValue.map { RequestLink($0) } }
  }
  private var ownerLink: RequestLink?
  /// How many attempts have begun to be sent.
  private(set) var count = 0
  /// Whether the attempt at hand has.
  private(set) var hasBegun = false
  /// Whether handlers and sequences have been shown the task of the attempt at hand.
  var isShown = false
  /// Whether monitors know the task of the attempt at hand.
  var isTold = false
  private(set) var tasks: [URLSessionTask] = []

  /// The attempt at hand is about to be sent; more often than once does not matter.
  mutating func begin() {
    guard !hasBegun else { return }
    hasBegun = true
    count += 1
  }

  /// Whether somebody has looked at the task of the attempt at hand.
  var isSeen: Bool { hasBegun && tasks.count == count }

  /// What the attempts were that have been retried before anybody looked at their tasks; mostly there are none.
  private var unseen: [Int: TaskRecord.View] = [:]

  /// The attempt at hand is over; its task shows `view` from now on.
  mutating func end(_ view: TaskRecord.View?) {
    forgetCurrent()
    guard let view, let task = tasks.last as? any RecordedTask else { return }
    task.record.end(view)
  }

  private mutating func forgetCurrent() {
    hasBegun = false
    isShown = false
    isTold = false
  }

  /// The attempt at hand is over, and another one follows, after which nobody could tell what it was.
  mutating func endForRetry(_ view: TaskRecord.View) {
    guard hasBegun else { return }
    guard isSeen else {
      unseen[count - 1] = view
      forgetCurrent()
      return
    }
    end(view)
  }

  /// Makes the tasks that nobody has asked for yet; that of the last attempt, if it is over, shows `last`.
  mutating func make(of request: Request, last: () -> TaskRecord.View) -> [URLSessionTask] {
    while tasks.count < count {
      let record = TaskRecord(of: request)
      let isCurrent = hasBegun && tasks.count == count - 1
      if !isCurrent { record.end(unseen.removeValue(forKey: tasks.count) ?? last()) }
      tasks.append(request.makeTask(record))
    }
    return tasks
  }
}

/// A request that is not kept. An object of its own: what holds a weak reference itself cannot be moved as plain memory.
private final class RequestLink: Sendable {
  weak let request: Request?

  init(_ request: Request) { self.request = request }
}

extension Request {
  fileprivate func makeTask(_ record: TaskRecord) -> URLSessionTask {
    switch self {
    case is UploadRequest: UploadTaskFacade(record)
    case is DownloadRequest: DownloadTaskFacade(record)
    default: DataTaskFacade(record)
    }
  }
}

extension RequestCore.State {
  /// What the task of the attempt at hand shows.
  var taskView: TaskRecord.View {
    var view = TaskRecord.View(originalRequest: request)
    view.currentRequest = hop.flatMap { URLRequest(hop: $0.request, of: request) } ?? request
    view.response = exchange?.other ?? exchange?.httpResponse ?? extras.headResponse
    view.count = extras.progress.count
    view.state = lifecycle.taskState
    return view
  }

  mutating func endAttempt() {
    attempts.end(attempts.isSeen ? endedView : nil)
    if hasExtras { extras.headResponse = nil }
  }

  /// The same when another attempt follows.
  mutating func endAttemptForRetry() {
    guard attempts.hasBegun else { return }
    attempts.endForRetry(endedView)
    if hasExtras { extras.headResponse = nil }
  }

  /// What the task of the last attempt shows after its end.
  var endedView: TaskRecord.View {
    var view = taskView
    view.error = error?.ofTask
    view.state = .completed
    return view
  }
}

extension RequestCore {
  /// The task of the attempt at hand as it is now.
  var taskView: TaskRecord.View { state.withLock { $0.taskView } }

  func tasks(of request: Request) -> [URLSessionTask] {
    state.withLock { state in
      let past = state
      return state.attempts.make(of: request) { past.endedView }
    }
  }
}
