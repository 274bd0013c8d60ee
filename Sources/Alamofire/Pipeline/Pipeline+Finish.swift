import Foundation
import Synchronization

extension Pipeline {
  enum Ending: Equatable { case done, attemptAgain }

  /// Stage 6: every handler gets its response, in the order in which they were added; then all are
  /// handed out together. A handler whose serialization fails may lead to another attempt.
  nonisolated(nonsending) func finish() async -> Ending {
    guard let sink = nextDemandingSink() else { return .done }
    return await finish(from: sink)
  }

  // Not inlined: the frame is allocated only for handlers that need it.
  @inline(never)
  nonisolated(nonsending) func finish(from first: any ResponseSink) async -> Ending {
    var next: (any ResponseSink)? = first
    while let sink = next {
      if core.hasBodySink, let reader = sink as? ResponseChunkReader { await reader.handOutRest(of: core) }
      if let failure = await serialized(sink) {
        switch await retryDecision(after: failure, of: sink) {
        case .again: return .attemptAgain
        case .stop: break
        case .replace(let error): sink.replaceFailure(with: error)
        }
      }
      if core.isMonitored { await core.changesAreTold() }
      next = nextDemandingSink()
    }
    return .done
  }

  /// Serves the handlers that ask for nothing but what is there, up to the first that runs code of a user
  /// or may lead to another attempt. Without one, hands all out and ends the request.
  @inline(never)
  func nextDemandingSink() -> (any ResponseSink)? {
    // Before the end: from then on the request may be sent anew, with a file of its own.
    removeUploadedFile()
    // Who has to know of failures, or of the queue that serializers run on, cannot wait for an awaiter.
    let isMonitored = core.isMonitored
    let retries = core.isIntercepted || isMonitored
    let hasQueue = core.session.userSerializationQueue != nil
    while true {
      let (next, served) = core.nextSink()
      guard let sink = next else {
        answerResumeDataHandlers()
        if place != Self.nowhere { core.session.unregister(at: place) }
        if core.has(.progress) { core.completeProgress() }
        if isMonitored { tellFinished(served) }
        for sink in served { sink.deliver() }
        return nil
      }
      guard !retries else { return sink }
      let outcome = core.outcome
      if !hasQueue, sink.postpone(outcome) { continue }
      guard !sink.runsUserCode else { return sink }
      _ = sink.serialize(outcome)
    }
  }

  nonisolated(nonsending) private func serialized(_ sink: any ResponseSink) async -> AFError? {
    let outcome = core.outcome
    return sink.runsUserCode ? await serializedOffLoop(sink, outcome) : sink.serialize(outcome)
  }

  /// On the queue that the user gave the session for this, else on the pool.
  nonisolated(nonsending) private func serializedOffLoop(_ sink: any ResponseSink, _ outcome: RequestOutcome)
    async -> AFError?
  {
    guard let queue = core.session.userSerializationQueue else {
      return await offLoop { sink.serialize(outcome) }
    }
    return await withCheckedContinuation { continuation in
      queue.async { continuation.resume(returning: sink.serialize(outcome)) }
    }
  }
}
