import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// What a request was given for itself, or takes from its session.
extension RequestCore {
  /// Made when it is first asked for: a `UUID` costs a system call.
  var id: UUID {
    state.withLock { state in
      if let id = state.extras.id { return id }
      let id = UUID()
      state.extras.id = id
      return id
    }
  }

  /// Whether anybody adapts or retries.
  var isIntercepted: Bool {
    beginsIntercepted || state.withLock { $0.hasExtras && !$0.extras.interceptors.isEmpty }
  }

  /// The session's interceptor first, then the request's own, then those added to it.
  var interceptorsInOrder: [any RequestInterceptor] {
    let added = state.withLock { $0.extras.interceptors }
    guard session.interceptor != nil || interceptor != nil else { return added }
    return [session.interceptor, interceptor].compactMap { $0 } + added
  }

  /// Another interceptor, after all that are there.
  func add(_ interceptor: any RequestInterceptor) {
    state.withLock { $0.extras.interceptors.append(interceptor) }
  }

  /// The request's own interceptors as one; `nil` without any.
  var ownInterceptor: (any RequestInterceptor)? {
    let added = state.withLock { $0.extras.interceptors }
    guard !added.isEmpty else { return interceptor }
    return Interceptor(interceptors: (interceptor.map { [$0] } ?? []) + added)
  }

  /// Whether an observer decides about storing.
  var decidesAboutStoring: Bool {
    session.watching.decidesAboutStoring
      || (has(.events) && state.withLock { $0.extras.cachedResponseHandler != nil })
  }

  var profile: ConnectionProfile {
    state.withLock { $0.hasExtras ? $0.extras.profile : nil } ?? session.settings.profile
  }

  /// Options of its own give the request a profile of its own.
  func changeOptions(_ change: (inout TransportOptions) -> Void) {
    let profile = profile
    let elsewhere = profile.elsewhere.map { made($0.options, change, elsewhere: nil) }
    let changed = made(profile.options, change, elsewhere: elsewhere)
    state.withLock { $0.extras.profile = changed }
  }

  /// An identity that is a credential of the request, for the origin that it is sent to.
  func present(_ identity: ClientIdentity) {
    let profile = self.profile(presenting: identity, inPlaceOf: profile)
    state.withLock { $0.extras.profile = profile }
  }

  /// What `profile` is for one origin to which the client is `identity`.
  func profile(presenting identity: ClientIdentity, inPlaceOf profile: ConnectionProfile) -> ConnectionProfile
  {
    made(profile.options, { $0.clientIdentity = identity }, elsewhere: profile.elsewhere ?? profile)
  }

  private func made(
    _ options: TransportOptions, _ change: (inout TransportOptions) -> Void, elsewhere: ConnectionProfile?
  ) -> ConnectionProfile {
    var options = options
    change(&options)
    let usual = session.settings.profile
    return ConnectionProfile(
      options: options, connectionsPerHost: usual.connectionsPerHost, judge: session.trust,
      systemProxies: usual.systemProxies, elsewhere: elsewhere)
  }

  /// User and password of the URL count as credentials when no others were given.
  func useCredentialOfURL(user: String, password: String) {
    state.withLock { state in
      if state.extras.credential == nil {
        state.extras.credential = URLCredential(user: user, password: password, persistence: .forSession)
      }
    }
  }

  var passwordCredential: PasswordCredential? {
    state.withLock { $0.extras.credential }.flatMap { PasswordCredential($0) }
  }

  /// For the answer of a retrier, which may replace the error that it was asked about.
  func replaceError(_ error: AFError) {
    state.withLock { $0.error = error }
  }
}
