import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// The options that few requests have.
struct RequestOptions: RareValue {
  static let unchanged = Rare<RequestOptions>.Memory()

  var id: UUID?
  var credential: URLCredential?
  /// The profile of a request to which options or an identity were given.
  var profile: ConnectionProfile?
  /// The priority, if it is not the usual one.
  var priority = RequestOptions.usualPriority

  static let usualPriority: Float = 0.5
}

/// The options of a request, or its session's.
extension RequestCore {
  /// Created on first access, because a `UUID` costs a system call.
  var id: UUID {
    state.withLock { state in
      if let id = state.options.value.id { return id }
      let id = UUID()
      state.options.value.id = id
      return id
    }
  }

  var profile: ConnectionProfile {
    state.withLock { $0.options.read { $0.profile } } ?? session.settings.profile
  }

  /// The profile and the priority, read under one lock because every request needs both.
  var profileAndPriority: (ConnectionProfile, Float) {
    let (profile, priority) = state.withLock { state in
      state.options.isChanged
        ? (state.options.value.profile, state.options.value.priority) : (nil, RequestOptions.usualPriority)
    }
    return (profile ?? session.settings.profile, priority)
  }

  /// Changes the options of this request, which thereby gets its own profile.
  func changeOptions(_ change: (inout TransportOptions) -> Void) {
    let profile = profile
    let elsewhere = profile.elsewhere.map { made($0.options, change, elsewhere: nil) }
    let changed = made(profile.options, change, elsewhere: elsewhere)
    state.withLock { $0.options.value.profile = changed }
  }

  /// Presents an identity to the origin of the request.
  func present(_ identity: ClientIdentity) {
    let profile = self.profile(presenting: identity, inPlaceOf: profile)
    state.withLock { $0.options.value.profile = profile }
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
      options: options, connectionsPerHost: usual.connectionsPerHost, evaluator: session.trust,
      systemProxies: usual.systemProxies, elsewhere: elsewhere,
      session: usual)
  }

  /// The priority of the request in the queues of its session.
  var priority: Float {
    get { state.withLock { $0.options.value.priority } }
    set {
      state.withLock { $0.options.value.priority = newValue }
      alignPriority()
    }
  }

  /// Gives the running transfer the priority of the request. Compares again afterwards, because another thread may have
  /// changed it.
  func alignPriority() {
    var known: Float?
    while true {
      let (priority, control) = state.withLock { ($0.options.value.priority, $0.run.control) }
      guard let control, priority != known else { return }
      control.setPriority(priority)
      known = priority
    }
  }

  /// Uses user and password of the URL as the credential, unless another one was given.
  func useCredentialOfURL(user: String, password: String) {
    state.withLock { state in
      if state.options.value.credential == nil {
        state.options.value.credential = URLCredential(
          user: user, password: password, persistence: .forSession)
      }
    }
  }

  var passwordCredential: PasswordCredential? {
    state.withLock { $0.options.read { $0.credential } }.flatMap { PasswordCredential($0) }
  }
}
