import Alamofire
public import Foundation
import FoundationNetworking

/// What a request has collected, and the queue of its handlers.
open class TaskDelegate: NSObject {
  private let course: Course

  /// Runs what waits for the end of the request, one operation after the other; it is suspended until then. Operations
  /// of your own may be added.
  public let queue: OperationQueue

  /// The body of the response as it was received; `nil` for downloads, and for requests with
  /// ``DataRequest/stream(closure:)``.
  open var data: Data? { course.ending.value.data }

  /// What went wrong. What is set here before the request has ended takes the place of its own error.
  public var error: (any Error)? {
    get { course.failure }
    set { course.failure = newValue }
  }

  init(_ course: Course) {
    self.course = course
    queue = course.queue
  }
}
