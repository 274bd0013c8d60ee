import HTTPWire

/// A minimal cookie store: a list, and the rules.
struct Jar {
  var cookies: [Cookie] = []
  var now = HTTPDate(secondsSince1970: 1_300_000_000)
  var suffixes: any PublicSuffixes = ListedSuffixes()
  private var count: Int64 = 0

  @discardableResult
  mutating func receive(_ field: String, from url: String, isThirdParty: Bool = false) -> CookieRules
    .Decision?
  {
    receive(Array(field.utf8), from: url, isThirdParty: isThirdParty)
  }

  @discardableResult
  mutating func receive(_ field: [UInt8], from url: String, isThirdParty: Bool = false) -> CookieRules
    .Decision?
  {
    guard let target = CookieTarget(url: url) else { return nil }
    var rules = CookieRules(target: target, suffixes: suffixes, now: now)
    rules.isThirdParty = isThirdParty
    count += 1
    do throws(CookieRefusal) {
      let decision = rules.decide(try SetCookie(field), existing: cookies, creation: count)
      switch decision {
      case .store(let cookie, let old?): cookies[old] = cookie
      case .store(let cookie, nil): cookies.append(cookie)
      case .remove(let old): cookies.remove(at: old)
      case .nothing, .refuse: break
      }
      return decision
    } catch {
      return .refuse(error)
    }
  }

  func refusal(_ field: String, from url: String) -> CookieRefusal? {
    var copy = self
    guard case .refuse(let refusal)? = copy.receive(field, from: url) else { return nil }
    return refusal
  }

  func chosen(for url: String, cause: CookieSelection.Cause = .sameSite) -> [Cookie] {
    guard let target = CookieTarget(url: url) else { return [] }
    return CookieSelection.cookies(for: target, from: cookies, now: now) { cause }
  }

  func field(for url: String, cause: CookieSelection.Cause = .sameSite) -> String? {
    CookieSelection.field(chosen(for: url, cause: cause))
  }
}

/// A short list of public suffixes.
struct ListedSuffixes: PublicSuffixes {
  var listed: Set<String> = ["co.uk", "github.io"]

  func isPublicSuffix(_ domain: String) -> Bool {
    !domain.contains(".") || listed.contains(domain)
  }
}
