import Foundation
import FoundationNetworking
import HTTPWire

extension Pipeline {
  /// Stage 3: sends the request, and follows where its responses lead (RFC 9110 §15.4). Every hop goes
  /// through authentication and transport by itself, so that it can be seen and measured.
  func followingRedirects(_ urlRequest: URLRequest) async throws(AFError) -> Exchange {
    let options = core.options
    var wire = try WireRequest(urlRequest, for: core)
    var hops: [Exchange.Hop] = []
    while true {
      let (response, sent) = try await authenticated(wire, hops: &hops)
      let decision = Redirect.decide(
        status: response.head.status, location: response.head.redirectLocation, url: sent.url,
        method: sent.method, hasBody: sent.body.isPresent, hopCount: hops.count - 1,
        limit: options.redirectLimit)
      switch decision {
      case .notARedirect: return finished(response, url: sent.url, hops: hops)
      case .follow(let plan): wire = sent.following(plan, protectedHeaders: options.protectedHeaders)
      case .refuse(let reason):
        _ = finished(response, url: sent.url, hops: hops)
        throw .sessionTaskFailed(error: URLError.refusedRedirect(reason, from: sent.url))
      }
    }
  }

  private func finished(_ response: WireResponse, url: String, hops: [Exchange.Hop]) -> Exchange {
    let exchange = Exchange(url: url, hops: hops)
    core.received(exchange, body: response.body)
    return exchange
  }
}
