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
    /// The target is no http or https URL; its scheme is attached.
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
  ///   - hopCount:         How many redirects have been followed for it already.
  ///   - limit:            How many may be followed.
  ///   - protectedHeaders: Names of fields that, like `Authorization`, stay with their origin.
  package static func decide(
    status: Int, location: String?, request: Request, hopCount: Int = 0, limit: Int = 20,
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
    guard hopCount < limit else { return .refuse(.tooMany(limit: limit)) }
    target.scheme = scheme
    target.authority = authority.text
    // A target without a fragment inherits the one of the request (RFC 9110 §10.2.2).
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
