import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@testable import Alamofire

@Suite("Cookie fields of repeated requests", .timeLimit(.minutes(5))) struct CookieMemoTests {
  private static let start: Int64 = 1_800_000_000

  /// Compares the memoized field of each request with a selection that uses no memo.
  @Test("The cookies of a request do not depend on earlier requests", arguments: 1...4 as ClosedRange<UInt64>)
  func independence(_ seed: UInt64) throws {
    var random = StepRandom(seed)
    let cookies = try (0..<30).map { number -> HTTPCookie in
      var cookie = Cookie(
        name: "n\(number)", value: "\(number)", domain: ["a.test", "www.a.test", "b.test"][random.next(3)],
        isHostOnly: random.next(2) == 0, path: ["/", "/p", "/p/q"][random.next(3)], creation: Int64(number))
      cookie.isSecure = random.next(4) == 0
      cookie.sameSite = [nil, nil, Cookie.SameSite.lax, .strict][random.next(4)]
      if random.next(2) == 0 {
        cookie.expiry = HTTPDate(secondsSince1970: Self.start + Int64(random.next(60)))
      }
      return try #require(StoredCookie(cookie))
    }
    let index = CookieIndex(cookies)
    let causes: [CookieSelection.Cause] = [
      .sameSite, .foreignDocument, .redirect(isSafe: true), .redirect(isSafe: false),
    ]
    for _ in 0..<3_000 {
      let target = CookieTarget(
        host: ["a.test", "www.a.test", "x.www.a.test", "b.test", "c.test"][random.next(5)],
        path: ["/", "/p", "/p/q/r", "/pq"][random.next(4)], isSecure: random.next(2) == 0)
      let now = HTTPDate(secondsSince1970: Self.start + Int64(random.next(70)) - 5)
      let cause = causes[random.next(4)]
      let alone = CookieSelection.cookies(for: target, from: index.candidates(for: target.host), now: now) {
        cause
      }
      #expect(index.field(for: target, now: now) { cause } == CookieSelection.field(alone))
    }
  }

  @Test("Changes of the storage are effective at once") func changes() async throws {
    let fixture = try CookieFixture()
    func get() async { _ = await fixture.session.request("http://a.test/x").end() }
    fixture.put("a", "1", domain: "a.test")
    for _ in 0..<3 { await get() }
    fixture.put("a", "2", domain: "a.test")
    await get()
    fixture.put("b", "1", domain: "a.test", path: "/x")
    await get()
    fixture.cookie("a").map { fixture.storage.deleteCookie($0) }
    await get()
    fixture.storage.removeCookies(since: .distantPast)
    await get()
    #expect(fixture.sent == ["a=1", "a=1", "a=1", "a=2", "b=1; a=2", "b=1", nil])
  }

  /// Checks that a request with a document of another site sends no `SameSite` cookie, whatever the requests before it
  /// sent.
  @Test("The document decides which SameSite cookies are sent") func document() async throws {
    let fixture = try CookieFixture(
      FakeTransport(
        FakeReply.ok.setting(
          "strict=1; SameSite=Strict", "lax=1; SameSite=Lax", "none=1; SameSite=None; Secure", "unset=1")))
    _ = await fixture.session.request("https://www.a.test/").end()
    let documents = [
      nil, "https://b.test/", "https://a.test/page", "https://b.test/", nil, "http://www.a.test/",
    ]
    for document in documents {
      var request = try URLRequest(url: "https://www.a.test/", method: .get)
      request.mainDocumentURL = document.flatMap { URL(string: $0) }
      _ = await fixture.session.request(request).end()
    }
    let all = "strict=1; lax=1; none=1; unset=1"
    let foreign = "none=1; unset=1"
    // A document without TLS is of another site (RFC 6265bis §5.2.1), unless the public rules say otherwise.
    #expect(fixture.sent.dropLast() == [nil, all, foreign, all, foreign, all])
    #expect([all, foreign].contains(fixture.sent.last ?? ""))
  }

  /// Checks that the document of the first request decides after a redirect.
  @Test("The document decides for each hop") func documentOfRedirect() async throws {
    let fixture = try CookieFixture(
      FakeTransport(FakeReply.ok.setting("strict=1; SameSite=Strict"), .redirect(302, to: "https://a.test/")))
    _ = await fixture.session.request("https://a.test/").end()
    var request = try URLRequest(url: "https://b.test/", method: .get)
    request.mainDocumentURL = URL(string: "https://a.test/")
    _ = await fixture.session.request(request).end()
    #expect(fixture.sent == [nil, nil, "strict=1"])
  }

  @Test("Tests use their own cookies and caches") func testFolders() throws {
    let home = try #require(ProcessInfo.processInfo.environment["ALAMOFIRE_TEST_HOME"])
    let caches = try #require(FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first)
    #expect(caches.path.hasPrefix(home))
    #expect(ProcessInfo.processInfo.environment["XDG_DATA_HOME"]?.hasPrefix(home) == true)
  }
}
