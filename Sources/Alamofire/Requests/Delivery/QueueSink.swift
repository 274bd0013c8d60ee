import Foundation
import Synchronization

/// A response handler: a closure that is called on its queue with the response.
final class QueueSink<Kind: HandlerKind>: ResponseSink {
  typealias Response = Kind.Response

  private let queue: DispatchQueue
  private let serialization: Serialization<Kind.Value>
  private let completion: @Sendable (Response) -> Void
  private let response = Mutex<Response?>(nil)

  init(
    queue: DispatchQueue, serialization: Serialization<Kind.Value>,
    completion: @escaping @Sendable (Response) -> Void
  ) {
    self.queue = queue
    self.serialization = serialization
    self.completion = completion
  }

  var runsUserCode: Bool { serialization.runsUserCode }

  func postpone(_ outcome: RequestOutcome) -> Bool { false }

  func serialize(_ outcome: RequestOutcome) -> AFError? {
    let new: Response = serialization.response(to: outcome)
    response.withLock { $0 = new }
    return serialization.isSerialized ? new.result.failure : nil
  }

  func replaceFailure(with error: AFError) {
    response.withLock { $0 = $0?.failing(with: error) }
  }

  func announce(to request: Request) {
    if let response = response.withLock({ $0 }) { Kind.announce(response, to: request) }
  }

  func deliver() {
    guard let response = response.withLock({ $0 }) else {
      preconditionFailure("a handler was served before its response was made")
    }
    let completion = completion
    queue.async { completion(response) }
  }
}
