import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// Notes the host policies in responses, and connects to alternative services. It is used only for requests whose
/// options have host policies.
struct HostPolicyTransport: Transport {
  /// The evaluation of servers; `nil` if the trust store alone decides.
  let trust: TrustService?
  /// Whether an alternative service may answer.
  let usesAlternatives: Bool
  let transport: any Transport

  nonisolated(nonsending) func send(
    _ request: WireRequest, observer: any TransferObserver
  ) async throws(TransportFailure) -> WireResponse {
    guard request.origin.scheme == "https", isAuthentic(request.origin.host) else {
      return try await transport.send(request, observer: observer)
    }
    if usesAlternatives, let service = request.alternativeToTry,
      let services = request.profile.options.alternativeServices,
      let response = try await send(request, by: service, services, observer)
    {
      return response
    }
    return try await transport.send(request, observer: HostPolicyObserver(observer, request))
  }

  /// Sends a request to an alternative service; `nil` if the service failed before it received the request.
  nonisolated(nonsending) private func send(
    _ request: WireRequest, by service: AlternativeService, _ services: AlternativeServices,
    _ observer: any TransferObserver
  ) async throws(TransportFailure) -> WireResponse? {
    let observer = HostPolicyObserver(observer, request, isAtAlternative: true)
    do {
      let response = try await transport.send(request.using(service), observer: observer)
      guard response.head.status == HostPolicyObserver.misdirected else { return response }
    } catch {
      guard error.isBeforeRequest else { throw error }
    }
    services.failed(service, of: request.origin)
    return nil
  }

  /// Whether the server of a host is evaluated. Evaluators that a subclass of the manager chooses are code of the user.
  private func isAuthentic(_ host: String) -> Bool {
    guard let trust, trust.manager != nil else { return true }
    return trust.authenticates(host)
  }
}

extension WireRequest {
  /// The alternative service to try, which speaks HTTP/2. The body has to be one that can be sent again to the origin.
  fileprivate var alternativeToTry: AlternativeService? {
    let options = profile.options
    guard let services = options.alternativeServices, options.httpVersions != .http1Only,
      options.unixSocket == nil, login == nil, body.isRepeatable, body.count >= 0,
      !options.hostOverrides.contains(where: { $0.leads(origin) })
    else { return nil }
    return services.choice(for: origin)
  }
}

extension TransportFailure {
  /// Whether the request was not sent: the service could not be connected to, or was not authenticated. Certificates
  /// that have to be evaluated on another thread count as not authenticated.
  fileprivate var isBeforeRequest: Bool {
    switch kind {
    case .alternativeUnfit: true
    case .cannotFindHost, .cannotConnectToHost, .addressRefused, .secureConnectionFailed,
      .certificateUntrusted,
      .certificateHasUnknownRoot, .certificateHasBadDate, .certificateNotYetValid, .trustRefused,
      .trustUndecided,
      .identityUndecided, .clientCertificateRejected, .clientCertificateRequired, .timedOut, .connectionLost,
      .badServerResponse:
      (metrics?.values.requestStart ?? -1) < 0
    default: false
    }
  }
}

/// Decorates the observer of a transfer, and notes the host policies in the head of the response.
final class HostPolicyObserver: TransferObserver {
  /// The service does not belong to the origin (RFC 9110 §15.5.20).
  static let misdirected = 421

  private let observer: any TransferObserver
  private let request: WireRequest
  private let isAtAlternative: Bool
  /// Whether the response is dropped because the request is sent again to its origin.
  private let isMisdirected = Atomic<Bool>(false)

  init(_ observer: any TransferObserver, _ request: WireRequest, isAtAlternative: Bool = false) {
    self.observer = observer
    self.request = request
    self.isAtAlternative = isAtAlternative
  }

  var cancelsByControl: Bool { observer.cancelsByControl }

  func transferBegan(_ control: any TransferControl) -> TransferStart { observer.transferBegan(control) }

  func informationalHeadReceived(_ head: ResponseHead) { observer.informationalHeadReceived(head) }

  func headReceived(_ head: ResponseHead) -> HeadDisposition {
    if isAtAlternative, head.status == Self.misdirected {
      isMisdirected.store(true, ordering: .relaxed)
      return .discard
    }
    let options = request.profile.options
    options.strictTransportSecurity?.note(head, of: request.origin)
    options.alternativeServices?.note(head, of: request.origin)
    return observer.headReceived(head)
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
