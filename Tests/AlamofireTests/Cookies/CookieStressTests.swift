import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Scenarios
import Testing

@Suite("Cookies from many threads", .timeLimit(.minutes(5)))
struct CookieStressTests {
  @Test("Users and responses can change a storage concurrently", .steps) func concurrency() async throws {
    let fixture = try CookieFixture(
      FakeTransport { request, index in
        FakeReply.ok.setting(
          "r\(index % 17)=\(request.origin.host)",
          index % 5 == 0 ? "r3=; Max-Age=0" : "s=\(request.origin.host)")
      })
    let storage = fixture.storage
    step("concurrent changes")
    let users = Task.detached {
      for round in 0..<400 {
        let properties: [HTTPCookiePropertyKey: Any] = [
          .name: "u\(round % 9)", .value: "h\(round % 4).test", .domain: "h\(round % 4).test", .path: "/",
        ]
        if let cookie = HTTPCookie(properties: properties) {
          storage.setCookie(cookie)
          if round % 3 == 0 { storage.deleteCookie(cookie) }
        }
        if round % 97 == 0 { storage.removeCookies(since: .distantPast) }
        await Task.yield()
      }
    }
    await withTaskGroup(of: Void.self) { group in
      for worker in 0..<8 {
        group.addTask {
          for round in 0..<60 {
            _ = await fixture.session.request("http://h\((worker + round) % 4).test/").end()
          }
        }
      }
    }
    await users.value
    step("cookies of the requests")
    #expect(fixture.fake.requests.count == 480)
    for request in fixture.fake.requests {
      for pair in request.value("Cookie")?.components(separatedBy: "; ") ?? [] {
        #expect(pair.hasSuffix("=" + request.origin.host), "\(pair)")
      }
    }
  }

  @Test("Concurrent responses lose no cookie") func responses() async throws {
    let fixture = try CookieFixture(FakeTransport { _, index in FakeReply.ok.setting("n\(index)=1") })
    let sessions =
      [fixture.session]
      + (0..<3).map { _ in
        let configuration = URLSessionConfiguration.af.ephemeral
        configuration.httpCookieStorage = fixture.storage
        return Session.retained(fake: fixture.fake, configuration: configuration)
      }
    await withTaskGroup(of: Void.self) { group in
      for count in 0..<120 {
        group.addTask { _ = await sessions[count % 4].request("http://a.test/").end() }
      }
    }
    #expect(Set(fixture.storage.cookies?.map(\.name) ?? []) == Set((0..<120).map { "n\($0)" }))
  }

  @Test("An insecure response does not replace a secure cookie") func secureCookie() async throws {
    let fixture = try CookieFixture(
      FakeTransport { request, index in
        FakeReply.ok.setting(request.origin.scheme == "https" ? "a=good\(index); Secure" : "a=bad\(index)")
      })
    _ = await fixture.session.request("https://a.test/").end()
    await withTaskGroup(of: Void.self) { group in
      for count in 0..<60 {
        group.addTask {
          _ = await fixture.session.request("http\(count % 2 == 0 ? "s" : "")://a.test/").end()
        }
      }
    }
    #expect(fixture.cookie("a")?.value.hasPrefix("good") == true)
  }

  @Test("Any cookie of a server is stored by Foundation without a crash") func anyCookie() async throws {
    let words = [
      "a", "=", "; ", " ", "Expires=", "Max-Age=", "Domain=", "Path=", "Secure", "HttpOnly", "SameSite=Lax",
      "/", ".",
      "a.test", "99999999999999999999", "-1", "Fri, 07 Aug 2099 08:04:19 GMT", "\"", "é", "e\u{301}",
      "\u{301}",
      "\u{FFFE}", "\u{10FFFF}", "🍪", "\t", ",", "<&>", "%00", "\u{202E}",
    ]
    let fixture = try CookieFixture(
      FakeTransport { _, index in
        var random = StepRandom(UInt64(index + 1))
        return (0..<5).reduce(FakeReply.ok) { reply, _ in
          reply.setting((0..<random.next(14)).map { _ in words[random.next(words.count)] }.joined())
        }
      })
    for count in 0..<150 {
      let url = "http\(count % 2 == 0 ? "s" : "")://\(count % 3 == 0 ? "www." : "")a.test/a/b"
      #expect(await fixture.session.request(url).end().error == nil)
    }
    let cookies = try #require(fixture.storage.cookies)
    #expect(cookies.count > 20)
    for cookie in cookies {
      let copy = cookie.properties.flatMap { HTTPCookie(properties: $0) }
      #expect(copy?.value == cookie.value && !cookie.description.isEmpty)
    }
    #expect(HTTPCookie.requestHeaderFields(with: cookies)["Cookie"]?.isEmpty == false)
  }
}
