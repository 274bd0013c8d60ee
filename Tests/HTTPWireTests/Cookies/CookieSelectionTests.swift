import HTTPWire
import Testing

@Suite struct CookieSelectionTests {
  @Test("Cookies with longer paths and older cookies are first") func order() {
    var jar = Jar()
    for field in ["c=1; Path=/", "b=1; Path=/a/b", "a=1; Path=/", "d=1; Path=/a"] {
      jar.receive(field, from: "http://h.org/a/b/c")
    }
    #expect(jar.field(for: "http://h.org/a/b/c") == "b=1; d=1; c=1; a=1")
  }

  @Test("An expired cookie is not sent") func expired() {
    var jar = Jar()
    jar.receive("a=b; Max-Age=10", from: "http://h.org/")
    jar.now = HTTPDate(secondsSince1970: jar.now.secondsSince1970 + 9)
    #expect(jar.field(for: "http://h.org/") == "a=b")
    jar.now = HTTPDate(secondsSince1970: jar.now.secondsSince1970 + 1)
    #expect(jar.field(for: "http://h.org/") == nil)
  }

  @Test("A cookie without a name is sent as its value") func namelessCookie() {
    var jar = Jar()
    jar.receive("token", from: "http://h.org/")
    #expect(jar.field(for: "http://h.org/") == "token")
  }

  @Test("A cookie that would make the field invalid is not sent") func invalidCookie() {
    let cookies = [
      Cookie(name: "a", value: "x\r\nEvil: 1", domain: "h.org"),
      Cookie(name: "b", value: "y", domain: "h.org"),
    ]
    #expect(CookieSelection.field(cookies) == "b=y")
    #expect(CookieSelection.field([cookies[0]]) == nil)
  }

  @Test("Ports of a cookie are compared") func ports() {
    var cookie = Cookie(name: "a", value: "b", domain: "h.org")
    cookie.ports = [8080]
    #expect(CookieTarget(host: "h.org", port: 8080).isMet(by: cookie))
    #expect(!CookieTarget(host: "h.org", port: 80).isMet(by: cookie))
  }

  private func cause(
    _ url: String, _ method: String = "GET", initialOrigin: String, redirectors: [String] = [],
    document: String? = nil
  ) -> CookieSelection.Cause? {
    guard let origin = Origin(url: url), let initialOrigin = Origin(url: initialOrigin) else { return nil }
    return CookieSelection.cause(
      of: origin, method: method, initialOrigin: initialOrigin,
      redirectors: redirectors.compactMap { Origin(url: $0) },
      document: document.flatMap { Origin(url: $0) },
      suffixes: ListedSuffixes())
  }

  @Test("A redirect to another site is caused by that site") func redirect() {
    #expect(cause("https://a.org/", initialOrigin: "https://a.org/") == .sameSite)
    #expect(cause("https://www.a.org:444/", initialOrigin: "https://api.a.org/") == .sameSite)
    #expect(cause("https://b.org/", initialOrigin: "https://a.org/") == .redirect(isSafe: true))
    #expect(cause("https://b.org/", "POST", initialOrigin: "https://a.org/") == .redirect(isSafe: false))
    // A site has a scheme (RFC 6265bis §5.2), and hosts below a public suffix are different sites.
    #expect(cause("https://a.org/", initialOrigin: "http://a.org/") == .redirect(isSafe: true))
    #expect(cause("https://b.github.io/", initialOrigin: "https://a.github.io/") == .redirect(isSafe: true))
    #expect(cause("https://127.0.0.1/", initialOrigin: "https://1.0.0.1/") == .redirect(isSafe: true))
  }

  @Test("A redirect by another site back to the first site is caused by the other site") func redirectBack() {
    let (first, other) = ("https://a.org/", "https://b.org/")
    #expect(cause(first, initialOrigin: first, redirectors: [other]) == .redirect(isSafe: true))
    #expect(cause(first, "POST", initialOrigin: first, redirectors: [other]) == .redirect(isSafe: false))
    #expect(cause(first, initialOrigin: first, redirectors: ["http://a.org/"]) == .redirect(isSafe: true))
    let within = "https://www.a.org/"
    #expect(cause(first, initialOrigin: first, redirectors: [within]) == .sameSite)
    #expect(cause(first, initialOrigin: first, redirectors: [within, other]) == .redirect(isSafe: true))
    #expect(cause(first, initialOrigin: first, redirectors: [other], document: within) == .sameSite)
  }

  @Test("The document of a request decides") func document() {
    #expect(
      cause("https://a.org/", initialOrigin: "https://a.org/", document: "https://b.org/") == .foreignDocument
    )
    #expect(
      cause("https://a.org/", initialOrigin: "https://b.org/", document: "https://www.a.org/") == .sameSite)
  }

  @Test(
    "SameSite cookies are sent for allowed causes only",
    arguments: [
      (CookieSelection.Cause.sameSite, "n=1; l=1; s=1; u=1"), (.redirect(isSafe: true), "n=1; l=1; u=1"),
      (.redirect(isSafe: false), "n=1; u=1"), (.foreignDocument, "n=1; u=1"),
    ])
  func sameSite(_ cause: CookieSelection.Cause, _ field: String) {
    var jar = Jar()
    for wish in [
      "n=1; SameSite=None; Secure", "l=1; SameSite=Lax", "s=1; SameSite=Strict", "u=1; SameSite=what",
    ] {
      jar.receive(wish, from: "https://a.org/")
    }
    #expect(jar.field(for: "https://a.org/", cause: cause) == field)
  }

  @Test("A registrable domain is one label longer than a public suffix") func registrableDomains() {
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
