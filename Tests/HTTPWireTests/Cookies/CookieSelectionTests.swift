import HTTPWire
import Testing

@Suite struct CookieSelectionTests {
  @Test func longerPathsAndOlderCookiesComeFirst() {
    var jar = Jar()
    for field in ["c=1; Path=/", "b=1; Path=/a/b", "a=1; Path=/", "d=1; Path=/a"] {
      jar.receive(field, from: "http://h.org/a/b/c")
    }
    #expect(jar.field(for: "http://h.org/a/b/c") == "b=1; d=1; c=1; a=1")
  }

  @Test func whatIsOverIsNotSent() {
    var jar = Jar()
    jar.receive("a=b; Max-Age=10", from: "http://h.org/")
    jar.now = HTTPDate(secondsSince1970: jar.now.secondsSince1970 + 9)
    #expect(jar.field(for: "http://h.org/") == "a=b")
    jar.now = HTTPDate(secondsSince1970: jar.now.secondsSince1970 + 1)
    #expect(jar.field(for: "http://h.org/") == nil)
  }

  @Test func aCookieWithoutANameIsItsValueAlone() {
    var jar = Jar()
    jar.receive("token", from: "http://h.org/")
    #expect(jar.field(for: "http://h.org/") == "token")
  }

  @Test func whatWouldBreakTheFieldIsLeftOut() {
    let cookies = [
      Cookie(name: "a", value: "x\r\nEvil: 1", domain: "h.org"),
      Cookie(name: "b", value: "y", domain: "h.org"),
    ]
    #expect(CookieSelection.field(cookies) == "b=y")
    #expect(CookieSelection.field([cookies[0]]) == nil)
  }

  @Test func portsCountWhereACookieHasSome() {
    var cookie = Cookie(name: "a", value: "b", domain: "h.org")
    cookie.ports = [8080]
    #expect(CookieTarget(host: "h.org", port: 8080).isMet(by: cookie))
    #expect(!CookieTarget(host: "h.org", port: 80).isMet(by: cookie))
  }

  private func cause(_ url: String, _ method: String = "GET", home: String, document: String? = nil)
    -> CookieSelection.Cause?
  {
    guard let origin = Origin(url: url), let home = Origin(url: home) else { return nil }
    return CookieSelection.cause(
      of: origin, method: method, home: home, document: document.flatMap { Origin(url: $0) },
      suffixes: ListedSuffixes())
  }

  @Test func aRedirectToAnotherSiteIsCausedByThatSite() {
    #expect(cause("https://a.org/", home: "https://a.org/") == .sameSite)
    #expect(cause("https://www.a.org:444/", home: "https://api.a.org/") == .sameSite)
    #expect(cause("https://b.org/", home: "https://a.org/") == .redirect(isSafe: true))
    #expect(cause("https://b.org/", "POST", home: "https://a.org/") == .redirect(isSafe: false))
    // Sites have a scheme (RFC 6265bis §5.2), and strangers share a public suffix.
    #expect(cause("https://a.org/", home: "http://a.org/") == .redirect(isSafe: true))
    #expect(cause("https://b.github.io/", home: "https://a.github.io/") == .redirect(isSafe: true))
    #expect(cause("https://127.0.0.1/", home: "https://1.0.0.1/") == .redirect(isSafe: true))
  }

  @Test func aDocumentThatIsNamedIsWhatCounts() {
    #expect(cause("https://a.org/", home: "https://a.org/", document: "https://b.org/") == .foreignDocument)
    #expect(cause("https://a.org/", home: "https://b.org/", document: "https://www.a.org/") == .sameSite)
  }

  @Test(arguments: [
    (CookieSelection.Cause.sameSite, "n=1; l=1; s=1; u=1"), (.redirect(isSafe: true), "n=1; l=1; u=1"),
    (.redirect(isSafe: false), "n=1; u=1"), (.foreignDocument, "n=1; u=1"),
  ])
  func sameSiteHoldsCookiesBack(_ cause: CookieSelection.Cause, _ field: String) {
    var jar = Jar()
    for wish in [
      "n=1; SameSite=None; Secure", "l=1; SameSite=Lax", "s=1; SameSite=Strict", "u=1; SameSite=what",
    ] {
      jar.receive(wish, from: "https://a.org/")
    }
    #expect(jar.field(for: "https://a.org/", cause: cause) == field)
  }

  @Test func registrableDomainsAreOneLabelMoreThanPublicOnes() {
    let suffixes = ListedSuffixes()
    #expect(suffixes.registrableDomain(of: "a.b.example.co.uk") == "example.co.uk")
    #expect(suffixes.registrableDomain(of: "Example.ORG") == "example.org")
    #expect(suffixes.registrableDomain(of: "x.y.github.io") == "y.github.io")
    for none in ["co.uk", "localhost", "", ".org", "a..org", "10.0.0.1", "::1", "example.org."] {
      #expect(suffixes.registrableDomain(of: none) == nil, "\(none)")
    }
    #expect(TopLevelSuffixes().registrableDomain(of: "a.co.uk") == "co.uk")
  }
}
