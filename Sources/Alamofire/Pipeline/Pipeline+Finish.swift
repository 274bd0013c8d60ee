import Foundation

extension Pipeline {
  enum Ending: Equatable { case done, attemptAgain }

  /// Stage 6: every handler gets its response, in the order in which they were added; then all are
  /// handed out together. A handler whose serialization fails may lead to another attempt.
  nonisolated(nonsending) func finish() async -> Ending {
    // Who has to know of failures, or of the queue that serializers run on, cannot wait for an awaiter.
    let mayPostpone = core.interceptorsInOrder.isEmpty && core.session.userSerializationQueue == nil
    while true {
      let (next, served) = core.nextSink()
      guard let sink = next else {
        if let place { core.session.unregister(at: place) }
        for sink in served { sink.deliver() }
        return .done
      }
      let outcome = core.outcome
      let failure: AFError?
      if mayPostpone, sink.postpone(outcome) {
        failure = nil
      } else if sink.runsUserCode {
        failure = await serializedOffLoop(sink, outcome)
      } else {
        failure = sink.serialize(outcome)
      }
      guard let failure else { continue }
      switch await retryDecision(after: failure) {
      case .again: return .attemptAgain
      case .stop: break
      case .replace(let error): sink.replaceFailure(with: error)
      }
    }
  }

  /// On the queue that the user gave the session for this, else on the pool.
  nonisolated(nonsending) private func serializedOffLoop(_ sink: any ResponseSink, _ outcome: RequestOutcome) async -> AFError? {
    guard let queue = core.session.userSerializationQueue else {
      return await offLoop { sink.serialize(outcome) }
    }
    return await withCheckedContinuation { continuation in
      queue.async { continuation.resume(returning: sink.serialize(outcome)) }
    }
  }
}
