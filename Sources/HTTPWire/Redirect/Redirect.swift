/// The decision about a response with a 3xx status (RFC 9110 §15.4): pure, one hop at a time.
package enum Redirect {
  /// The properties of the answered request that the decision needs.
  package struct Request: Sendable {
    /// The absolute URL; may have a fragment.
    package var url: String
    package var origin: Origin
    package var method: String
    package var hasBody: Bool

    package init(url: String, origin: Origin, method: String = "GET", hasBody: Bool = false) {
      self.url = url
      self.origin = origin
      self.method = method
      self.hasBody = hasBody
    }
  }

  package enum Decision: Sendable, Equatable {
    /// The response is the answer, whatever its status.
    case notARedirect
    case follow(RedirectPlan)
    /// A redirect that must not be followed.
    case refuse(Refusal)
  }

  package enum Refusal: Error, Sendable, Equatable {
    /// The number of redirects that have been followed is the limit.
    case tooMany(limit: Int)
    /// The target is not an http or https URL; its scheme is attached.
    case unsupportedScheme(String)
    /// The target has no host, or an invalid one.
    case badLocation

    /// One sentence for people; without the target, which may carry a secret.
    package var message: String {
      switch self {
      case .tooMany(let limit):
        "The server redirected more than \(limit) times. "
          + "Raise TransportOptions.redirectLimit to follow more."
      case .unsupportedScheme(let scheme):
        "The server redirected to a URL of the scheme \"\(scheme)\"; only http and https are followed."
      case .badLocation:
        "The server redirected to something that is not a URL with a host."
      }
    }
  }

  /// Decides about one response.
  ///
  /// - Parameters:
  ///   - status:           The status code.
  ///   - location:         The value of `Location`; without one there is nothing to follow.
  ///   - request:          The request that was answered.
  ///   - redirectCount:         How many redirects have been followed for it already.
  ///   - limit:            How many may be followed.
  ///   - protectedHeaders: Names of fields that, like `Authorization`, stay with their origin.
  package static func decide(
    status: Int, location: String?, request: Request, redirectCount: Int = 0, limit: Int = 20,
    protectedHeaders: Set<String> = []
  ) -> Decision {
    guard let change = change(of: request.method, for: status), let location else { return .notARedirect }
    let reference = URIReference(lenient: location)
    guard reference != URIReference("") else { return .notARedirect }
    let current = URIReference(lenient: request.url)
    var target = reference.resolved(against: current)
    let scheme = target.scheme?.lowercased() ?? ""
    guard scheme == "http" || scheme == "https" else { return .refuse(.unsupportedScheme(scheme)) }
    guard let authority = target.authority.flatMap({ Authority($0) }) else { return .refuse(.badLocation) }
    guard redirectCount < limit else { return .refuse(.tooMany(limit: limit)) }
    target.scheme = scheme
    target.authority = authority.text
    // A target without a fragment inherits the request's fragment (RFC 9110 §10.2.2).
    target.fragment = target.fragment ?? current.fragment
    let origin = Origin(scheme: scheme, host: authority.host, port: authority.port)
    return .follow(
      RedirectPlan(
        url: target.text, origin: origin, method: change.method,
        resendsBody: request.hasBody && !change.dropsBody, dropsContentFields: change.dropsBody,
        leavesOrigin: origin != request.origin,
        leavesSecureScheme: request.origin.scheme == "https" && scheme == "http",
        protectedHeaders: protectedHeaders))
  }

  /// Returns the method of the next request, and whether its body is dropped. `nil` for statuses that are not
  /// followed: 300 leaves the choice to the user, 304 belongs to caches, 305 and 306 are withdrawn.
  private static func change(of method: String, for status: Int) -> (method: String, dropsBody: Bool)? {
    switch status {
    case 301, 302: method == "POST" ? ("GET", true) : (method, false)
    case 303: (method == "HEAD" ? "HEAD" : "GET", true)
    case 307, 308: (method, false)
    default: nil
    }
  }
}

/// The changes in the request that follows a redirect.
package struct RedirectPlan: Sendable, Equatable {
  /// Absolute, ASCII, with the fragment that the target has or inherits.
  package let url: String
  package let origin: Origin
  package let method: String
  /// Whether the body of the request before is sent again.
  package let resendsBody: Bool
  /// Whether the fields that describe a body are dropped together with the body.
  package let dropsContentFields: Bool
  /// Whether the target is another origin than the request before; an http URL of the same host is.
  package let leavesOrigin: Bool
  /// Whether the request before was protected by TLS and the next one will not be.
  package let leavesSecureScheme: Bool
  package let protectedHeaders: Set<String>

  /// Returns the plan of a request that leaves the origin of its secrets, and keeps its URL, method and body.
  package static func leavingOrigin(_ owner: Origin, by request: WireRequest) -> RedirectPlan {
    RedirectPlan(
      url: request.url, origin: request.origin, method: request.method, resendsBody: true,
      dropsContentFields: false, leavesOrigin: true,
      leavesSecureScheme: owner.scheme == "https" && request.origin.scheme == "http",
      protectedHeaders: request.profile.options.protectedHeaders)
  }

  /// Returns the plan with another target. The fields that are dropped on the way to the first target stay dropped.
  package func withTarget(_ url: String, origin: Origin) -> RedirectPlan {
    RedirectPlan(
      url: url, origin: origin, method: method, resendsBody: resendsBody,
      dropsContentFields: dropsContentFields,
      leavesOrigin: leavesOrigin, leavesSecureScheme: leavesSecureScheme, protectedHeaders: protectedHeaders)
  }

  /// Returns the fields of the next request: the previous fields without the ones that must not be forwarded.
  package func fields(from fields: [HTTPHeader]) -> [HTTPHeader] {
    fields.filter { keeps($0.name) }
  }

  /// Whether a field of this name is sent on.
  package func keeps(_ name: String) -> Bool {
    if dropsContentFields, Self.contentFields.contains(where: { FieldName.equal(name, $0) }) { return false }
    // RFC 9110 §10.1.3: an https URL is not sent to a server without TLS.
    if leavesSecureScheme, FieldName.equal(name, "Referer") { return false }
    return !leavesOrigin || !isForOneOrigin(name)
  }

  /// Whether a field of the planned request is sent on if the request goes to another target instead.
  package func keeps(_ name: String, to target: Origin) -> Bool {
    guard target != origin else { return true }
    if origin.scheme == "https", target.scheme != "https", FieldName.equal(name, "Referer") { return false }
    return !isForOneOrigin(name)
  }

  /// Whether a field of this name is for one origin: a secret, or the caller's `Host`.
  package func isForOneOrigin(_ name: String) -> Bool {
    FieldName.equal(name, "Host") || Self.secretFields.contains { FieldName.equal(name, $0) }
      || protectedHeaders.contains { FieldName.equal(name, $0) }
  }

  /// The fields that describe or frame a body (RFC 9110 §8, §10.1.1, §15.4; RFC 9530; RFC 6266).
  private static let contentFields = [
    "Content-Type", "Content-Length", "Content-Encoding", "Content-Language", "Content-Location",
    "Content-Range", "Content-Disposition", "Content-Digest", "Repr-Digest", "Digest", "Content-MD5",
    "Last-Modified", "Transfer-Encoding", "Trailer", "Expect",
  ]

  /// The fields for the first origin alone (RFC 9110 §15.4).
  private static let secretFields = [
    "Authorization", "Cookie", "Cookie2", "Proxy-Authorization", "WWW-Authenticate", "Proxy-Authenticate",
  ]
}
