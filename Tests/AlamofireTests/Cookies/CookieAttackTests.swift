import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@testable import Alamofire

/// Attempts to set or read a foreign cookie, or to end the process.
@Suite("Attacks on cookies", .timeLimit(.minutes(5))) struct CookieAttackTests {
  /// With the public suffix list of the package.
  @Test(
    "A cookie for a public suffix is refused",
    arguments: [
      ("evil.co.uk.", "co.uk.", "shop.co.uk."), ("evil.com.", "com.", "shop.com."),
      ("evil.xn--55qx5d.cn", "xn--55qx5d.cn", "shop.xn--55qx5d.cn"),
      ("evil.github.io", ".GitHub.io", "a.github.io"),
      ("evil.co.uk", "co.uk.", "shop.co.uk"), ("evil.test", "公司.cn", "shop.xn--55qx5d.cn"),
    ])
  func publicSuffix(evil: String, domain: String, victim: String) async throws {
    let fixture = try CookieFixture(FakeTransport(FakeReply.ok.setting("a=1; Domain=\(domain)")))
    for host in [evil, victim] { _ = await fixture.session.request("http://\(host)/").end() }
    #expect(fixture.sent == [nil, nil] && fixture.storage.cookies?.isEmpty != false)
  }

  /// Sends 10,000 cookies. Each of them can cause a write of the file, which the response waits for.
  @Test("The number of cookies of one response is limited") func manyCookies() async throws {
    var reply = FakeReply.ok
    reply.fields = (0..<10_000).map { HTTPHeader(name: "Set-Cookie", value: "n\($0)=1; Path=/") }
    let fixture = try CookieFixture(FakeTransport(reply))
    _ = await fixture.session.request("http://a.test/").end()
    let names = Set(fixture.storage.cookies?.map(\.name) ?? [])
    #expect(names == Set((0..<CookieRules.domainLimit).map { "n\($0)" }))
  }

  /// Checks that concurrent writes of the user and of the server lose no cookie.
  @Test("Concurrent writes lose no cookie") func concurrentWrites() async throws {
    let fixture = try CookieFixture(
      FakeTransport { _, index in FakeReply.ok.setting("server\(index)=1; Path=/") })
    let storage = fixture.storage
    async let users: Void = {
      for number in 0..<40 {
        let properties: [HTTPCookiePropertyKey: Any] = [
          .name: "user\(number)", .value: "1", .domain: "a.test", .path: "/",
        ]
        if let cookie = HTTPCookie(properties: properties) { storage.setCookie(cookie) }
        await Task.yield()
      }
    }()
    for _ in 0..<40 { _ = await fixture.session.request("http://a.test/").end() }
    await users
    let names = Set(fixture.storage.cookies?.map(\.name) ?? [])
    #expect(names == Set((0..<40).flatMap { ["user\($0)", "server\($0)"] }))
  }
}
