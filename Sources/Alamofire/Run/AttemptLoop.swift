import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// The end of a request: retriers are asked about a failure, and every handler receives its response, in the order in
/// which they were added.
struct AttemptLoop: Sendable {
  var order = RunOrder()
  let core: RequestCore
  /// The request as the caller's code sees it.
  let request: any RunOwner
  /// The index of the request in the registry of its session; `nil` if the session has ended.
  let registryIndex: Int?
  /// The failure of the attempt or of a handler.
  var error: AFError?
  /// The ``RequestKind/runNumber`` of the run that ends.
  var run = 0
  /// The handler whose serializer failed.
  var failedSink: (any ResponseSink)?
  /// Whether monitors were notified of the end of the current task.
  var hasAnnouncedEnd = false
  /// Whether the request had ended before, and no attempt was made since.
  var isLate = false

  init(_ request: any RunOwner, _ core: RequestCore, registryIndex: Int?) {
    self.request = request
    self.core = core
    self.registryIndex = registryIndex
  }

  mutating func fail(with error: AFError) { self.error = error }

  mutating func perform(_ step: RunOrder.RunStep) throws(AFError) -> Outcome<AttemptLoop> {
    switch step {
    case .attempt: .inner
    case .prepareContinuation: try prepareContinuation()
    case .recordFailure: recordFailure()
    case .askRetriers: askRetriers()
    case .prepareRetry: prepareRetry()
    case .prepareLateHandlers: prepareLateHandlers()
    case .settle: settle()
    case .serialize: serialize()
    }
  }

  mutating func prepareLateHandlers() -> Outcome<AttemptLoop> {
    let kind = core.kind
    isLate = core.servesLateHandlers
    run = kind.runNumber
    kind.settle(core, isLate: true)
    if core.error != nil { core.makeMissingExchange() }
    return awaitNotifications()
  }

  /// Waits for the readers of a stream, whose errors belong to the result, and for pending notifications.
  mutating func settle() -> Outcome<AttemptLoop> {
    // Before the end of the run, because from then on the request may be sent again.
    let kind = core.kind
    run = kind.runNumber
    kind.settle(core, isLate: false)
    guard core.traits.contains(.hasReaders) else { return awaitNotifications() }
    return .gate(.readers) { loop in loop.awaitNotifications() }
  }

  private func awaitNotifications() -> Outcome<AttemptLoop> {
    core.notifiesMonitors ? .gate(.notifications) { _ in .done } : .done
  }

  mutating func serialize() -> Outcome<AttemptLoop> {
    // Before the end, because from then on the request may be sent again, with another file. But a handler whose
    // failure leads to a retry needs it. A large file takes time, and the file manager may be the caller's.
    if let remove = core.kind.leftovers, !core.mayBeRetried || !core.hasPendingSinks {
      return .task {
        remove()
      } then: { loop, _ in
        loop.serialize()
      }
    }
    return core.notifiesMonitors ? .gate(.notifications) { loop in loop.serveNext() } : serveNext()
  }

  /// Serves the handlers in their order. A handler that may run the caller's code does so in a task.
  private mutating func serveNext() -> Outcome<AttemptLoop> {
    switch serveAtOnce() {
    case .next(let sink): serve(sink)
    case .failed: .event(.serialized(.failed))
    case .leftovers: serialize()
    case .pendingChange: .gate(.notifications) { loop in loop.serveNext() }
    // The caller may have sent the request again, and what it is now belongs to another run.
    case .delivered: .event(.serialized(.all))
    }
  }

  private func serve(_ sink: any ResponseSink) -> Outcome<AttemptLoop> {
    .task { [core] in
      if core.hasBodySink { await sink.receiveRest(of: core) }
      return await core.serialized(sink)
    } then: { loop, failure in
      guard let failure, loop.core.mayBeRetried else { return loop.serialize() }
      loop.error = failure
      loop.failedSink = sink
      return .event(.serialized(.failed))
    }
  }

  /// The point at which handlers can no longer be served at once.
  private enum Stop {
    /// The handler runs the caller's code.
    case next(any ResponseSink)
    /// A handler has failed, and a retrier may undo that.
    case failed
    /// A file has to be removed before the end.
    case leftovers
    /// Monitors have to be notified of a change of the state before the end.
    case pendingChange
    /// The run has ended, and all responses were delivered.
    case delivered
  }

  /// Serves the handlers whose response can be created at once. It stops at the first that runs the caller's code, and
  /// at one with a failure that a retrier may undo. Without one, ends the request and delivers all responses.
  private mutating func serveAtOnce() -> Stop {
    // Monitors, retriers and the serialization queue cannot wait until a response is awaited.
    let notifies = core.notifiesMonitors
    let retries = core.mayBeRetried
    let hasQueue = core.session.userSerializationQueue != nil
    let isOnLoop = core.session.isOnLoop
    while !hasLeftovers {
      let sink: any ResponseSink
      switch core.nextSink(isOnLoop: isOnLoop) {
      case .sink(let next): sink = next
      case .pendingChange: return .pendingChange
      case .ended(let served):
        deliver(served, notifiesMonitors: notifies, isOnLoop: isOnLoop)
        return .delivered
      }
      guard !notifies else { return .next(sink) }
      if !hasQueue, !retries, sink.canPostpone {
        sink.postpone(core.outcome)
        continue
      }
      guard !sink.runsUserCode else { return .next(sink) }
      guard let failure = sink.serialize(core.outcome), retries else { continue }
      error = failure
      failedSink = sink
      return .failed
    }
    return .leftovers
  }

  /// Whether a file has to be removed before the end, and no handler is left that may need it.
  private var hasLeftovers: Bool { core.kind.leftovers != nil && !core.hasPendingSinks }

  private func deliver(_ served: ShortList<any ResponseSink>, notifiesMonitors: Bool, isOnLoop: Bool) {
    let kind = core.kind
    kind.ended(core)
    let registry = core.session.registry
    let isObserved = notifiesMonitors || core.session.hasOwnDelegate
    var wasLast = registryIndex.map { registry.unregister(at: $0, isObserved: isObserved) } ?? false
    if core.has(.progress) { core.completeProgress() }
    kind.deliver(served, of: core, after: run) {
      if notifiesMonitors { request.notify(.finished(served, isLate: isLate)) }
    }
    if !isOnLoop { core.endDelivery(of: request) }
    // Observers are notified of the end of the session after the events of all its requests.
    if isObserved, registryIndex != nil { wasLast = registry.reported() }
    if wasLast { request.wasLastOfSession() }
  }
}

extension RequestCore {
  /// Serializes the response of a handler. The caller's code runs on the session's serialization queue, if the caller
  /// gave one, else in the current task.
  fileprivate func serialized(_ sink: any ResponseSink) async -> AFError? {
    let outcome = outcome
    guard sink.runsUserCode, let queue = session.userSerializationQueue else {
      return sink.serialize(outcome)
    }
    return await withCheckedContinuation { continuation in
      queue.async { continuation.resume(returning: sink.serialize(outcome)) }
    }
  }
}

// The failure of an attempt: retriers decide whether another attempt follows.
extension AttemptLoop {
  private var failure: AFError {
    guard let error else { preconditionFailure("an attempt failed without an error") }
    return error
  }

  /// Records the failure. If the request is created within the factory call, the failure is handled once the request is
  /// resumed.
  mutating func recordFailure() -> Outcome<AttemptLoop> {
    guard core.session.makesRequestsAtOnce else { return reportFailure() }
    return .gate(.resumed) { loop in loop.reportFailure() }
  }

  /// Stores the failure, and reports the end of the task, after monitors were notified of the change of the state that
  /// may have caused it.
  private mutating func reportFailure() -> Outcome<AttemptLoop> {
    core.notifiesMonitors ? .gate(.notifications) { loop in loop.storeFailure() } : storeFailure()
  }

  private mutating func storeFailure() -> Outcome<AttemptLoop> {
    core.fail(failure)
    core.makeMissingExchange()
    if core.observers.contains(.task), !hasAnnouncedEnd { request.notify(.completed(core.error)) }
    hasAnnouncedEnd = false
    error = core.error ?? failure
    return .done
  }

  mutating func askRetriers() -> Outcome<AttemptLoop> {
    guard core.mayBeRetried else { return .event(.retry(isRequested: false)) }
    // After the end of its session no request starts, not even for a late handler. The readers have received a part of
    // the body and could not tell it apart from the body of another attempt.
    guard registryIndex != nil, core.kind.mayBeginAgain(core) else { return refuseRetry() }
    return .task { [core, request, failure] in
      guard core.servesLateHandlers else { return await request.retryDecision(about: failure) }
      return await core.askRetriers { await request.retryDecision(about: failure) }
    } then: { loop, decision in
      switch decision {
      case .retry: .event(.retry(isRequested: true))
      case .refuse(let error): loop.refuseRetry(with: error)
      }
    }
  }

  /// Ends the request without another attempt.
  ///
  /// - Parameter error: Replaces the failure.
  private mutating func refuseRetry(with error: AFError? = nil) -> Outcome<AttemptLoop> {
    if let error = error ?? core.kind.finalError(of: core) {
      if let sink = failedSink {
        sink.replaceFailure(with: error, parsed: failure)
      } else {
        core.replaceError(error)
      }
    }
    failedSink = nil
    return .event(.retry(isRequested: false))
  }

  mutating func prepareRetry() -> Outcome<AttemptLoop> {
    guard core.prepareRetry(of: request, because: .retrier) else {
      failedSink = nil
      return .event(.failed)
    }
    (error, failedSink, isLate) = (nil, nil, false)
    return .done
  }

  /// Begins with the next request of a resumable upload. This is not a retry, because nothing has failed.
  mutating func prepareContinuation() throws(AFError) -> Outcome<AttemptLoop> {
    // A request that was cancelled by now announces the end of the task with its failure.
    if core.observers.contains(.task), core.state.withLock({ $0.lifecycle.mayAttemptAgain }) {
      request.notify(.completed(nil))
      hasAnnouncedEnd = true
    }
    guard core.prepareRetry(of: request, because: .continuation) else {
      throw core.error ?? (core.isAbandoned ? core.session.reasonOfEnd : .explicitlyCancelled)
    }
    hasAnnouncedEnd = false
    return .done
  }
}

extension Duration {
  /// Returns the duration of a delay in seconds: zero for negative values and NaN, at most a year.
  static func retryDelay(_ delay: TimeInterval) -> Duration {
    guard delay > 0 else { return .zero }
    return .milliseconds(Int64(min(delay * 1000, 31_536_000_000).rounded(.up)))
  }
}
