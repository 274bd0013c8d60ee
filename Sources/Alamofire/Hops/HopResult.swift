import Foundation
import FoundationNetworking
import HTTPWire

// The last response becomes that of the request.
extension HopLoop {
  /// Keeps the last response. One that refuses a WebSocket handshake ends the request, which has no other result than a
  /// connection.
  mutating func storeResult() -> Outcome<HopLoop> {
    guard core.webSocket != nil, let response, response.head.status != 101 else {
      keepResult()
      return .done
    }
    keepResult()
    return .task { [core] in
      await core.handshakeFailure()
    } then: { (hops, failure) throws(AFError) in
      // The error is that of a validator, if one rejects the response.
      if let failure { throw failure.keepingBody(of: response) }
      let error = WebSocketHandshakeError.status(
        response.head.status,
        supportedVersions: response.head.block.values(of: "Sec-WebSocket-Version").first)
      let excerpt = response.body.map { BodyExcerpt.sentence($0) } ?? ""
      throw .sessionTaskFailed(
        error: URLError.made(.badServerResponse, error.message + excerpt, url: hops.request.url))
    }
  }

  /// Keeps the last response as that of the request.
  mutating func keepResult() {
    // Taken, because the body may be large.
    guard let response = self.response.take() else { return }
    let exchange = makeExchange(response.head, trailers: response.trailers)
    self.exchange = exchange
    var body = response.body
    if core.observers.contains(.task) || request.hasSink {
      body = core.shown(body, of: request, isKept: deliversBody)
    }
    core.keep(exchange, body: deliversBody ? body : nil)
  }

  /// Returns the result of the attempt so far, with `head` as the head of its last response.
  func makeExchange(_ head: ResponseHead?, trailers: FieldBlock? = nil) -> Exchange {
    // The URL of the caller's request is parsed already.
    var url = redirectCount == 0 ? urlRequest.url : shownURL(of: request)
    if case .journal = handler { url = core.transfer?.location ?? url }
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
    URL(wire: core.webSocket == nil ? request.url : WebSocketURL.webSocket(request.url))
  }
}
