import Foundation
import FoundationNetworking
import HTTPWire

// The upgrade of requests to hosts with an HSTS policy (RFC 6797 §8.3). It comes before every other use of the URL.
extension WireRequest {
  /// The request, sent to the `https` URL if its host has an HSTS policy.
  var upgraded: WireRequest {
    guard profile.hasHostPolicies, let hosts = profile.options.strictTransportSecurity,
      let target = hosts.upgrade(url, origin)
    else { return self }
    return redirected {
      $0.url = target.url
      $0.origin = target.origin
    }
  }

  /// Returns the redirect with the `https` URL if the host of its target has an HSTS policy. Fields and credentials
  /// that the proposed redirect drops stay dropped.
  func upgraded(_ plan: RedirectPlan) -> RedirectPlan {
    guard profile.hasHostPolicies, let hosts = profile.options.strictTransportSecurity,
      let target = hosts.upgrade(plan.url, plan.origin)
    else { return plan }
    return plan.withTarget(target.url, origin: target.origin)
  }
}

extension URLRequest {
  /// Returns this request with the URL of `request` if that is an upgrade of `original`.
  func withURL(of request: WireRequest, upgradedFrom original: WireRequest) -> URLRequest {
    guard request !== original, let url = URL(wire: request.url) else { return self }
    var result = self
    let isWebSocket = self.url?.scheme?.lowercased() == "ws"
    result.url = isWebSocket ? URL(wire: WebSocketURL.webSocket(request.url)) : url
    return result
  }
}
