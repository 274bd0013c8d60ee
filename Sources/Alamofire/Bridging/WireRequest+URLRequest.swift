import Foundation
import FoundationNetworking
import HTTPWire

extension WireRequest {
  /// Makes what goes over the wire of a user's request and its session: their header fields merged, the
  /// timeouts of whichever is more specific. Nothing is sent if a part of it cannot be sent safely.
  convenience init(_ request: URLRequest, for core: RequestCore) throws(AFError) {
    let session = core.session
    guard let url = request.url else { throw .sessionTaskFailed(error: URLError.noURL) }
    let method = request.httpMethod ?? "GET"
    let text = url.absoluteString
    guard let target = WireTarget(text) else {
      throw .sessionTaskFailed(error: URLError.unsupported(url))
    }
    if let user = target.user { core.useCredentialOfURL(user: user, password: target.password ?? "") }
    let own = request.allHTTPHeaderFields
    let fields = session.settings.fields(adding: own)
    if let violation = session.settings.violation(method: method, own: own, all: fields) {
      throw .sessionTaskFailed(error: URLError.made(.badURL, violation.message, url: text))
    }
    let body = try Self.body(of: request, url: url)
    self.init(
      url: target.url, origin: target.origin, method: method, fields: fields, body: body,
      idleTimeout: session.settings.idleTimeout(of: request), deadline: session.settings.deadline(),
      profile: core.profile)
  }

  private static func body(of request: URLRequest, url: URL) throws(AFError) -> RequestBody {
    if let data = request.httpBody { return .bytes(data) }
    guard request.httpBodyStream == nil else {
      throw .sessionTaskFailed(error: URLError.bodyStreamUnsupported(url))
    }
    return .none
  }

  /// The same request, led elsewhere by a redirect.
  func following(_ plan: RedirectPlan) -> WireRequest {
    with(
      // User and password in a location are nobody's credentials.
      url: WireTarget(plan.url)?.url ?? plan.url, origin: plan.origin, method: plan.method,
      fields: plan.fields(from: fields), body: plan.keepsBody ? body : RequestBody.none)
  }
}

extension RequestBody {
  var isPresent: Bool {
    switch self {
    case .none: false
    case .bytes: true
    }
  }
}
