import HTTPWire

/// The hop that is under way, for the thread that reads its response.
struct CurrentHop: Sendable {
  let request: WireRequest
  /// The origin of the caller's request.
  let initialOrigin: Origin
  let authentication: Authentication?
  /// The number of redirects that led to the hop.
  let redirectCount: Int
  /// The way in which a challenge is decided. Chosen once for the hop, because observers come and go.
  var challenge = ChallengeDecision.byDefault
  /// The decision about the response that may lead elsewhere, once there is one.
  var redirect: DecidedRedirect?

  enum ChallengeDecision: Sendable {
    /// A challenge for which there is a credential is answered.
    case byDefault
    /// The body of a challenge is stored until a delegate has decided.
    case byDelegate
    /// The delegate has declined. The response is the last one.
    case declined
  }
}

/// The decision about a response with a status and a `Location`. A class, so that a hop without one is copied cheaply.
final class DecidedRedirect: Sendable {
  let status: Int
  let location: String?
  let decision: Redirect.Decision

  init(status: Int, location: String?, decision: Redirect.Decision) {
    self.status = status
    self.location = location
    self.decision = decision
  }
}
