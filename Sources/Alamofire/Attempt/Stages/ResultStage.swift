import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

// The result of an attempt: the request waits to be sent, and its last response is stored, moved and validated.
extension RequestRun {
  func waitForResume() throws(AFError) -> Outcome {
    guard core.observers.contains(.task) || !core.maySend else { return .done }
    if core.notifiesMonitors { core.tellCreated(values.urlRequest, of: request) }
    guard !core.observers.contains(.task), core.mayWaitUnobserved() else {
      try core.checkAlive()
      return .event(.observed)
    }
    return .gate(.resumed) { (run) throws(AFError) in
      try run.core.checkAlive()
      // Observers may have been added while the request waited.
      return .event(run.core.observers.contains(.task) ? .observed : .done)
    }
  }

  // MARK: The response for the caller

  /// Keeps the last response. One that refuses a WebSocket handshake ends the request, which has no other result than a
  /// connection.
  func storeResult() -> Outcome {
    let response = values.response
    keepResult()
    guard core.webSocket != nil, let response, response.head.status != 101 else { return .done }
    return .task { [core] in
      await core.handshakeFailure()
    } then: { (run, failure) throws(AFError) in
      // The error is that of a validator, if one rejects the response.
      if let failure { throw failure.keepingBody(of: response) }
      let error = WebSocketHandshakeError.status(
        response.head.status,
        supportedVersions: response.head.block.values(of: "Sec-WebSocket-Version").first)
      let excerpt = response.body.map { BodyExcerpt.sentence($0) } ?? ""
      throw .sessionTaskFailed(
        error: URLError.made(.badServerResponse, error.message + excerpt, url: run.values.request.url))
    }
  }

  /// Keeps the last response as that of the request.
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

  func completeStream() -> Outcome {
    core.stream?.complete()
    return .done
  }

  func waitForHeadDecision() -> Outcome {
    core.mayAwaitHeadDecision ? .gate(.headDecision) { _ in .done } : .done
  }

  /// Runs the validators in the order in which they were added, until one fails. Those that may run code of the caller
  /// do so in a task.
  func validate() throws(AFError) -> Outcome {
    // The response to a WebSocket handshake was validated before.
    guard core.webSocket == nil else { return .done }
    try core.checkAlive()
    guard core.hasValidators, let exchange = values.exchange else { return .done }
    let (validators, urlRequest, body) = core.validationInputs()
    guard core.notifiesMonitors || validators.contains(where: \.runsUserCode) else {
      for validator in validators { try validator.check(urlRequest, exchange, body) }
      return .done
    }
    return .task { [core, request] () throws(AFError) in
      for validator in validators {
        let failure = validator.failure(urlRequest, exchange, body)
        if let failure { core.fail(failure) }
        if core.notifiesMonitors { core.tellValidated(urlRequest, exchange, body.data, failure, of: request) }
        if let failure { throw failure }
      }
    }
  }

  func recordSuccess() -> Outcome {
    if core.observers.contains(.task) { core.tellCompleted(nil, of: request) }
    return .done
  }
}

// The end of a request: every handler receives its response, in the order in which they were added.
extension RequestRun {
  func prepareLateHandlers() -> Outcome {
    core.webSocket?.end(with: core.error)
    if core.error != nil { core.makeMissingExchange() }
    return awaitNotifications()
  }

  /// Waits for the readers of a stream, whose errors belong to the result, and for pending notifications.
  func settle() -> Outcome {
    // Before the end of the run, because from then on the request may be sent anew.
    core.webSocket?.end(with: core.error)
    settleDownload()
    return core.stream == nil ? awaitNotifications() : .gate(.readers) { run in run.awaitNotifications() }
  }

  private func awaitNotifications() -> Outcome {
    core.notifiesMonitors ? .gate(.notifications) { _ in .done } : .done
  }

  func serialize() -> Outcome {
    core.notifiesMonitors ? .gate(.notifications) { run in run.serveNext() } : serveNext()
  }

  /// Serves the handlers in their order. One that may run code of the caller does so in a task.
  private func serveNext() -> Outcome {
    guard let sink = nextPendingSink() else {
      return .event(.serialized(values.failedSink == nil ? .all : .failed))
    }
    return .task { [core] in
      if core.hasBodySink, let reader = sink as? ResponseChunkReader { await reader.handOutRest(of: core) }
      return await core.serialized(sink)
    } then: { run, failure in
      guard let failure, run.core.mayBeRetried else { return run.serialize() }
      run.values.error = failure
      run.values.failedSink = sink
      return .event(.serialized(.failed))
    }
  }

  /// Serves the handlers whose response can be made at once. It stops at the first that runs code of the caller, and at
  /// one whose failure a retrier may undo. Without one, ends the request and delivers all responses.
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
    if notifiesMonitors { core.tellFinished(served, of: request) }
    if let transfer = core.transfer {
      end(transfer, served)
    } else {
      for sink in served { sink.deliver() }
    }
  }
}

extension RequestCore {
  /// Serializes the response of a handler. Code of the caller runs on the session's serialization queue, if the caller
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
