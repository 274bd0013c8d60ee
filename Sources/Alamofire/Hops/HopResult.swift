import Foundation
import FoundationNetworking
import HTTPWire

/// The response of the last hop, or the failure of its transfer.
struct HopResponses: Sendable {
  /// The response; `nil` without one, and after the request has stored it.
  private(set) var last: WireResponse?
  var failure: TransportFailure?
  /// Whether the body of the response is delivered to the caller.
  var deliversBody = true
  /// The last response, with the records of all hops.
  var exchange: Exchange?

  /// Stores a response. Returns the facts in its head.
  mutating func accept(_ response: consuming WireResponse) -> ResponseFacts {
    var facts = ResponseFacts()
    facts.status = UInt16(clamping: response.head.status)
    facts.isHTTP = response.head.role.isHop
    last = response
    return facts
  }

  /// Removes and returns the response, because its body may be large.
  mutating func take() -> WireResponse? { last.take() }
}

/// The hops that went over the wire.
struct HopRecords: Sendable {
  private(set) var hops: ShortList<Exchange.Hop> = []
  /// The start of the first hop that the engine does not measure.
  private var start: Date?

  /// Notes the start of a hop that the engine does not measure.
  mutating func begin() {
    if start == nil { start = Date() }
  }

  mutating func add(_ hop: Exchange.Hop) { hops.append(hop) }

  /// The metrics if nothing went over the network that the transport could measure.
  var metrics: TaskMetrics? { hops.isEmpty ? TaskMetrics(from: start ?? Date()) : nil }
}

/// The result of the hops of an attempt.
struct HopResult: Sendable {
  /// The last response; `nil` if there is none.
  var exchange: Exchange?
  /// The URL and the method of the last request over the wire.
  var url: String?
  var method: String?
  var isRedirected = false
}

// The last response becomes the response of the request.
extension HopLoop {
  /// Keeps the last response, unless the kind of the request refuses it.
  mutating func storeResult() -> Outcome<HopLoop> {
    let refusal = traits.contains(.validatesEarly) ? self.refusal() : nil
    recordResult()
    guard let refusal else { return .done }
    return .task { [delegate] in
      await delegate.handshakeFailure()
    } then: { (_, failure) throws(AFError) in
      // A validator that rejects the response decides which error it is.
      throw failure?.keepingBody(of: refusal.response) ?? refusal.error
    }
  }

  private func refusal() -> (response: WireResponse, error: AFError)? {
    guard let response = responses.last, let error = kind.refusal(of: response, to: request.url) else {
      return nil
    }
    return (response, error)
  }

  /// Stores the last response as the request's.
  mutating func recordResult() {
    guard let response = responses.take() else { return }
    let exchange = makeExchange(response.head, trailers: response.trailers, response.metrics)
    responses.exchange = exchange
    delegate.store(exchange, body: shownBody(of: response))
  }

  /// Returns the body of the last response that the request has from now on, after observers were notified of it.
  private func shownBody(of response: WireResponse) -> Data? {
    let delivers = responses.deliversBody
    guard delegate.observers.contains(.task) || request.hasSink else { return delivers ? response.body : nil }
    let body = delegate.shown(response.body, of: request, isDelivered: delivers)
    return delivers ? body : nil
  }

  /// Returns the result of the attempt so far, with `head` as the head of its last response, and `transfer` as the
  /// numbers of that response.
  func makeExchange(
    _ head: ResponseHead?, trailers: FieldBlock? = nil, _ transfer: TransferMetrics? = nil
  ) -> Exchange {
    // The URL of the caller's request is parsed already.
    var url = redirects.count == 0 ? urlRequest.url : shownURL(of: request)
    if case .journal = route.handler { url = kind.storedLocation ?? url }
    let metrics = records.metrics
    let given = route.handler.given?.response
    let unlisted = route.handler.isOverNetwork ? nil : transfer
    let names = records.hops.isEmpty ? request.profile.options.protectedHeaders : []
    if let head, !head.role.isOfHTTP {
      let other = head.role == .missing ? nil : given ?? URLResponse(url, head)
      return Exchange(
        url: url, other: other, records.hops, metrics: metrics, unlisted: unlisted, protectedHeaders: names)
    }
    return Exchange(
      url: url, head: head, trailers: trailers, hops: records.hops,
      response: head == nil ? nil : given as? HTTPURLResponse, metrics: metrics, unlisted: unlisted,
      protectedHeaders: names)
  }

  /// Returns the URL of a hop as the caller writes it.
  func shownURL(of request: WireRequest) -> URL? {
    URL(wire: kind.shownURL(of: request.url))
  }
}
