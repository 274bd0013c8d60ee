import CCurl
import COpenSSL
import HTTPWire

// Another place than the origin, as the origin has named it (RFC 7838). libcurl connects there; all that is verified is
// verified for the origin, since that is whom the request names.
extension Transfer {
  /// The longest time, in milliseconds, that is spent on connecting there.
  static var longestDetour: Int { 10_000 }

  /// Whether the handle is set to another place than the request wants.
  func isLedElsewhere(_ request: WireRequest) -> Bool {
    switch (applied.alternative, request.alternative) {
    case (nil, nil): false
    case (let applied, let wanted): applied != wanted
    }
  }

  /// Whether the place speaks the protocol for which it was named (RFC 7838 §2.4). Asked before the request goes out.
  func mayUseAlternative() -> Bool {
    guard let request, request.alternative != nil else { return true }
    let session = ccurl_tls_session(easy.raw).map { OpaquePointer($0) }
    guard session.map(Self.speaksHTTP2) != true else { return true }
    abort(with: .alternativeUnfit(request))
    return false
  }
}

extension TransportFailure {
  static func alternativeUnfit(_ request: WireRequest) -> TransportFailure {
    TransportFailure(
      .alternativeUnfit,
      "The other place that \(request.origin.host) has named cannot be used: it does not speak HTTP/2, or a proxy stands in between."
    )
  }
}

extension TransportOptions.HostOverride {
  /// The way to another place; when the program leads that one elsewhere, to there.
  init(from origin: Origin, to service: AlternativeService, among given: [Self]) {
    let place = Origin(scheme: "https", host: service.host, port: service.port)
    let next = given.first { $0.leads(place) }
    self.init(
      host: origin.host, port: origin.port, target: next?.target ?? service.host,
      targetPort: next?.targetPort ?? service.port)
  }
}
