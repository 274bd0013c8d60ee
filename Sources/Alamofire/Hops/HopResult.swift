import Foundation
import FoundationNetworking
import HTTPWire

// The last response becomes the response of the request.
extension HopLoop {
  /// Keeps the last response, unless the kind of the request refuses it.
  mutating func storeResult() -> Outcome<HopLoop> {
    let refusal = kind.traits.contains(.validatesEarly) ? self.refusal() : nil
    keepResult()
    guard let refusal else { return .done }
    return .task { [delegate] in
      await delegate.handshakeFailure()
    } then: { (_, failure) throws(AFError) in
      // A validator that rejects the response decides which error it is.
      throw failure?.keepingBody(of: refusal.response) ?? refusal.error
    }
  }

  private func refusal() -> (response: WireResponse, error: AFError)? {
    guard let response, let error = kind.refusal(of: response, to: request.url) else { return nil }
    return (response, error)
  }

  /// Keeps the last response as that of the request.
  mutating func keepResult() {
    // Taken, because the body may be large.
    guard let response = self.response.take() else { return }
    let exchange = makeExchange(response.head, trailers: response.trailers)
    self.exchange = exchange
    var body = response.body
    if delegate.observers.contains(.task) || request.hasSink {
      body = delegate.shown(body, of: request, isKept: deliversBody)
    }
    delegate.keep(exchange, body: deliversBody ? body : nil)
  }

  /// Returns the result of the attempt so far, with `head` as the head of its last response.
  func makeExchange(_ head: ResponseHead?, trailers: FieldBlock? = nil) -> Exchange {
    // The URL of the caller's request is parsed already.
    var url = redirectCount == 0 ? urlRequest.url : shownURL(of: request)
    if case .journal = handler { url = kind.storedLocation ?? url }
    // Without hops nothing went over the network that the transport could measure.
    let metrics = records.isEmpty ? TaskMetrics(from: startDate ?? Date()) : nil
    let given = handler.given?.response
    if let head, !head.role.isOfHTTP {
      let other = head.role == .missing ? nil : given ?? URLResponse(url, head)
      return Exchange(url: url, other: other, records, metrics: metrics)
    }
    return Exchange(
      url: url, head: head, trailers: trailers, hops: records,
      response: head == nil ? nil : given as? HTTPURLResponse, metrics: metrics)
  }

  /// Returns the URL of a hop as the caller writes it.
  func shownURL(of request: WireRequest) -> URL? {
    URL(wire: kind.shownURL(of: request.url))
  }
}
