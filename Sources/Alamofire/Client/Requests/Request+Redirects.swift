import Foundation
import FoundationNetworking
import HTTPWire

// The redirects of the last attempt, for retriers: a retry sends the request of the caller again, and not the request
// that has failed.
extension Request {
  /// Whether a server may have performed a request that must not be repeated, because it has answered with a redirect
  /// to another method, as after a form.
  ///
  /// A redirect that keeps the method, such as one with status 307, says that the request was not performed.
  var mayHaveBeenPerformed: Bool {
    core.state.withLock { state in
      guard let method = state.results.request?.httpMethod, let hop = state.run.hop else { return false }
      return hop.redirectCount > 0 && hop.request.method != method && !RepeatDecision.isIdempotent(method)
    }
  }

  /// The request that the last server received instead of the caller's, because of a redirect, or because the secrets
  /// of the request belong to another origin; `nil` if it received the caller's.
  var redirectedRequest: URLRequest? {
    core.state.withLock { state in
      guard let request = state.results.request, let hop = state.run.hop,
        hop.redirectCount > 0 || hop.request.origin != hop.initialOrigin
      else { return nil }
      return URLRequest(proposing: hop.request, to: request)
    }
  }
}
