import Foundation
import FoundationNetworking
import HTTPWire

extension Pipeline {
  /// Stage 3: sends the request, and follows where its responses lead (RFC 9110 §15.4). Every hop goes
  /// through authentication and transport by itself, so that it can be seen and measured.
  nonisolated(nonsending) func followingRedirects(_ urlRequest: URLRequest) async throws(AFError) -> Exchange {
    let options = core.options
    var wire = try WireRequest(urlRequest, for: core)
    let home = wire.origin
    var hops: [Exchange.Hop] = []
    var redirects = 0
    while true {
      let (response, sent) = try await authenticated(wire, home: home, hops: &hops)
      switch decision(response.head, sent, count: redirects, options) {
      case .notARedirect:
        // The URL of the user's own request is there already; only another one has to be parsed.
        return finished(response, url: redirects == 0 ? urlRequest.url : URL(string: sent.url), hops: hops)
      case .follow(let plan):
        redirects += 1
        wire = sent.following(plan)
      case .refuse(let reason):
        _ = finished(response, url: URL(string: sent.url), hops: hops)
        throw .sessionTaskFailed(error: URLError.refused(reason, from: sent.url))
      }
    }
  }

  private func decision(
    _ head: ResponseHead, _ sent: WireRequest, count: Int, _ options: TransportOptions
  ) -> Redirect.Decision {
    guard (300..<400).contains(head.status) else { return .notARedirect }
    return Redirect.decide(
      status: head.status, location: head.block.value(of: "Location"),
      request: Redirect.Request(
        url: sent.url, origin: sent.origin, method: sent.method, hasBody: sent.body.isPresent),
      hopCount: count, limit: options.redirectLimit, protectedHeaders: options.protectedHeaders)
  }

  private func finished(_ response: WireResponse, url: URL?, hops: [Exchange.Hop]) -> Exchange {
    let exchange = Exchange(url: url, head: response.head, hops: hops)
    core.received(exchange, body: response.body)
    return exchange
  }
}
