import Foundation
import FoundationNetworking
import HTTPWire

/// A storage and a copy of its cookies, while one response's cookies are stored.
struct CookieStorageBridge {
  private let storage: HTTPCookieStorage
  private(set) var objects: [HTTPCookie]
  private(set) var cookies: [Cookie]
  private var lastCreation: Int64 = 0

  init(_ index: CookieIndex, in storage: HTTPCookieStorage) {
    self.storage = storage
    objects = index.objects
    cookies = index.cookies
  }

  /// Returns a time for a new cookie, later than the one before, in microseconds.
  mutating func nextCreation() -> Int64 {
    let now = Int64((Date().timeIntervalSince1970 * 1e6).rounded())
    lastCreation = max(now, lastCreation + 1)
    return lastCreation
  }

  /// Applies a decision to the storage and to the copy.
  mutating func apply(_ decision: CookieRules.Decision, by rules: CookieRules) {
    switch decision {
    case .nothing, .refuse: break
    case .remove(let place): remove(at: place)
    case .store(let cookie, let old):
      // Setting a cookie may write a file, so an unchanged cookie is skipped.
      if let old, cookies[old].isKept(as: cookie) { return }
      guard let object = StoredCookie(cookie), maySet(object, by: rules) else { return }
      // A cookie that a user made may spell the domain differently; then the new one would not replace it.
      if let old, !Self.haveOneKey(objects[old], object) { storage.deleteCookie(objects[old]) }
      storage.setCookie(object)
      if let old {
        objects[old] = object
        cookies[old] = cookie
      } else {
        objects.append(object)
        cookies.append(cookie)
        removeSurplus(of: cookie.domain, now: rules.now)
      }
    }
  }

  private mutating func remove(at place: Int) {
    storage.deleteCookie(objects[place])
    objects.remove(at: place)
    cookies.remove(at: place)
  }

  /// Whether a cookie can be set without replacing a secure one from an insecure origin. Foundation's key joins
  /// domain, path and name without a separator, so that `/b` and `c` equal `/` and `bc`.
  private func maySet(_ object: StoredCookie, by rules: CookieRules) -> Bool {
    guard !rules.target.isSecure else { return true }
    return !objects.indices.contains { cookies[$0].isSecure && Self.haveOneKey(objects[$0], object) }
  }

  private static func haveOneKey(_ left: HTTPCookie, _ right: HTTPCookie) -> Bool {
    left.domain == right.domain && left.path + left.name == right.path + right.name
  }

  /// Removes the cookies above the limit of a domain, and above the total limit.
  private mutating func removeSurplus(of domain: String, now: HTTPDate) {
    removeSurplus(
      at: cookies.indices.filter { cookies[$0].domain == domain }, limit: CookieRules.domainLimit, now: now)
    if cookies.count > CookieRules.totalLimit {
      removeSurplus(at: Array(cookies.indices), limit: CookieRules.totalLimit, now: now)
    }
  }

  private mutating func removeSurplus(at places: [Int], limit: Int, now: HTTPDate) {
    guard places.count > limit else { return }
    let surplus = CookieRules.surplus(of: places.map { cookies[$0] }, limit: limit, now: now)
    for place in surplus.map({ places[$0] }).sorted(by: >) { remove(at: place) }
  }
}
