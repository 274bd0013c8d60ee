import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// The options that few requests have.
struct RequestOptions: RareValue {
  static let unchanged = Rare<RequestOptions>.Memory()

  var id: UUID?
  /// The credential that the caller gave.
  var givenCredential: URLCredential?
  /// The credential in the URL of an attempt.
  var credentialOfURL: CredentialOfURL?
  /// The profile of a request to which options or an identity were given.
  var profile: ConnectionProfile?
  /// The priority, if it is not the usual one.
  var priority = RequestOptions.usualPriority

  static let usualPriority: Float = 0.5

  /// The credential that answers challenges.
  var credential: URLCredential? { givenCredential ?? credentialOfURL?.credential }
}

/// User and password of a URL. Only its origin may get them, and the URL of a retry can be another one.
struct CredentialOfURL: Sendable {
  let credential: URLCredential
  let origin: Origin

  /// Makes the credential of a URL; `nil` without a user.
  init?(_ target: WireTarget) {
    guard let user = target.user else { return nil }
    credential = URLCredential(user: user, password: target.password ?? "", persistence: .forSession)
    origin = target.origin
  }
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

  /// Returns the profile and the priority for an attempt, and keeps the credential of its URL. One lock guards all of
  /// it, because every request needs it.
  ///
  /// - Parameter credential: The credential in the URL. Without one, the credential in the URL of an earlier attempt
  ///   stays if the origin is the same, because the requests of a resumable upload follow from the first one.
  func beginOptions(
    at origin: Origin, _ credential: CredentialOfURL?
  ) -> (ConnectionProfile, Float) {
    let (profile, priority) = state.withLock { state in
      guard credential != nil || state.options.isChanged else {
        return (nil as ConnectionProfile?, RequestOptions.usualPriority)
      }
      if let credential {
        state.options.value.credentialOfURL = credential
      } else if let known = state.options.value.credentialOfURL, known.origin != origin {
        state.options.value.credentialOfURL = nil
      }
      return (state.options.value.profile, state.options.value.priority)
    }
    return (profile ?? session.settings.profile, priority)
  }

  /// Changes the options of this request, which thereby gets its own profile.
  func changeOptions(_ change: (inout TransportOptions) -> Void) {
    replaceProfile { profile in
      let elsewhere = profile.elsewhere.map { made($0.options, change, elsewhere: nil) }
      return made(profile.options, change, elsewhere: elsewhere)
    }
  }

  /// Presents an identity to the origin of the request.
  func present(_ identity: ClientIdentity) {
    replaceProfile { profile(presenting: identity, inPlaceOf: $0) }
  }

  /// Replaces the profile by the one that `change` makes of it, outside the lock. If another thread has replaced it
  /// since, `change` is called again.
  private func replaceProfile(_ change: (ConnectionProfile) -> ConnectionProfile) {
    while true {
      let own = state.withLock { $0.options.read { $0.profile } }
      let changed = change(own ?? session.settings.profile)
      let isReplaced = state.withLock { state in
        guard state.options.read({ $0.profile }) === own else { return false }
        state.options.value.profile = changed
        return true
      }
      if isReplaced { return }
    }
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

  /// Returns the credential for a URL, which an attempt may be about to send. The credential of another attempt's URL
  /// is not for another origin.
  func credential(for url: URL) -> URLCredential? {
    let options = state.withLock { $0.options.read { ($0.givenCredential, $0.credentialOfURL) } }
    if let given = options?.0 { return given }
    guard let ofURL = options?.1 else { return nil }
    let origin = WireTarget(kind.engineURL(of: url.absoluteString))?.origin
    return origin == ofURL.origin ? ofURL.credential : nil
  }

  var passwordCredential: PasswordCredential? {
    state.withLock { $0.options.read { $0.credential } }.flatMap { PasswordCredential($0) }
  }
}
