import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@testable import Alamofire

@Suite("Cookies in a storage", .timeLimit(.minutes(5)))
struct StoredCookieTests {
  @Test("Properties are those of the Set-Cookie field") func properties() async throws {
    let fixture = try CookieFixture(
      FakeTransport(
        FakeReply.ok.setting(
          "a=1; Domain=a.test; Path=/x; Secure; HttpOnly; SameSite=Strict; Max-Age=3600", "b=2", "token")))
    let before = Date()
    _ = await fixture.session.request("https://www.a.test/p/q").end()
    let cookie = try #require(fixture.cookie("a"))
    #expect(cookie.value == "1")
    #expect(cookie.domain == ".a.test")
    #expect(cookie.path == "/x")
    #expect(cookie.isSecure)
    #expect(cookie.isHTTPOnly)
    #expect(cookie.sameSitePolicy == .sameSiteStrict)
    #expect(!cookie.isSessionOnly)
    #expect(cookie.comment == nil)
    // In whole seconds, from a moment during the request.
    let start = try #require(cookie.expiresDate).addingTimeInterval(-3600)
    #expect(start > before.addingTimeInterval(-2) && start <= Date())
    let other = try #require(fixture.cookie("b"))
    #expect(other.domain == "www.a.test")
    #expect(other.path == "/p")
    #expect(other.isSessionOnly)
    #expect(other.expiresDate == nil)
    #expect(!other.isSecure)
    #expect(other.sameSitePolicy == nil)
    #expect(fixture.cookie("")?.value == "token")
  }

  @Test("A copy by properties is equal") func copy() async throws {
    let fixture = try CookieFixture(
      FakeTransport(FakeReply.ok.setting("a=1; Secure; HttpOnly; SameSite=Lax; Domain=a.test", "b=1")))
    _ = await fixture.session.request("https://a.test/").end()
    let cookie = try #require(fixture.cookie("a"))
    let copy = try #require(cookie.properties.flatMap { HTTPCookie(properties: $0) })
    #expect(copy.isSecure)
    #expect(copy.isHTTPOnly)
    #expect(copy.domain == ".a.test")
    #expect(cookie.properties?[.sameSitePolicy] as? String == "lax")
    let plain = try #require(fixture.cookie("b")?.properties.flatMap { HTTPCookie(properties: $0) })
    #expect(!plain.isSecure)
    // The copy replaces the first cookie, and is treated as a cookie of the user.
    fixture.storage.setCookie(copy)
    _ = await fixture.session.request("http://a.test/").end()
    _ = await fixture.session.request("https://www.a.test/").end()
    #expect(fixture.sent.suffix(2) == ["b=1", "a=1"])
  }

  @Test("Notes contain attributes that a file loses") func notes() {
    var cookie = Cookie(name: "a", value: "1", domain: "a.test", creation: 1_795_373_232_000_001)
    #expect(CookieNote(CookieNote(cookie).text) == CookieNote(cookie))
    cookie.isSecure = true
    cookie.isHTTPOnly = true
    cookie.sameSite = .strict
    #expect(
      CookieNote(cookie).text == "Alamofire; Secure; HttpOnly; SameSite=Strict; Created=1795373232000001")
    #expect(CookieNote(CookieNote(cookie).text) == CookieNote(cookie))
    for text in ["", "Secure", "a comment; Secure", ";"] { #expect(CookieNote(text) == nil) }
    #expect(CookieNote("Alamofire; SameSite=x; Created=soon; =; ;")?.creation == nil)
  }

  @Test("Attributes that a file lost are known") func lostAttributes() throws {
    var cookie = Cookie(name: "a", value: "1", domain: "a.test", creation: 5)
    cookie.isSecure = true
    cookie.isHTTPOnly = true
    cookie.sameSite = .lax
    let properties: [HTTPCookiePropertyKey: Any] = [
      .name: "a", .value: "1", .domain: "a.test", .path: "/", .comment: CookieNote(cookie).text,
    ]
    let loaded = try #require(HTTPCookie(properties: properties))
    #expect(!loaded.isSecure, "Foundation has lost it")
    #expect(Cookie(loaded) == cookie)
  }

  @Test(
    "Domains of the user are read as by Foundation",
    arguments: [
      ("A.Test", "a.test", true), (".a.test", "a.test", false), ("[::1]", "::1", true),
      (".127.0.0.1", "127.0.0.1", true),
      ("bücher.test", "xn--bcher-kva.test", true), ("", "", true),
    ])
  func domains(_ text: String, _ domain: String, _ isHostOnly: Bool) throws {
    let properties: [HTTPCookiePropertyKey: Any] = [.name: "a", .value: "1", .domain: text, .path: "/"]
    let cookie = Cookie(try #require(HTTPCookie(properties: properties)))
    #expect(cookie.domain == domain)
    #expect(cookie.isHostOnly == isHostOnly)
  }

  @Test("Dates out of range are distant dates") func dates() {
    #expect(HTTPDate(clamping: .distantFuture) > .now)
    #expect(HTTPDate(clamping: Date(timeIntervalSince1970: .infinity)).secondsSince1970 == .max)
    #expect(HTTPDate(clamping: Date(timeIntervalSince1970: -1e300)).secondsSince1970 == .min)
    #expect(HTTPDate(clamping: Date(timeIntervalSince1970: .nan)).secondsSince1970 == .max)
  }

  @Test("The key of Foundation does not bypass Secure") func keyOfFoundation() async throws {
    // Foundation's key is domain, path and name without separators, so "/b" and "c" equals "/" and "bc".
    let fixture = try CookieFixture(
      FakeTransport(
        FakeReply.ok.setting("bc=secret; Secure; Path=/"), FakeReply.ok.setting("c=evil; Path=/b"),
        FakeReply.ok.setting("c=fine; Path=/b")))
    for url in ["https://a.test/", "http://a.test/"] { _ = await fixture.session.request(url).end() }
    #expect(fixture.cookie("bc")?.value == "secret")
    #expect(fixture.cookie("c") == nil)
    _ = await fixture.session.request("https://a.test/").end()
    #expect(fixture.cookie("c")?.value == "fine")
  }

  @Test("The name of a secure cookie in another form does not replace it") func formsOfNames() async throws {
    let fixture = try CookieFixture(
      FakeTransport(
        FakeReply.ok.setting("\u{E9}=secret; Secure; Path=/"), FakeReply.ok.setting("e\u{301}=evil; Path=/")))
    for url in ["https://a.test/", "http://a.test/"] { _ = await fixture.session.request(url).end() }
    #expect(fixture.storage.cookies?.map(\.value) == ["secret"], "Foundation has one place for both names")
  }

  @Test("Cookies are replaced, removed and ordered") func order() async throws {
    let fixture = try CookieFixture(
      FakeTransport(
        FakeReply.ok.setting("a=1", "b=1", "c=1"), FakeReply.ok.setting("a=2", "b=; Max-Age=0", "d=1"), .ok))
    fixture.put("c", "users", domain: "a.test")
    for _ in 0..<3 { _ = await fixture.session.request("http://a.test/").end() }
    #expect(fixture.sent == ["c=users", "c=1; a=1; b=1", "c=1; a=2; d=1"])
    #expect(fixture.storage.cookies?.count == 3)
  }

  @Test("A cookie of the user is replaced, although it spells the domain differently") func spelling()
    async throws
  {
    let fixture = try CookieFixture(FakeTransport(FakeReply.ok.setting("a=new"), .ok))
    fixture.put("a", "users", domain: "bücher.test")
    for _ in 0..<2 { _ = await fixture.session.request("http://xn--bcher-kva.test/").end() }
    #expect(fixture.sent == ["a=users", "a=new"])
    #expect(fixture.storage.cookies?.map(\.value) == ["new"], "the storage has both cookies")
  }

  @Test("A value that is canonically equivalent is another value") func canonicalEquivalence() async throws {
    let fixture = try CookieFixture(
      FakeTransport(FakeReply.ok.setting("a=\u{E9}"), FakeReply.ok.setting("a=e\u{301}")))
    for _ in 0..<3 { _ = await fixture.session.request("http://a.test/").end() }
    let sent = try #require(fixture.sent.last ?? nil)
    #expect(Array(sent.utf8) == Array("a=e\u{301}".utf8))
  }

  @Test("The number of cookies of a domain is limited") func domainLimit() async throws {
    let fixture = try CookieFixture(
      FakeTransport { _, index in
        var reply = FakeReply.ok
        for count in 0..<50 { reply = reply.setting("n\(index * 50 + count)=1") }
        return reply
      })
    fixture.put("other", domain: "b.test")
    for _ in 0..<5 { _ = await fixture.session.request("http://a.test/").end() }
    #expect(fixture.storage.cookies?.count == CookieRules.domainLimit + 1)
    #expect(fixture.cookie("n69") == nil)
    #expect(fixture.cookie("n70") != nil)
    #expect(fixture.cookie("other") != nil)
  }

  @Test("The number of cookies of a storage is limited") func totalLimit() async throws {
    let fixture = try CookieFixture(
      FakeTransport((0..<30).reduce(FakeReply.ok) { $0.setting("new\($1)=1") }))
    // Cookies of the user have no creation date, so they are the oldest.
    for number in 0..<CookieRules.totalLimit - 10 {
      fixture.put("n\(number)", domain: "h\(number / 100).test")
    }
    _ = await fixture.session.request("http://a.test/").end()
    #expect(fixture.storage.cookies?.count == CookieRules.totalLimit)
    #expect(fixture.storage.cookies?.count { $0.domain == "a.test" } == 30)
  }

  @Test("A storage has one store for all sessions") func sharedStore() throws {
    let storage = try #require(URLSessionConfiguration.ephemeral.httpCookieStorage)
    let other = try #require(URLSessionConfiguration.ephemeral.httpCookieStorage)
    let store = CookieStores.shared.store(of: storage)
    #expect(CookieStores.shared.store(of: storage) === store)
    #expect(CookieStores.shared.store(of: other) !== store)
  }
}
