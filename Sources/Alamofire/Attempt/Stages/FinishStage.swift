import Foundation
import Synchronization

// The end of a request: every handler receives its response, in the order in which they were added.
extension AttemptDriver {
  func prepareLateHandlersAtOnce() -> AttemptEvent? {
    if core.error != nil { core.makeMissingExchange() }
    return core.notifiesMonitors ? nil : .done
  }

  func settleAtOnce() -> AttemptEvent? {
    guard core.stream == nil, !core.notifiesMonitors else { return nil }
    settleDownload()
    return .done
  }

  /// Waits for the readers of a stream, whose errors belong to the result, and for pending notifications.
  @inline(never)
  nonisolated(nonsending) func settle(_ step: AttemptStep) async -> AttemptEvent {
    if step == .settle {
      settleDownload()
      if let stream = core.stream { await stream.settled() }
    }
    if core.notifiesMonitors { await core.changesAreTold() }
    return .done
  }

  func serializeAtOnce() -> AttemptEvent? {
    // A handler that was found by the callback form waits for the task.
    guard values.pendingSink == nil, !core.notifiesMonitors else { return nil }
    values.pendingSink = nextPendingSink()
    return values.pendingSink == nil ? .serialized(.all) : nil
  }

  // Not inlined, because the frame is allocated only for handlers that need it.
  @inline(never)
  nonisolated(nonsending) func serialize() async -> AttemptEvent {
    if core.notifiesMonitors { await core.changesAreTold() }
    var next = values.pendingSink ?? nextPendingSink()
    values.pendingSink = nil
    while let sink = next {
      if core.hasBodySink, let reader = sink as? ResponseChunkReader { await reader.handOutRest(of: core) }
      if let failure = await serialized(sink), core.isIntercepted {
        values.error = failure
        values.failedSink = sink
        return .serialized(.failed)
      }
      if core.notifiesMonitors { await core.changesAreTold() }
      next = nextPendingSink()
    }
    return .serialized(.all)
  }

  /// Serves the handlers whose response can be made at once, up to the first that runs code of the caller or may lead to
  /// another attempt. Without one, ends the request and delivers all responses.
  @inline(never)
  private func nextPendingSink() -> (any ResponseSink)? {
    // Before the end, because from then on the request may be sent anew, with a file of its own.
    core.removeUploadedFile()
    // Monitors, retriers and the serialization queue cannot wait until a response is awaited.
    let notifies = core.notifiesMonitors
    let retries = core.isIntercepted || notifies
    let hasQueue = core.session.userSerializationQueue != nil
    while true {
      let (next, served) = core.nextSink()
      guard let sink = next else {
        deliver(served, notifiesMonitors: notifies)
        return nil
      }
      guard !retries else { return sink }
      let outcome = core.outcome
      if !hasQueue, sink.postpone(outcome) { continue }
      guard !sink.runsUserCode else { return sink }
      _ = sink.serialize(outcome)
    }
  }

  private func deliver(_ served: ShortList<any ResponseSink>, notifiesMonitors: Bool) {
    answerResumeDataHandlers()
    if let registryIndex { core.session.unregister(at: registryIndex) }
    if core.has(.progress) { core.completeProgress() }
    if notifiesMonitors { tellFinished(served) }
    for sink in served { sink.deliver() }
    core.webSocket?.end(with: core.error)
  }

  nonisolated(nonsending) private func serialized(_ sink: any ResponseSink) async -> AFError? {
    let outcome = core.outcome
    return sink.runsUserCode ? await serializedOffLoop(sink, outcome) : sink.serialize(outcome)
  }

  /// Serializes on the session's serialization queue, if the caller gave one, else on the pool.
  nonisolated(nonsending) private func serializedOffLoop(_ sink: any ResponseSink, _ outcome: RequestOutcome)
    async -> AFError?
  {
    guard let queue = core.session.userSerializationQueue else {
      return await core.session.offLoop { sink.serialize(outcome) }
    }
    return await withCheckedContinuation { continuation in
      queue.async { continuation.resume(returning: sink.serialize(outcome)) }
    }
  }
}
