/// The request that follows a redirect, as far as it differs from the one before.
package struct RedirectPlan: Sendable, Equatable {
  /// Absolute, ASCII, with the fragment that the target has or inherits.
  package let url: String
  package let origin: Origin
  package let method: String
  /// Whether the body of the request before is sent again.
  package let resendsBody: Bool
  /// Whether the fields that describe a body stay behind with it.
  package let dropsContentFields: Bool
  /// Whether the target is another origin than the request before; an http URL of the same host is.
  package let leavesOrigin: Bool
  /// Whether the request before was protected by TLS and the next one will not be.
  package let leavesSecureScheme: Bool
  package let protectedHeaders: Set<String>

  /// Returns the plan of a request that leaves the origin of its secrets, and keeps its URL, method and body.
  package static func leavingOrigin(_ request: WireRequest) -> RedirectPlan {
    RedirectPlan(
      url: request.url, origin: request.origin, method: request.method, resendsBody: true,
      dropsContentFields: false, leavesOrigin: true, leavesSecureScheme: false,
      protectedHeaders: request.profile.options.protectedHeaders)
  }

  /// Returns the plan with another target. The fields that are dropped on the way to the first target stay dropped.
  package func withTarget(_ url: String, origin: Origin) -> RedirectPlan {
    RedirectPlan(
      url: url, origin: origin, method: method, resendsBody: resendsBody,
      dropsContentFields: dropsContentFields,
      leavesOrigin: leavesOrigin, leavesSecureScheme: leavesSecureScheme, protectedHeaders: protectedHeaders)
  }

  /// Returns the fields of the next request: those of the previous one without those that must not be sent on.
  package func fields(from fields: [HTTPHeader]) -> [HTTPHeader] {
    fields.filter { keeps($0.name) }
  }

  /// Whether a field of this name is sent on.
  package func keeps(_ name: String) -> Bool {
    if dropsContentFields, Self.contentFields.contains(where: { FieldName.equal(name, $0) }) { return false }
    // RFC 9110 §10.1.3: an https URL is not sent to a server without TLS.
    if leavesSecureScheme, FieldName.equal(name, "Referer") { return false }
    guard leavesOrigin else { return true }
    // A field of the caller names the host of one origin.
    if FieldName.equal(name, "Host") { return false }
    return !Self.secretFields.contains { FieldName.equal(name, $0) }
      && !protectedHeaders.contains { FieldName.equal(name, $0) }
  }

  /// The fields that describe or frame a body (RFC 9110 §8, §10.1.1).
  private static let contentFields = [
    "Content-Type", "Content-Length", "Content-Encoding", "Content-Language", "Content-Location",
    "Transfer-Encoding", "Expect",
  ]

  /// The fields for the first origin alone (RFC 9110 §15.4).
  private static let secretFields = [
    "Authorization", "Cookie", "Cookie2", "Proxy-Authorization", "WWW-Authenticate", "Proxy-Authenticate",
  ]
}
