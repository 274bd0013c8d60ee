import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// Decorates the observer of a transfer, and notes the host policies in the head of the response.
final class HostPolicyObserver: TransferObserver {
  private let observer: any TransferObserver
  private let request: WireRequest
  private let trust: TrustService?
  private let isAtAlternative: Bool
  /// Whether the response is dropped because the request is sent again to its origin.
  private let isMisdirected = Atomic<Bool>(false)

  init(
    _ observer: any TransferObserver, _ request: WireRequest, trust: TrustService?,
    isAtAlternative: Bool = false
  ) {
    self.observer = observer
    self.request = request
    self.trust = trust
    self.isAtAlternative = isAtAlternative
  }

  func transferBegan(_ control: any TransferControl) -> TransferStart { observer.transferBegan(control) }

  func informationalHeadReceived(_ head: ResponseHead) { observer.informationalHeadReceived(head) }

  func headReceived(_ head: ResponseHead) -> HeadDisposition {
    if isAtAlternative, head.status == AlternativeServices.misdirected {
      isMisdirected.store(true, ordering: .relaxed)
      return .discard
    }
    note(head)
    return observer.headReceived(head)
  }

  func loginHeadReceived(_ head: ResponseHead) {
    note(head)
    observer.loginHeadReceived(head)
  }

  private func note(_ head: ResponseHead) {
    // A delegate may have accepted the server after the request began.
    guard trust?.wasAcceptedByDelegate(request.origin.host) != true else { return }
    let options = request.profile.options
    options.strictTransportSecurity?.note(head, of: request.origin)
    options.alternativeServices?.note(head, of: request.origin)
  }

  func bytesMoved(_ count: ByteCount) {
    guard !isMisdirected.load(ordering: .relaxed) else { return }
    observer.bytesMoved(count)
  }

  func transferEnded() { observer.transferEnded() }
}

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
