import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// A snapshot of the cookies of a storage, by domain. The snapshot is valid as long as the storage returns the same
/// objects, because these are immutable; so a comparison of identities is enough.
final class CookieIndex: Sendable {
  /// Retained, so that no address is reused for another cookie.
  let objects: [HTTPCookie]
  /// The attributes of each object.
  let cookies: [Cookie]
  private let byDomain: [String: [Int]]
  private let cache = Mutex(CookieFieldCache())

  init(_ objects: [HTTPCookie] = []) {
    self.objects = objects
    let cookies = objects.map { Cookie($0) }
    self.cookies = cookies
    byDomain = Dictionary(grouping: cookies.indices) { cookies[$0].domain }
  }

  /// Whether these are the objects that were looked at, in the same order; a storage that has not
  /// changed keeps it.
  func describes(_ objects: [HTTPCookie]) -> Bool {
    guard objects.count == self.objects.count else { return false }
    for place in objects.indices where objects[place] !== self.objects[place] { return false }
    return true
  }

  /// Returns the cookies of a host and of its parent domains, for any path.
  func candidates(for host: String) -> [Cookie] {
    var found: [Int] = byDomain[host] ?? []
    if !CookieTarget.isAddress(host) {
      var rest = host[...]
      while let dot = rest.utf8.firstIndex(of: UInt8(ascii: ".")) {
        rest = rest[rest.utf8.index(after: dot)...]
        if let more = byDomain[String(rest)] { found += more }
      }
    }
    return found.isEmpty ? [] : found.map { cookies[$0] }
  }

  /// Returns the `Cookie` field for a target; `nil` without cookies. The field is kept as long as the storage does not
  /// change and none of its cookies expires.
  ///
  /// - Parameter cause: Asked only when a cookie depends on it.
  func field(for target: CookieTarget, now: HTTPDate, cause: () -> CookieSelection.Cause) -> String? {
    var asked: CookieSelection.Cause?
    switch cache.withLock({ $0.entry(for: target, now: now) }) {
    case .field(let field, _, _): return field
    case .dependsOnCause:
      let known = cause()
      if case .field(let field, _, _) = cache.withLock({ $0.entry(for: target, cause: known, now: now) }) {
        return field
      }
    case nil: break
    }
    let cookies = CookieSelection.cookies(for: target, from: candidates(for: target.host), now: now) {
      let known = cause()
      asked = known
      return known
    }
    let field = CookieSelection.field(cookies)
    cache.withLock { [asked] in $0.remember(field, of: cookies, for: target, cause: asked, now: now) }
    return field
  }
}
