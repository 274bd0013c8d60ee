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

  @inline(never)
  func storeResult() throws(AFError) -> AttemptEvent {
    guard let response = values.response else { return .done }
    let exchange = exchange(response.head)
    values.exchange = exchange
    // Released early, because the body may be large.
    values.response = nil
    let request = values.request
    let isTaken = core.observers.contains(.task) || request.sink != nil
    let body = isTaken ? core.shown(response.body, of: request, isKept: values.keepsBody) : response.body
    core.keep(exchange, body: values.keepsBody ? body : nil)
    if core.webSocket != nil { try checkUpgrade(response.head) }
    return .done
  }

  /// A WebSocket request has no other result than a connection.
  private func checkUpgrade(_ head: ResponseHead) throws(AFError) {
    guard head.status != 101 else { return }
    let error = WebSocketHandshakeError.status(
      head.status, supportedVersions: head.block.values(of: "Sec-WebSocket-Version").first)
    throw .sessionTaskFailed(
      error: URLError.made(.badServerResponse, error.message, url: values.request.url))
  }

  /// The attempt so far, with `head` as the head of its last response.
  func exchange(_ head: ResponseHead?) -> Exchange {
    // The URL of the caller's request is parsed already.
    let url = values.redirectCount == 0 ? values.urlRequest.url : shownURL(of: values.request)
    // Without hops nothing went over the network that the transport could measure.
    let metrics = values.hops.isEmpty ? TaskMetrics(from: values.startDate ?? Date()) : nil
    let given = values.handler.given?.response
    if let head, head.role == .other {
      return Exchange(url: url, other: given ?? URLResponse(url, head), values.hops, metrics: metrics)
    }
    return Exchange(
      url: url, head: head, hops: values.hops, response: head == nil ? nil : given as? HTTPURLResponse,
      metrics: metrics)
  }

  /// The URL of a hop as the caller writes it.
  private func shownURL(of request: WireRequest) -> URL? {
    URL(string: core.webSocket == nil ? request.url : WebSocketURL.webSocket(request.url))
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

  /// Validates unless a validator runs code of the caller or monitors are told of each.
  func validateAtOnce() throws(AFError) -> AttemptEvent? {
    if let error = core.error { throw error }
    guard let exchange = values.exchange else { return .done }
    let (validators, request, body) = core.judged()
    if validators.isEmpty { return .done }
    guard !core.notifiesMonitors, validators.allSatisfy({ !$0.runsUserCode }) else { return nil }
    for validator in validators { try validator.check(request, exchange, body) }
    return .done
  }

  /// Runs the validators in the order in which they were added, until one fails.
  @inline(never)
  nonisolated(nonsending) func validate() async throws(AFError) -> AttemptEvent {
    try checkAlive()
    guard let exchange = values.exchange else { return .done }
    let (validators, request, body) = core.judged()
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
