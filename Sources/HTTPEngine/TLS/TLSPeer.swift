import FoundationEssentials
import HTTPSystem
import HTTPWire

/// The peer of a handshake, and the code that decides about it.
struct TLSPeer {
  let origin: Origin
  let profile: ConnectionProfile
  /// The proxy, if the handshake is with one. A proxy has a name and a trust store of its own.
  let proxy: ProxyServer?
  /// The protocols that are offered, the best one first (RFC 7301); empty to offer none.
  let protocols: [String]

  init(
    _ origin: Origin, _ profile: ConnectionProfile, proxy: ProxyServer? = nil, protocols: [String] = []
  ) {
    self.protocols = protocols
    self.origin = origin
    self.profile = profile
    self.proxy = proxy
  }

  /// The name for which the certificate has to hold.
  var host: String { proxy?.host ?? origin.host }

  /// The name in messages.
  var description: String { proxy.map { "the proxy \($0.host)" } ?? origin.host }

  var settings: TLSSettings { TLSSettings(profile.options, isForProxy: proxy != nil) }

  /// The name that is asked for (RFC 6066 §3); `nil` for addresses, which are not sent.
  var serverName: String? {
    guard HostLookup.addresses(of: host, literalsOnly: true).isEmpty else { return nil }
    return host.hasSuffix(".") ? String(host.dropLast()) : host
  }

  /// Whether the evaluator needs the stapled response.
  var wantsStapledResponse: Bool {
    guard proxy == nil else { return false }
    return profile.evaluator?.wantsStapledResponse(ofHost: origin.host) ?? false
  }

  /// Whether the identity of the client is chosen when the server asks for it.
  var wantsToChooseIdentity: Bool {
    guard proxy == nil, profile.options.clientIdentity == nil else { return false }
    return profile.evaluator?.wantsToChooseIdentity(forHost: origin.host, port: origin.port) ?? false
  }

  /// Returns the failure if the peer is not accepted; `.trustUndecided` if code outside of the handshake has to decide.
  func failure(of certificates: [X509Certificate], stapled: Data?) -> TransportFailure? {
    guard let proxy else {
      return ServerEvaluation(profile: profile, host: origin.host, port: origin.port)
        .failure(of: certificates, stapled: stapled)
    }
    let verdict = TrustAnchors.of(proxy.trustStore).flatMap { anchors in
      ChainVerifier(anchors: anchors, host: proxy.host).verify(certificates)
    }
    guard case .failure(let fault) = verdict else { return nil }
    return TransportFailure(fault.kind, fault.message(for: description))
  }
}
