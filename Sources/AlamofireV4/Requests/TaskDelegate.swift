import Alamofire
public import Foundation
import FoundationNetworking

/// What a request has collected, and the queue of its handlers.
open class TaskDelegate: NSObject {
  private let bridge: RequestBridge

  /// Runs what waits for the end of the request, one operation after the other; it is suspended until then. Operations
  /// of your own may be added.
  public let queue: OperationQueue

  /// The body of the response as it was received; `nil` for downloads, and for requests with
  /// ``DataRequest/stream(closure:)``.
  open var data: Data? { bridge.ending.value.data }

  /// What went wrong. What is set here before the request has ended takes the place of its own error.
  public var error: (any Error)? {
    get { bridge.failure }
    set { bridge.failure = newValue }
  }

  init(_ bridge: RequestBridge) {
    self.bridge = bridge
    queue = bridge.queue
  }
}
