import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

// The result of an attempt: the request waits to be sent, and its last response is stored, moved and validated.
extension AttemptDriver {
  func waitForResumeAtOnce() -> AttemptEvent? {
    !core.observers.contains(.task) && core.maySend ? .done : nil
  }

  @inline(never)
  nonisolated(nonsending) func waitForResume() async throws(AFError) -> AttemptEvent {
    if core.notifiesMonitors { tellCreated(values.urlRequest) }
    var isObserved = core.observers.contains(.task)
    // Observers may have been added while the request waited.
    if !isObserved { isObserved = await !core.untilResumedUnobserved() || core.observers.contains(.task) }
    try checkAlive()
    return isObserved ? .observed : .done
  }

  // MARK: The response for the caller

  /// Keeps the last response, unless it refuses a WebSocket handshake.
  func storeResultAtOnce() -> AttemptEvent? {
    if core.webSocket != nil, let head = values.response?.head, head.status != 101 { return nil }
    keepResult()
    return .done
  }

  /// Ends a WebSocket request, which has no other result than a connection. The error is that of a validator, if one
  /// rejects the response.
  @inline(never)
  nonisolated(nonsending) func storeRefusal() async throws(AFError) -> AttemptEvent {
    let response = values.response
    keepResult()
    if let failure = await core.handshakeFailure() { throw failure.keepingBody(of: response) }
    guard let response else { return .done }
    let error = WebSocketHandshakeError.status(
      response.head.status,
      supportedVersions: response.head.block.values(of: "Sec-WebSocket-Version").first)
    let excerpt = response.body.map { BodyExcerpt.sentence($0) } ?? ""
    throw .sessionTaskFailed(
      error: URLError.made(.badServerResponse, error.message + excerpt, url: values.request.url))
  }

  /// Keeps the last response as that of the request.
  @inline(never)
  func keepResult() {
    // Taken, because the body may be large.
    guard let response = values.response.take() else { return }
    let exchange = exchange(response.head, trailers: response.trailers)
    values.exchange = exchange
    var body = response.body
    if core.observers.contains(.task) || values.request.hasSink {
      body = core.shown(body, of: values.request, isKept: values.deliversBody)
    }
    core.keep(exchange, body: values.deliversBody ? body : nil)
  }

  /// Returns the result of the attempt so far, with `head` as the head of its last response.
  func exchange(_ head: ResponseHead?, trailers: FieldBlock? = nil) -> Exchange {
    // The URL of the caller's request is parsed already.
    var url = values.redirectCount == 0 ? values.urlRequest.url : shownURL(of: values.request)
    if case .journal = values.handler { url = core.transfer?.location ?? url }
    // Without hops nothing went over the network that the transport could measure.
    let metrics = values.hops.isEmpty ? TaskMetrics(from: values.startDate ?? Date()) : nil
    let given = values.handler.given?.response
    if let head, !head.role.isOfHTTP {
      let other = head.role == .missing ? nil : given ?? URLResponse(url, head)
      return Exchange(url: url, other: other, values.hops, metrics: metrics)
    }
    return Exchange(
      url: url, head: head, trailers: trailers, hops: values.hops,
      response: head == nil ? nil : given as? HTTPURLResponse, metrics: metrics)
  }

  /// Returns the URL of a hop as the caller writes it.
  func shownURL(of request: WireRequest) -> URL? {
    URL(wire: core.webSocket == nil ? request.url : WebSocketURL.webSocket(request.url))
  }

  // MARK: Streams and validation

  func completeStream() -> AttemptEvent {
    core.stream?.complete()
    return .done
  }

  nonisolated(nonsending) func waitForHeadDecision() async -> AttemptEvent {
    await core.headDecided()
    return .done
  }

  /// Validates unless a validator runs code of the caller or monitors are notified of each.
  func validateAtOnce() throws(AFError) -> AttemptEvent? {
    if let error = core.error { throw error }
    guard core.hasValidators, let exchange = values.exchange else { return .done }
    let (validators, request, body) = core.validationInputs()
    guard !core.notifiesMonitors, validators.allSatisfy({ !$0.runsUserCode }) else { return nil }
    for validator in validators { try validator.check(request, exchange, body) }
    return .done
  }

  /// Runs the validators in the order in which they were added, until one fails.
  @inline(never)
  nonisolated(nonsending) func validate() async throws(AFError) -> AttemptEvent {
    try checkAlive()
    guard let exchange = values.exchange else { return .done }
    let (validators, request, body) = core.validationInputs()
    let driver = self
    let failure = await core.session.offLoop { () -> AFError? in
      for validator in validators {
        let failure = validator.failure(request, exchange, body)
        if let failure { driver.core.fail(failure) }
        if driver.core.notifiesMonitors { driver.tellValidated(request, exchange, body.data, failure) }
        if let failure { return failure }
      }
      return nil
    }
    if let failure { throw failure }
    return .done
  }

  func recordSuccess() -> AttemptEvent {
    if core.observers.contains(.task) { tellCompleted(nil) }
    return .done
  }
}

// The end of a request: every handler receives its response, in the order in which they were added.
extension AttemptDriver {
  func prepareLateHandlersAtOnce() -> AttemptEvent? {
    core.webSocket?.end(with: core.error)
    if core.error != nil { core.makeMissingExchange() }
    return core.notifiesMonitors ? nil : .done
  }

  func settleAtOnce() -> AttemptEvent? {
    // Before the end of the run, because from then on the request may be sent anew.
    core.webSocket?.end(with: core.error)
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
    if values.failedSink != nil { return .serialized(.failed) }
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
      if let failure = await serialized(sink), core.mayBeRetried {
        values.error = failure
        values.failedSink = sink
        return .serialized(.failed)
      }
      if core.notifiesMonitors { await core.changesAreTold() }
      next = nextPendingSink()
    }
    return .serialized(values.failedSink == nil ? .all : .failed)
  }

  /// Serves the handlers whose response can be made at once. It stops at the first that runs code of the caller, and at
  /// one whose failure a retrier may undo. Without one, ends the request and delivers all responses.
  @inline(never)
  private func nextPendingSink() -> (any ResponseSink)? {
    // Before the end, because from then on the request may be sent anew, with a file of its own.
    core.removeUploadedFile()
    // Monitors, retriers and the serialization queue cannot wait until a response is awaited.
    let notifies = core.notifiesMonitors
    let retries = core.mayBeRetried
    let hasQueue = core.session.userSerializationQueue != nil
    while true {
      let (next, served) = core.nextSink()
      guard let sink = next else {
        deliver(served, notifiesMonitors: notifies)
        return nil
      }
      guard !notifies else { return sink }
      let outcome = core.outcome
      if !hasQueue, !retries, sink.postpone(outcome) { continue }
      guard !sink.runsUserCode else { return sink }
      guard let failure = sink.serialize(outcome), retries else { continue }
      values.error = failure
      values.failedSink = sink
      return nil
    }
  }

  private func deliver(_ served: ShortList<any ResponseSink>, notifiesMonitors: Bool) {
    answerResumeDataHandlers()
    if let registryIndex { core.session.unregister(at: registryIndex) }
    if core.has(.progress) { core.completeProgress() }
    if notifiesMonitors { tellFinished(served) }
    if let transfer = core.transfer {
      end(transfer, served)
    } else {
      for sink in served { sink.deliver() }
    }
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
