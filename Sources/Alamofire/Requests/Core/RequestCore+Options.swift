import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// The options of a request, or those of its session.
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

  /// The session's interceptor first, then the request's own, then those added to it, then that of a resumable upload.
  var interceptorsInOrder: [any RequestInterceptor] {
    let added = state.withLock { $0.extras.interceptors }
    let resumer = resumer.map { [UploadRetrier(upload: $0)] } ?? []
    guard session.interceptor != nil || interceptor != nil else { return added + resumer }
    return [session.interceptor, interceptor].compactMap { $0 } + added + resumer
  }

  /// Adds an interceptor after all others.
  func add(_ interceptor: any RequestInterceptor) {
    state.withLock { $0.extras.interceptors.append(interceptor) }
    add(.interceptors)
  }

  /// The request's own interceptors as one; `nil` without any.
  var ownInterceptor: (any RequestInterceptor)? {
    let added = state.withLock { $0.extras.interceptors }
    guard !added.isEmpty else { return interceptor }
    return Interceptor(interceptors: (interceptor.map { [$0] } ?? []) + added)
  }

  var profile: ConnectionProfile {
    state.withLock { $0.hasExtras ? $0.extras.profile : nil } ?? session.settings.profile
  }

  /// The profile and the priority, read under one lock because every request needs both.
  var profileAndPriority: (ConnectionProfile, Float) {
    let (profile, priority) = state.withLock { state in
      state.hasExtras
        ? (state.extras.profile, state.extras.priority) : (nil, RequestExtras.none.priority)
    }
    return (profile ?? session.settings.profile, priority)
  }

  /// Changes the options of this request, which thereby has a profile of its own.
  func changeOptions(_ change: (inout TransportOptions) -> Void) {
    let profile = profile
    let elsewhere = profile.elsewhere.map { made($0.options, change, elsewhere: nil) }
    let changed = made(profile.options, change, elsewhere: elsewhere)
    state.withLock { $0.extras.profile = changed }
  }

  /// Presents an identity to the origin of the request.
  func present(_ identity: ClientIdentity) {
    let profile = self.profile(presenting: identity, inPlaceOf: profile)
    state.withLock { $0.extras.profile = profile }
  }

  /// Returns `profile` with `identity` as the client certificate for one origin.
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
      systemProxies: usual.systemProxies, elsewhere: elsewhere,
      session: usual)
  }

  /// The priority of the request in the queues of its session.
  var priority: Float {
    get { state.withLock { $0.hasExtras ? $0.extras.priority : RequestExtras.none.priority } }
    set {
      state.withLock { $0.extras.priority = newValue }
      alignPriority()
    }
  }

  /// Gives the running transfer the priority of the request. Compares again afterwards, because another thread may have
  /// changed it meanwhile.
  func alignPriority() {
    var known: Float?
    while true {
      let (priority, control) = state.withLock { ($0.extras.priority, $0.run.control) }
      guard let control, priority != known else { return }
      control.setPriority(priority)
      known = priority
    }
  }

  /// Uses user and password of the URL as the credential, unless another one was given.
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
}
