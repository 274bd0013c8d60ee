import Alamofire
import Foundation
import FoundationNetworking

/// The result of a request.
struct RequestResult: Sendable {
  var request: URLRequest?
  var response: HTTPURLResponse?
  var data: Data?
  var error: (any Error)?
  var metrics: URLSessionTaskMetrics?
  var temporaryURL: URL?
  var destinationURL: URL?
  /// The file of a response that asked for credentials, at the destination.
  var movedFile: MovedFile?
  /// Such a file of an earlier attempt, which this attempt replaces. It stays known if this attempt is retried.
  var replacedFile: MovedFile?
  var resumeData: Data?
  /// Whether the body was delivered as it arrived, and is not stored.
  var isStreamed = false

  var start: CFAbsoluteTime?
  var completed: CFAbsoluteTime?

  /// The downloaded file.
  var fileURL: URL? { destinationURL ?? temporaryURL }

  /// Takes over the result of an attempt of the core.
  mutating func take(_ seen: RequestResult, refusal: (any Error)?) {
    request = seen.request
    response = seen.response
    data = isStreamed ? nil : seen.data
    error = error ?? refusal ?? seen.error.map { legacy($0) }
    if error != nil {
      temporaryURL = nil
    } else if let file = seen.temporaryURL, destinationURL == nil {
      temporaryURL = file
    }
    complete()
  }

  mutating func complete() {
    if completed == nil { completed = Timeline.now }
  }

  /// Removes the results of the last attempt, and starts the time of the next one.
  mutating func prepareForRetry(replacesFile: Bool) {
    replacedFile = (replacesFile ? movedFile : nil) ?? replacedFile
    movedFile = nil
    response = nil
    data = nil
    error = nil
    metrics = nil
    temporaryURL = nil
    destinationURL = nil
    resumeData = nil
    start = Timeline.now
    completed = nil
  }

  /// The times of the request, and the current time as the time of its value.
  var timeline: Timeline {
    let now = Timeline.now
    let completed = completed ?? now
    let start = start ?? completed
    let first = metrics?.transactionMetrics.last?.responseStartDate?.timeIntervalSinceReferenceDate
    return Timeline(
      requestStartTime: start, initialResponseTime: min(max(first ?? completed, start), completed),
      requestCompletedTime: completed, serializationCompletedTime: now)
  }
}

/// A ``RequestResult`` under its lock.
final class RequestResultBox: Sendable {
  /// The results so far, for handlers and any thread.
  private let state = Mutex(RequestResult())

  var value: RequestResult { state.withLock { $0 } }

  func update(_ change: (inout RequestResult) -> Void) {
    // Released outside of the lock, because the errors of users may be objects.
    _ = state.withLock { result in
      let former = result
      change(&result)
      return former
    }
  }
}
