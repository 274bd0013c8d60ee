import Alamofire

/// Credentials that are added to a request after the challenge of the server. A request starts before its caller can
/// add credentials, and a fast server may have sent its challenge by then. The request is then sent once more, as it
/// would have been for the challenge.
struct CredentialRetry {
  /// Fails an attempt, so that the core sends the request again.
  struct Required: Error {}

  private var hasCredentials = false
  /// Whether a challenge arrived before there were credentials.
  private var wasChallenged = false
  private var isPending = false

  /// Whether a challenge arrived and there were no credentials yet.
  var isAwaited: Bool { wasChallenged && !hasCredentials }

  /// Whether a response with this status asks for credentials.
  static func asksForCredentials(_ status: Int?) -> Bool { status == 401 || status == 407 }

  mutating func challenged() {
    if !hasCredentials { wasChallenged = true }
  }

  /// Notes that credentials were added. Returns whether a challenge arrived before.
  mutating func added() -> Bool {
    hasCredentials = true
    return wasChallenged
  }

  /// Whether an attempt with this status has to be repeated with the credentials.
  mutating func wantsRetry(after status: Int?) -> Bool {
    guard wasChallenged, hasCredentials, Self.asksForCredentials(status) else { return false }
    wasChallenged = false
    isPending = true
    return true
  }

  /// Returns whether the attempt was failed for the credentials, and resets it.
  mutating func takePending() -> Bool {
    defer { isPending = false }
    return isPending
  }
}
