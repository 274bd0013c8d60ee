import HTTPWire
import Testing

@Suite struct CookieRulesTests {
  private let secure = "https://www.example.com/a/b"
  private let plain = "http://www.example.com/a/b"

  private func stored(_ field: String, from url: String) throws -> Cookie {
    var jar = Jar()
    jar.receive(field, from: url)
    return try #require(jar.cookies.first)
  }

  @Test("A cookie without attributes is for its host and folder") func defaults() throws {
    let cookie = try stored("a=b", from: plain)
    #expect(cookie.domain == "www.example.com")
    #expect(cookie.isHostOnly)
    #expect(cookie.path == "/a")
    #expect(cookie.expiry == nil)
    #expect(cookie.sameSite == nil)
  }

  @Test(
    "The default path is the folder of the URL",
    arguments: [
      ("http://h.org", "/"), ("http://h.org/", "/"), ("http://h.org/a", "/"), ("http://h.org/a/", "/a"),
      ("http://h.org/a/b?c/d", "/a"), ("http://h.org?x/y", "/"), ("http://h.org/%2F/x", "/%2F"),
      ("http://h.org//x", "/"), ("http://h.org/a//x", "/a/"), ("http://[::1]:8080/a/b", "/a"),
    ])
  func defaultPath(_ url: String, _ path: String) throws {
    #expect(try #require(CookieTarget(url: url)).defaultPath == path)
  }

  @Test("A default path is not longer than an attribute may be")
  func longDefaultPath() {
    func path(_ path: String) -> String {
      let rules = CookieRules(
        target: CookieTarget(host: "a.test", path: path), suffixes: ListedSuffixes(), now: Jar().now)
      let wish = Array("a=b".utf8)
      guard let wish = try? SetCookie(wish),
        case .store(let cookie, nil) = rules.decide(wish, existing: [], creation: 1)
      else { return "nothing was stored" }
      return cookie.path
    }
    let longest = "/" + String(repeating: "p", count: SetCookie.attributeLimit - 1)
    #expect(path(longest + "/x") == longest)
    #expect(path(longest + "/x/y") == longest, "its parent is short enough")
    #expect(path(longest + "p/x") == "/")
    #expect(path("/short" + longest + "/x") == "/short")
    #expect(path("/" + String(repeating: "p", count: 5_000) + "/x") == "/")
  }

  @Test(
    "Paths match at slashes",
    arguments: [
      ("/a", "/a", true), ("/a/b", "/a", true), ("/a/", "/a", true), ("/ab", "/a", false), ("/", "/a", false),
      ("/a", "/a/", false), ("/a/b", "/a/", true), ("/anything", "/", true), ("/A", "/a", false),
      ("/%61", "/a", false),
    ])
  func paths(_ path: String, _ cookie: String, _ matches: Bool) {
    #expect(CookieTarget(host: "h.org", path: path).isBelow(cookie) == matches)
  }

  @Test(
    "Domains match at dots",
    arguments: [
      ("example.com", "example.com", true), ("www.example.com", "example.com", true),
      ("a.b.example.com", "example.com", true), ("badexample.com", "example.com", false),
      ("example.com", "www.example.com", false), ("example.com.evil.org", "example.com", false),
      ("1.2.3.4", "3.4", false), ("1.2.3.4", "1.2.3.4", true), ("::1", "::1", true), ("a.::1", "::1", false),
      ("example.com", "", false), (".com", "com", true),
    ])
  func domainMatch(_ host: String, _ domain: String, _ matches: Bool) {
    #expect(CookieTarget(host: host).isCovered(by: domain) == matches)
  }

  @Test("A domain must cover the host and must not be public") func domains() throws {
    let jar = Jar()
    #expect(try stored("a=b; Domain=example.com", from: plain).isHostOnly == false)
    #expect(jar.refusal("a=b; Domain=other.com", from: plain) == .foreignDomain("other.com"))
    #expect(jar.refusal("a=b; Domain=x.www.example.com", from: plain) == .foreignDomain("x.www.example.com"))
    #expect(jar.refusal("a=b; Domain=com", from: plain) == .publicSuffix("com"))
    #expect(jar.refusal("a=b; Domain=co.uk", from: "http://shop.co.uk/") == .publicSuffix("co.uk"))
    #expect(jar.refusal("a=b; Domain=exämple.com", from: plain) == .foreignDomain("exämple.com"))
  }

  @Test("A trailing dot does not make a public suffix private") func trailingDot() throws {
    for suffixes in [ListedSuffixes(), TopLevelSuffixes()] as [any PublicSuffixes] {
      var jar = Jar()
      jar.suffixes = suffixes
      #expect(jar.refusal("a=b; Domain=com.", from: "http://evil.com./") == .publicSuffix("com."))
      jar.receive("a=b; Domain=com.", from: "http://com./")
      #expect(jar.field(for: "http://com./") == "a=b" && jar.field(for: "http://evil.com./") == nil)
    }
    #expect(
      Jar().refusal("a=b; Domain=co.uk.", from: "http://evil.co.uk./") == .publicSuffix("co.uk."))
    #expect(Jar().refusal("a=b; Domain=co.uk..", from: "http://evil.co.uk../") == .publicSuffix("co.uk.."))
    #expect(Jar().refusal("a=b; Domain=.", from: "http://evil.com./") == nil, "the host alone")
    #expect(try stored("a=b; Domain=shop.co.uk.", from: "http://www.shop.co.uk./").isHostOnly == false)
  }

  @Test("A host that is a public suffix can set its own cookies") func publicSuffixHost() throws {
    for (url, domain) in [("http://localhost:8080/", "localhost"), ("http://github.io/", "github.io")] {
      let cookie = try stored("a=b; Domain=\(domain)", from: url)
      #expect(cookie.isHostOnly)
      #expect(cookie.domain == domain)
    }
  }

  @Test("Addresses have no domains", arguments: ["http://127.0.0.1:8080/", "http://[::1]/"])
  func addresses(_ url: String) throws {
    let host = try #require(CookieTarget(url: url)).host
    #expect(try stored("a=b", from: url).isHostOnly)
    #expect(try stored("a=b; Domain=\(host)", from: url).isHostOnly)
    if host.contains(":") { #expect(try stored("a=b; Domain=[\(host)]", from: url).domain == host) }
    #expect(Jar().refusal("a=b; Domain=0.0.1", from: "http://127.0.0.1/") == .foreignDomain("0.0.1"))
  }

  @Test("Max-Age has priority over Expires, and both are limited to 400 days") func lifetime() throws {
    let now = Jar().now.secondsSince1970
    let past = "Expires=Thu, 01 Jan 1970 00:00:00 GMT"
    let future = "Expires=Fri, 01 Jan 2100 00:00:00 GMT"
    let life = { (field: String) in try stored(field, from: plain).expiry.map { $0.secondsSince1970 - now } }
    #expect(try life("a=b; \(past); Max-Age=10") == 10)
    #expect(try life("a=b; Max-Age=10; \(past)") == 10)
    #expect(try life("a=b; \(future)") == 400 * 86_400)
    #expect(try life("a=b; Max-Age=999999999999") == 400 * 86_400)
    #expect(try life("a=b; Expires=whenever") == nil)
    #expect(try life("a=b; Max-Age=soon; \(future)") == 400 * 86_400)
  }

  @Test("An expired cookie is removed, and a replaced one keeps its creation date") func replacement() throws
  {
    var jar = Jar()
    #expect(jar.receive("a=b; Max-Age=0", from: plain) == .nothing)
    jar.receive("a=1", from: plain)
    jar.receive("z=1", from: plain)
    jar.receive("a=2", from: plain)
    #expect(jar.field(for: plain) == "a=2; z=1")
    #expect(jar.receive("a=; Max-Age=0", from: plain) == .remove(0))
    #expect(jar.field(for: plain) == "z=1")
  }

  @Test("Names and paths are compared by bytes") func bytes() {
    var jar = Jar()
    jar.receive("\u{E9}=1; Path=/", from: plain)
    jar.receive("e\u{301}=2; Path=/", from: plain)
    jar.receive("a=1; Path=/\u{E9}", from: plain)
    jar.receive("a=2; Path=/e\u{301}", from: plain)
    #expect(jar.cookies.count == 4)
  }

  @Test("Host-only is part of the identity") func hostOnly() {
    var jar = Jar()
    jar.receive("a=1; Path=/", from: "http://example.com/")
    jar.receive("a=2; Path=/; Domain=example.com", from: "http://example.com/")
    #expect(jar.field(for: "http://example.com/") == "a=1; a=2")
    #expect(jar.field(for: "http://www.example.com/") == "a=2")
  }

  @Test("A secure cookie is set over TLS and not replaced without it") func secureCookies() throws {
    #expect(Jar().refusal("a=b; Secure", from: plain) == .secureFromInsecureOrigin)
    var jar = Jar()
    jar.receive("a=b; Secure; Domain=example.com; Path=/a", from: secure)
    #expect(jar.field(for: plain) == nil)
    #expect(jar.field(for: secure) == "a=b")
    for field in [
      "a=x", "=a=x", "=a=\u{301}x", "a=x; Path=/a/deep", "a=x; Domain=example.com; Path=/a",
      "a=x; Path=/a; Max-Age=0",
    ] {
      #expect(jar.refusal(field, from: plain) == .shadowsSecureCookie, "\(field)")
    }
    #expect(jar.refusal("a=x", from: "http://sub.www.example.com/a/b") == .shadowsSecureCookie)
    // Cookies with other names, other domains or shorter paths are accepted.
    for field in ["b=x", "a=x; Path=/", "a=x; Path=/other"] {
      #expect(jar.refusal(field, from: plain) == nil, "\(field)")
    }
    #expect(jar.refusal("a=x", from: "http://example.org/a/b") == nil)
    jar.receive("\u{E9}=b; Secure", from: secure)
    #expect(jar.refusal("\u{E9}=x", from: plain) == .shadowsSecureCookie)
    #expect(jar.refusal("e\u{301}=x", from: plain) == nil, "the names are equal in Swift only")
    // A secure server can replace the cookie.
    jar.receive("a=x; Domain=example.com; Path=/a", from: secure)
    #expect(jar.field(for: plain) == "a=x")
  }

  @Test("A secure cookie that has expired hides nothing") func expiredSecureCookie() {
    var jar = Jar()
    jar.receive("a=b; Secure; Max-Age=10", from: secure)
    jar.now = HTTPDate(secondsSince1970: jar.now.secondsSince1970 + 9)
    #expect(jar.refusal("a=x", from: plain) == .shadowsSecureCookie)
    jar.now = HTTPDate(secondsSince1970: jar.now.secondsSince1970 + 2)
    #expect(jar.refusal("a=x", from: plain) == nil)
    jar.receive("a=x", from: plain)
    #expect(jar.field(for: plain) == "a=x")
  }

  @Test("Prefixes require their attributes") func prefixes() {
    let jar = Jar()
    for field in [
      "__Secure-a=b", "__secure-a=b; Path=/", "__Host-a=b; Secure", "__Host-a=b; Secure; Path=/x",
      "__HOST-a=b; Secure; Path=/; Domain=www.example.com", "__Host-a=b; Path=/", "=__Secure-a=b", "__Host-a",
    ] {
      #expect(jar.refusal(field, from: secure) == .brokenPrefix, "\(field)")
    }
    #expect(jar.refusal("__Secure-a=b; Secure", from: plain) == .secureFromInsecureOrigin)
    for field in ["__Secure-a=b; Secure; Domain=example.com", "__Host-a=b; Secure; Path=/", "__Hosta=b"] {
      #expect(jar.refusal(field, from: secure) == nil, "\(field)")
    }
  }

  @Test("SameSite=None requires Secure") func sameSiteNone() {
    #expect(Jar().refusal("a=b; SameSite=None", from: secure) == .sameSiteNoneWithoutSecure)
    #expect(Jar().refusal("a=b; SameSite=None; Secure", from: secure) == nil)
  }

  @Test("Documents of other sites receive no SameSite cookies") func foreignDocuments() {
    var jar = Jar()
    #expect(jar.receive("a=b; SameSite=Lax", from: secure, isThirdParty: true) == .refuse(.crossSite))
    #expect(jar.receive("a=b; SameSite=Strict", from: secure, isThirdParty: true) == .refuse(.crossSite))
    jar.receive("a=b", from: secure, isThirdParty: true)
    #expect(jar.cookies.count == 1)
  }

  @Test("The oldest cookies are evicted first, and secure ones last") func eviction() {
    var cookies = (0..<5).map { Cookie(name: "\($0)", value: "", domain: "h.org", creation: Int64($0)) }
    cookies[0].isSecure = true
    cookies[3].expiry = HTTPDate(secondsSince1970: 1)
    let now = HTTPDate(secondsSince1970: 10)
    #expect(CookieRules.surplus(of: cookies, limit: 5, now: now) == [])
    #expect(CookieRules.surplus(of: cookies, limit: 3, now: now) == [3, 1])
    #expect(CookieRules.surplus(of: cookies, limit: 0, now: now) == [3, 1, 2, 4, 0])
  }
}

@Suite struct CookiePolicyTests {
  @Test("Policies accept the documented cookies") func policies() {
    let allows = { (policy: CookiePolicy, document: String?) in
      policy.allows(host: "cdn.example.com", document: document, suffixes: ListedSuffixes())
    }
    for document in [nil, "www.example.com", "example.com", "cdn.example.com"] {
      #expect(allows(.onlyFromMainDocumentDomain, document))
      #expect(!allows(.never, document))
    }
    #expect(!allows(.onlyFromMainDocumentDomain, "example.org"))
    #expect(!allows(.onlyFromMainDocumentDomain, "evilexample.com"))
    #expect(allows(.always, "example.org"))
  }

  @Test("The stricter of two policies applies") func stricterPolicy() {
    #expect(CookiePolicy.always.and(.always) == .always)
    #expect(CookiePolicy.always.and(.onlyFromMainDocumentDomain) == .onlyFromMainDocumentDomain)
    #expect(CookiePolicy.onlyFromMainDocumentDomain.and(.never) == .never)
    #expect(CookiePolicy.never.and(.always) == .never)
  }
}
