import Foundation
import FoundationNetworking
import HTTPWire

// Before anything else looks at the URL of a hop: hosts that want TLS get it (RFC 6797 §8.3).
extension WireRequest {
  /// The same request, or the one that goes to `https` in its place.
  var upgraded: WireRequest {
    guard profile.hasHostPolicies, let hosts = profile.options.strictTransportSecurity,
      let target = hosts.upgrade(url, origin)
    else { return self }
    return redirected {
      $0.url = target.url
      $0.origin = target.origin
    }
  }

  /// The user's own request, led where this one goes.
  func leading(_ urlRequest: URLRequest, from before: WireRequest) -> URLRequest {
    guard self !== before, let url = URL(string: url) else { return urlRequest }
    var led = urlRequest
    led.url = url
    return led
  }

  /// A redirect of this request, or the one that goes to `https` in its place. What had to stay behind on the way to
  /// the first one stays behind.
  func upgraded(_ plan: RedirectPlan) -> RedirectPlan {
    guard profile.hasHostPolicies, let hosts = profile.options.strictTransportSecurity,
      let target = hosts.upgrade(plan.url, plan.origin)
    else { return plan }
    return plan.led(to: target.url, target.origin)
  }
}
