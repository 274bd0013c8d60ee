import Foundation
import FoundationNetworking
import Synchronization

/// The tasks of a request's attempts, as far as somebody has looked at them.
struct AttemptTasks: Sendable {
  /// The request, once somebody watches it.
  weak var owner: Request?
  /// How many attempts have begun to be sent.
  private(set) var count = 0
  /// Whether the attempt at hand has.
  private(set) var hasBegun = false
  private(set) var tasks: [URLSessionTask] = []

  /// The attempt at hand is about to be sent; more often than once does not matter.
  mutating func begin() {
    guard !hasBegun else { return }
    hasBegun = true
    count += 1
  }

  /// Whether somebody has looked at the task of the attempt at hand.
  var isSeen: Bool { hasBegun && tasks.count == count }

  /// The attempt at hand is over; its task shows `view` from now on.
  mutating func end(_ view: TaskRecord.View?) {
    hasBegun = false
    guard let view, let task = tasks.last as? any RecordedTask else { return }
    task.record.end(view)
  }

  /// Makes the tasks that nobody has asked for yet; those of earlier attempts show what `past` says.
  mutating func make(of request: Request, past: (Int) -> TaskRecord.View) -> [URLSessionTask] {
    while tasks.count < count {
      let record = TaskRecord(of: request)
      let isCurrent = hasBegun && tasks.count == count - 1
      if !isCurrent { record.end(past(tasks.count)) }
      tasks.append(request.makeTask(record))
    }
    return tasks
  }
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
    view.response = exchange?.other ?? exchange?.httpResponse ?? headResponse
    view.count = progress.count
    view.state = lifecycle.taskState
    return view
  }

  mutating func endAttempt() {
    guard attempts.isSeen else { return attempts.end(nil) }
    var view = taskView
    view.error = error?.ofTask
    attempts.end(view)
    headResponse = nil
  }

  /// What the task of an earlier attempt shows.
  func pastView(_ attempt: Int) -> TaskRecord.View {
    let exchange = attempt < exchanges.count ? exchanges[attempt] : nil
    let request = attempt < requests.count ? requests[attempt] : request
    var view = TaskRecord.View(
      originalRequest: request, currentRequest: request, response: exchange?.other ?? exchange?.httpResponse)
    view.state = .completed
    if attempt == attempts.count - 1 { view.error = error?.ofTask }
    return view
  }
}

extension RequestCore {
  /// The task of the attempt at hand as it is now.
  var taskView: TaskRecord.View { state.withLock { $0.taskView } }

  func tasks(of request: Request) -> [URLSessionTask] {
    state.withLock { state in
      let past = state
      return state.attempts.make(of: request) { past.pastView($0) }
    }
  }
}

extension AFError {
  /// What a task shows of it, in Foundation's words.
  var ofTask: any Error { isExplicitlyCancelledError ? URLError(.cancelled) : underlyingError ?? self }
}
