import Foundation
import HTTPWire
import Synchronization

/// Notes what servers say about how they want to be reached, and reaches them so. Stands in the way of a request only
/// when its options want that.
struct HostPolicyTransport: Transport {
  let session: SessionCore
  let transport: any Transport

  nonisolated(nonsending) func send(
    _ request: WireRequest, observer: any TransferObserver
  ) async throws(TransportFailure) -> WireResponse {
    guard request.origin.scheme == "https", await isAuthentic(request.origin.host) else {
      return try await transport.send(request, observer: observer)
    }
    if let service = request.placeToTry, let services = request.profile.options.alternativeServices,
      let response = try await send(request, by: service, services, observer)
    {
      return response
    }
    return try await transport.send(request, observer: HostPolicyObserver(observer, request))
  }

  /// By another place; `nil` when that was of no use, and nothing has come of it.
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

  /// Whether somebody makes sure who the host is. Evaluators that a subclass of the manager chooses are its user's
  /// code.
  nonisolated(nonsending) private func isAuthentic(_ host: String) async -> Bool {
    guard let trust = session.trust, let manager = trust.manager else { return true }
    guard manager.runsUserCode, session.isOnLoop() else { return trust.authenticates(host) }
    return await withTaskExecutorPreference(globalConcurrentExecutor) { trust.authenticates(host) }
  }
}

extension WireRequest {
  /// Where the request may go instead of its origin: a place that speaks HTTP/2, which has to take the body.
  fileprivate var placeToTry: AlternativeService? {
    let options = profile.options
    guard let services = options.alternativeServices, options.httpVersions != .http1Only,
      options.unixSocket == nil, login == nil, (0...RequestBody.largestMultiplexed).contains(body.count),
      body.isRepeatable,
      !options.hostOverrides.contains(where: { $0.leads(origin) })
    else { return nil }
    return services.choice(for: origin)
  }
}

extension TransportFailure {
  /// Whether the request has not gone out: the place could not be connected to, or was not who it had to be. What it
  /// shows that has to be judged elsewhere counts as that.
  fileprivate var isBeforeRequest: Bool {
    switch kind {
    case .alternativeUnfit: true
    case .cannotFindHost, .cannotConnectToHost, .secureConnectionFailed, .certificateUntrusted,
      .certificateHasUnknownRoot, .certificateHasBadDate, .certificateNotYetValid, .trustRefused,
      .trustUndecided,
      .identityUndecided, .clientCertificateRejected, .clientCertificateRequired, .timedOut, .connectionLost,
      .badServerResponse:
      (metrics?.values.requestStart ?? -1) < 0
    default: false
    }
  }
}

/// Stands between a request and its transfer, and notes what the head of the response says about its host.
final class HostPolicyObserver: TransferObserver {
  /// The place is not the origin's (RFC 9110 §15.5.20).
  static let misdirected = 421

  private let observer: any TransferObserver
  private let request: WireRequest
  private let isAtAlternative: Bool
  /// Whether the response is one that nobody is told of, since the request goes elsewhere.
  private let isMisdirected = Atomic<Bool>(false)

  init(_ observer: any TransferObserver, _ request: WireRequest, isAtAlternative: Bool = false) {
    self.observer = observer
    self.request = request
    self.isAtAlternative = isAtAlternative
  }

  var cancelsByControl: Bool { observer.cancelsByControl }

  func transferBegan(_ control: any TransferControl) -> TransferStart { observer.transferBegan(control) }

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

extension SessionTrust {
  /// Whether a server of this host that has been let through is the one that it should be, as far as evaluators can
  /// tell.
  func authenticates(_ host: String) -> Bool {
    guard let evaluator = try? manager?.serverTrustEvaluator(forHost: host) else { return true }
    return (evaluator as? any InstantTrustEvaluator)?.authenticates ?? true
  }
}
