/// The `Cookie` fields for an unchanged set of cookies, so that a repeated request neither selects nor sorts cookies.
///
/// A field depends on the host, the port, the path and the encryption of the target. If a cookie expires, the field
/// depends on the time, and if a cookie has a `SameSite` attribute, on the cause of the request.
package struct CookieFieldCache: Sendable {
  private struct Key: Hashable {
    let target: CookieTarget
    /// `nil` where no cookie depends on it.
    let cause: CookieSelection.Cause?
  }

  /// The facts that are known of a target.
  package enum Entry: Sendable, Equatable {
    /// The value of the field, `nil` without cookies; from when, and when the first of its cookies expires.
    case field(String?, from: HTTPDate, until: HTTPDate?)
    /// The field depends on the cause, which has to be passed.
    case dependsOnCause
  }

  /// The most targets. One more removes all, because a program may use any number of paths.
  package static let limit = 256

  private var entries: [Key: Entry] = [:]

  package init() {}

  package var count: Int { entries.count }

  /// Returns the facts that are known of a target; `nil` when there are none, or when they have expired.
  package func entry(
    for target: CookieTarget, cause: CookieSelection.Cause? = nil, now: HTTPDate
  ) -> Entry? {
    let entry = entries[Key(target: target, cause: cause)]
    // A clock that was set back makes cookies valid again that had expired.
    guard case .field(_, let from, let until) = entry else { return entry }
    return from <= now && until.map { now < $0 } != false ? entry : nil
  }

  /// Stores the field for a target.
  ///
  /// - Parameters:
  ///   - cookies: The cookies in the field.
  ///   - cause:   The cause of the request, if a cookie depends on it.
  package mutating func remember(
    _ field: String?, of cookies: [Cookie], for target: CookieTarget, cause: CookieSelection.Cause?,
    now: HTTPDate
  ) {
    if entries.count >= Self.limit { entries.removeAll() }
    if cause != nil { entries[Key(target: target, cause: nil)] = .dependsOnCause }
    let until = cookies.compactMap(\.expiry).min()
    entries[Key(target: target, cause: cause)] = .field(field, from: now, until: until)
  }
}
