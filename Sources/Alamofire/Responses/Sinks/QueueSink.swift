import Foundation
import Synchronization

/// A response handler: a closure that is called on its queue with the response.
final class QueueSink<Value: Sendable>: ResponseSink {
  private let queue: DispatchQueue
  private let serialization: Serialization<Value>
  private let completion: @Sendable (AFDataResponse<Value>) -> Void
  private let response = Mutex<AFDataResponse<Value>?>(nil)

  init(
    queue: DispatchQueue, serialization: Serialization<Value>,
    completion: @escaping @Sendable (AFDataResponse<Value>) -> Void
  ) {
    self.queue = queue
    self.serialization = serialization
    self.completion = completion
  }

  var runsUserCode: Bool { serialization.runsUserCode }

  func postpone(_ outcome: RequestOutcome) -> Bool { false }

  func serialize(_ outcome: RequestOutcome) -> AFError? {
    let new = serialization.response(to: outcome)
    response.withLock { $0 = new }
    return serialization.isSerialized ? new.error : nil
  }

  func replaceFailure(with error: AFError) {
    response.withLock { $0 = $0?.failing(with: error) }
  }

  func deliver() {
    guard let response = response.withLock({ $0 }) else {
      preconditionFailure("a handler was served before its response was made")
    }
    let completion = completion
    queue.async { completion(response) }
  }
}
