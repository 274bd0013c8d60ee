import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// The results of the last attempt of a request: what was sent, what came back, and the reason of a failure.
///
/// ``history`` has the requests and responses of earlier attempts.
struct RequestResults: Sendable {
  /// The request of the last attempt; `nil` until one has been created.
  private(set) var request: URLRequest?
  /// The number of requests that have been created.
  private(set) var requestNumber = 0
  /// The response and the metrics of the attempt, or of its part before a failure.
  private(set) var exchange: Exchange?
  /// The response whose body is being read; `nil` once it is part of ``exchange``.
  private(set) var begun: BegunResponse?
  /// The body of the response, as far as it is stored.
  private(set) var data: Data?
  /// The first error of the attempt. Later errors are its consequences.
  private(set) var error: AFError?
  private(set) var retryCount = 0
  var history = Rare<AttemptHistory>()

  /// Returns the request of the previous attempt, if there was one.
  mutating func replaceRequest(with new: URLRequest) -> URLRequest? {
    defer { request = new }
    requestNumber += 1
    return request
  }

  /// The head of the response, as soon as it has arrived.
  var head: ResponseHead? { exchange.map { $0.head } ?? begun?.head }

  /// Keeps the head of the response that the caller sees, until the response ends.
  mutating func beginResponse(_ head: ResponseHead) { begun = BegunResponse(head: head) }

  /// Returns the response whose body is being read, which is the response to `url`.
  mutating func begunResponse(to url: URL?) -> LazyResponse? { begun?.response(to: url) }

  /// Returns the exchange that the new one replaces.
  mutating func store(_ exchange: Exchange, body: Data?) -> Exchange? {
    begun = nil
    data = body
    return replace(&self.exchange, with: exchange)
  }

  /// Keeps the first error.
  mutating func fail(_ error: AFError) {
    if self.error == nil { self.error = error }
  }

  /// Replaces the error with the error of a retrier that was asked about it. Returns the earlier error.
  mutating func replaceError(with error: AFError) -> AFError? { replace(&self.error, with: error) }

  /// Makes the metrics of an attempt that ended before anything was sent.
  mutating func makeMissingExchange(protecting names: Set<String>) {
    guard exchange == nil else { return }
    exchange = Exchange(
      url: request?.url, head: nil, metrics: TaskMetrics(from: Date()), protectedHeaders: names)
  }

  /// Forgets everything but the request, for a further attempt. Returns the exchange of the attempt that has failed.
  ///
  /// - Parameter counts: Whether the attempt is counted.
  mutating func beginRetry(counts: Bool = true) -> Exchange? {
    defer {
      if counts { retryCount += 1 }
      error = nil
      data = nil
      exchange = nil
      begun = nil
    }
    return exchange
  }
}

/// A response of which at least the head has arrived. Foundation's object is created on first access.
struct BegunResponse: Sendable {
  let head: ResponseHead
  private var made: LazyResponse?

  init(head: ResponseHead) { self.head = head }

  /// Returns the response, which is the response to `url`.
  mutating func response(to url: URL?) -> LazyResponse {
    if let made { return made }
    let response = LazyResponse(url: url, head: head)
    made = response
    return response
  }
}

/// The attempts before the last one. Most requests have none.
struct AttemptHistory: RareValue {
  static let unchanged = Rare<AttemptHistory>.Memory()
  /// The number of attempts that a request keeps, with the current one. A retrier may ask for any number.
  static let limit = 100

  private(set) var requests: [URLRequest] = []
  private(set) var exchanges: [Exchange] = []
  /// Whether earlier attempts are forgotten, because there is no limit to their number.
  var isForgotten = false

  /// Adds the request of an attempt. Returns the request of a forgotten attempt.
  mutating func add(_ request: URLRequest) -> URLRequest? { Self.append(request, to: &requests) }

  mutating func add(_ exchange: Exchange) { _ = Self.append(exchange, to: &exchanges) }

  private static func append<Element>(_ element: Element, to elements: inout [Element]) -> Element? {
    defer { elements.append(element) }
    return elements.count >= limit - 1 ? elements.removeFirst() : nil
  }
}

extension RequestCore.CoreState {
  /// The requests of all attempts, in their order.
  var requests: [URLRequest] { results.history.value.requests + (results.request.map { [$0] } ?? []) }

  /// The responses and metrics of all attempts, in their order.
  var exchanges: [Exchange] { results.history.value.exchanges + (results.exchange.map { [$0] } ?? []) }

  /// The body for the caller; `nil` if chunk readers receive it.
  var collectedBody: Data? { bodies.read { $0.chunks } != nil ? nil : results.data }

  /// Whether the requests and responses of earlier attempts are retained.
  var keepsEarlierAttempts: Bool { results.history.read { $0.isForgotten } != true }

  /// Adds the request of the current attempt. Returns the request of a forgotten attempt, which has to be released
  /// outside of the lock, because its body stream may be an object of the caller.
  mutating func add(_ request: URLRequest) -> URLRequest? {
    let earlier = results.replaceRequest(with: request)
    guard let earlier, keepsEarlierAttempts else { return earlier }
    return results.history.value.add(earlier)
  }

  /// The results as response handlers receive them.
  var outcome: RequestOutcome {
    RequestOutcome(
      request: results.request, exchange: results.exchange, data: collectedBody, error: results.error)
  }
}

extension RequestCore {
  var error: AFError? { state.withLock { $0.results.error } }

  /// The response of the last attempt, as soon as its head has arrived.
  var response: HTTPURLResponse? {
    // Both have a lock of their own, so they create it outside of this one.
    let (exchange, begun) = state.withLock { ($0.results.exchange, $0.begunResponse) }
    return exchange?.httpResponse ?? begun?.value
  }

  var outcome: RequestOutcome {
    var outcome = state.withLock { $0.outcome }
    kind.complete(&outcome)
    return outcome
  }

  /// Keeps the first error of an attempt.
  func fail(_ error: AFError) { state.withLock { $0.results.fail(error) } }

  /// Replaces the error with the error of a retrier that was asked about it.
  func replaceError(_ error: AFError) { _ = state.withLock { $0.results.replaceError(with: error) } }

  /// Stores the response and the metrics of an attempt, or of the part of it before a failure.
  func store(_ exchange: Exchange, body: Data?) {
    _ = state.withLock { $0.results.store(exchange, body: body) }
  }

  /// Stores the response to the handshake of a WebSocket connection. The metrics follow when the connection ends.
  func connected(_ head: ResponseHead) {
    let names = profile.options.protectedHeaders
    _ = state.withLock { state in
      let url = state.currentRequest?.url
      return state.results.store(Exchange(url: url, head: head, protectedHeaders: names), body: nil)
    }
  }

  /// Validates the response to a WebSocket handshake. Returns the failure of the first validator that rejects it, or
  /// the error with which the request has ended.
  func handshakeFailure() async -> AFError? {
    let (validators, request, body) = validationInputs()
    guard !validators.isEmpty, let exchange = outcome.exchange else { return nil }
    var failure: AFError?
    for validator in validators where failure == nil {
      failure = validator.failure(request, exchange, body)
    }
    return error ?? failure
  }

  /// Makes the metrics of an attempt that ended before anything was sent.
  func makeMissingExchange() {
    let names = profile.options.protectedHeaders
    state.withLock { $0.results.makeMissingExchange(protecting: names) }
  }
}

extension RequestCore {
  func created(_ request: URLRequest, of owner: any RunOwner) {
    var notices: RequestWatchers.Notices?
    var listeners: RequestListeners?
    let (_, begun) = state.withLock { state -> (URLRequest?, BegunTask?) in
      if state.observed.added.isChanged {
        notices = state.observed.added.value.watchers.requestCreated()
        listeners = state.observed.added.value.listeners
      }
      return (state.add(request), session.makesRequestsAtOnce ? state.beginTask() : nil)
    }
    if let listeners {
      for continuation in listeners.requests { continuation.yield(request) }
      for (redaction, continuations) in listeners.commands {
        let command = owner.command(redacting: redaction)
        for continuation in continuations { continuation.yield(command) }
      }
    }
    if let handler = notices?.request { handler.queue.async { handler.closure(request) } }
    if let handler = notices?.cURL { handler.queue.async { handler.closure(owner) } }
    begun?.show(of: owner)
  }

  /// Records a request that was created, but could not be adapted, and is therefore never sent in this form.
  func adaptationFailed(_ request: URLRequest, of owner: any RunOwner) {
    _ = state.withLock { $0.add(request) }
    creationFailed(of: owner)
  }

  func creationFailed(of owner: any RunOwner) {
    let handler = state.withLock { $0.observed.added.value.watchers.creationFailed() }
    if let handler { handler.queue.async { handler.closure(owner) } }
  }
}
