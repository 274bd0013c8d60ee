import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@Suite("Cookies of requests", .timeLimit(.minutes(5)))
struct CookieStageTests {
  @Test("A cookie of a response is sent with the next request") func nextRequest() async throws {
    let fixture = try CookieFixture(FakeTransport(FakeReply.ok.setting("a=1; Path=/", "b=2; Path=/x")))
    _ = await fixture.session.request("http://a.test/").end()
    #expect(fixture.cookie("a") != nil, "stored when the response is there")
    let response = await fixture.session.request("http://a.test/x/y").end()
    _ = await fixture.session.request("http://b.test/").end()
    #expect(fixture.sent == [nil, "b=2; a=1", nil])
    // The caller's request is unchanged; the sent fields are available.
    #expect(response.request?.headers["Cookie"] == nil)
    #expect(response.metrics?.transactionMetrics.first?.request.headers["Cookie"] == "b=2; a=1")
  }

  @Test("A field replaces or removes the cookie of an earlier field of the same response")
  func fieldsOfOneResponse() async throws {
    let fixture = try CookieFixture(
      FakeTransport(FakeReply.ok.setting("a=1", "b=1", "a=2", "b=; Max-Age=0")))
    for _ in 0..<2 { _ = await fixture.session.request("http://a.test/").end() }
    #expect(fixture.sent == [nil, "a=2"])
  }

  @Test("Cookies are stored and sent at every hop", arguments: [301, 302, 303, 307, 308])
  func cookiesAreStoredAndSentAtEveryHop(_ status: Int) async throws {
    let fixture = try CookieFixture(
      FakeTransport(
        FakeReply.redirect(status, to: "/second").setting("a=1"),
        FakeReply.redirect(status, to: "http://b.test/third").setting("a=2", "b=1"),
        FakeReply.redirect(status, to: "http://a.test/fourth").setting("c=1")))
    _ = await fixture.session.request("http://a.test/first").end()
    #expect(fixture.sent == [nil, "a=1", nil, "a=2; b=1"])
    #expect(fixture.cookie("c")?.domain == "b.test")
  }

  @Test("Cookies are sent with the answer to a challenge") func challenge() async throws {
    let fixture = try CookieFixture(FakeTransport(FakeReply.challenge().setting("a=1")))
    let response = await fixture.session.request("http://a.test/").authenticate(username: "u", password: "p")
      .end()
    #expect(response.error == nil)
    #expect(fixture.sent == [nil, "a=1"])
    #expect(fixture.fake.requests.last?.value("Authorization") != nil)
  }

  @Test("Cookies are sent with a retry") func retry() async throws {
    let fixture = try CookieFixture(
      FakeTransport(FakeReply.status(503).setting("a=1")),
      interceptor: RetryPolicy(exponentialBackoffScale: 0))
    _ = await fixture.session.request("http://a.test/").validate().end()
    #expect(fixture.sent == [nil, "a=1"])
  }

  @Test("Cookies are stored with the head, even if the body fails") func failedBody() async throws {
    var reply = FakeReply.text("half").setting("a=1")
    reply.failure = TransportFailure(.connectionLost, "lost")
    let fixture = try CookieFixture(FakeTransport(reply))
    #expect(await fixture.session.request("http://a.test/").end().error != nil)
    #expect(fixture.cookie("a")?.value == "1")
  }

  @Test("Changes of the storage by the user are effective at once") func changes() async throws {
    let fixture = try CookieFixture()
    fixture.put("mine", domain: ".a.test")
    _ = await fixture.session.request("http://www.a.test/").end()
    fixture.put("host", domain: "www.a.test", path: "/deep")
    _ = await fixture.session.request("http://www.a.test/deep/er").end()
    fixture.cookie("mine").map { fixture.storage.deleteCookie($0) }
    _ = await fixture.session.request("http://www.a.test/deep").end()
    fixture.storage.removeCookies(since: .distantPast)
    _ = await fixture.session.request("http://www.a.test/deep").end()
    #expect(fixture.sent == ["mine=1", "host=1; mine=1", "host=1", nil])
  }

  @Test("Cookies of the user are sent within their scope") func scope() async throws {
    let fixture = try CookieFixture()
    fixture.put("secure", domain: ".a.test", secure: true)
    fixture.put("path", domain: "a.test", path: "/only")
    fixture.put("noPath", domain: "a.test", path: "")
    fixture.put("evil", "x\r\nInjected: 1", domain: "a.test")
    for url in ["http://a.test/", "https://www.a.test/", "http://xa.test/", "http://a.test/only"] {
      #expect(await fixture.session.request(url).end().error == nil)
    }
    #expect(fixture.sent == ["noPath=1", "secure=1", nil, "path=1; noPath=1"])
  }

  @Test("A Cookie field of the request has priority") func ownField() async throws {
    let reply = FakeReply.redirect(307, to: "http://b.test/")
    let fixture = try CookieFixture(FakeTransport(FakeReply.redirect(307, to: "/2").setting("a=2"), reply))
    fixture.put("a", domain: "a.test")
    fixture.put("b", domain: "b.test")
    _ = await fixture.session.request("http://a.test/", headers: ["cookie": "mine=1"]).end()
    // The field is sent to its origin only. Other origins receive cookies of the storage.
    #expect(fixture.sent == ["mine=1", "mine=1", "b=1"])
    #expect(fixture.cookie("a")?.value == "2", "stored all the same")
  }

  @Test("A Cookie field of the session has priority") func fieldOfSession() async throws {
    let fixture = try CookieFixture(configure: { $0.httpAdditionalHeaders = ["Cookie": "ours=1"] })
    fixture.put("a", domain: "a.test")
    _ = await fixture.session.request("http://a.test/").end()
    #expect(fixture.sent == ["ours=1"])
  }

  @Test("A Cookie field of a redirect handler has priority") func fieldOfRedirectHandler() async throws {
    let fixture = try CookieFixture(FakeTransport(FakeReply.redirect(307, to: "http://b.test/")))
    fixture.put("a", domain: "a.test")
    fixture.put("b", domain: "b.test")
    let redirector = Redirector(
      behavior: .modify { _, request, _ in
        #expect(request.headers["Cookie"] == nil)
        var request = request
        request.headers.add(name: "Cookie", value: "handler=1")
        return request
      })
    _ = await fixture.session.request("http://a.test/").redirect(using: redirector).end()
    #expect(fixture.sent == ["a=1", "handler=1"])
  }

  @Test("Without httpShouldSetCookies no cookie is sent") func httpShouldSetCookies() async throws {
    let fixture = try CookieFixture(
      FakeTransport(FakeReply.ok.setting("a=1")), configure: { $0.httpShouldSetCookies = false })
    fixture.put("b", domain: "a.test")
    for _ in 0..<2 { _ = await fixture.session.request("http://a.test/").end() }
    #expect(fixture.sent == [nil, nil])
    #expect(fixture.cookie("a") != nil)
  }

  @Test("A request without cookie handling neither sends nor stores cookies") func httpShouldHandleCookies()
    async throws
  {
    let fixture = try CookieFixture(FakeTransport(FakeReply.ok.setting("a=1")))
    fixture.put("b", domain: "a.test")
    var request = try URLRequest(url: "http://a.test/", method: .get)
    request.httpShouldHandleCookies = false
    _ = await fixture.session.request(request).end()
    #expect(fixture.sent == [nil])
    #expect(fixture.cookie("a") == nil)
  }

  @Test("Without a storage there are no cookies") func noStorage() async throws {
    let fixture = try CookieFixture(
      FakeTransport(FakeReply.ok.setting("a=1")), configure: { $0.httpCookieStorage = nil })
    for _ in 0..<2 { _ = await fixture.session.request("http://a.test/").end() }
    #expect(fixture.sent == [nil, nil])
  }

  @Test("Policies of the configuration and of the storage apply") func policies() async throws {
    for isStorages in [false, true] {
      let fixture = try CookieFixture(
        FakeTransport { _, _ in FakeReply.ok.setting("a=1") },
        configure: {
          if isStorages {
            $0.httpCookieAcceptPolicy = .always
            $0.httpCookieStorage?.cookieAcceptPolicy = .never
          } else {
            $0.httpCookieAcceptPolicy = .never
          }
        })
      fixture.put("b", domain: "a.test")
      for _ in 0..<2 { _ = await fixture.session.request("http://a.test/").end() }
      #expect(fixture.cookie("a") == nil)
      #expect(fixture.sent == (isStorages ? [nil, nil] : ["b=1", "b=1"]))
    }
  }

  @Test(
    "By default only the domain of the document sets cookies",
    arguments: [
      ("http://www.a.test/", true), ("https://a.test/", true), ("http://b.test/", false), (nil, true),
    ])
  func onlyTheDocumentsDomainSetsCookiesByDefault(_ document: String?, _ isStored: Bool) async throws {
    let fixture = try CookieFixture(FakeTransport(FakeReply.ok.setting("a=1")))
    var request = try URLRequest(url: "http://cdn.a.test/", method: .get)
    request.mainDocumentURL = document.flatMap { URL(string: $0) }
    _ = await fixture.session.request(request).end()
    #expect((fixture.cookie("a") != nil) == isStored)
  }

  @Test("SameSite cookies are not sent after a redirect by another site") func sameSite() async throws {
    let start = FakeReply.ok.setting(
      "strict=1; SameSite=Strict", "lax=1; SameSite=Lax", "none=1; SameSite=None; Secure", "unset=1")
    let fixture = try CookieFixture(
      FakeTransport(
        start, .ok, .redirect(302, to: "https://www.a.test/"), .ok, .redirect(307, to: "https://www.a.test/"),
        .ok,
        .redirect(302, to: "https://www.a.test/"), .ok))
    for url in ["https://www.a.test/", "https://www.a.test/", "https://b.test/"] {
      _ = await fixture.session.request(url).end()
    }
    _ = await fixture.session.request("https://b.test/", method: .post).end()
    _ = await fixture.session.request("https://api.a.test/").end()
    let all = "strict=1; lax=1; none=1; unset=1"
    #expect(
      fixture.sent == [nil, all, nil, "lax=1; none=1; unset=1", nil, "none=1; unset=1", nil, all])
  }

  @Test(
    "SameSite cookies are not sent after a redirect by another site back to the first site",
    arguments: [HTTPMethod.get, .post])
  func sameSiteAfterReturn(method: HTTPMethod) async throws {
    let start = FakeReply.ok.setting(
      "strict=1; SameSite=Strict", "lax=1; SameSite=Lax", "none=1; SameSite=None; Secure", "unset=1")
    let fixture = try CookieFixture(
      FakeTransport(
        start, .redirect(307, to: "https://b.test/"), .redirect(307, to: "https://www.a.test/transfer"),
        .redirect(307, to: "/further"), .ok,
        .redirect(307, to: "https://api.a.test/"), .redirect(307, to: "https://www.a.test/"), .ok))
    for url in ["https://www.a.test/", "https://www.a.test/go", "https://www.a.test/within"] {
      #expect(await fixture.session.request(url, method: method).end().error == nil)
    }
    let all = "strict=1; lax=1; none=1; unset=1"
    let some = method == .get ? "lax=1; none=1; unset=1" : "none=1; unset=1"
    #expect(fixture.sent == [nil, all, nil, some, some, all, nil, all])
  }

  @Test(
    "SameSite cookies are not sent after a redirect by another site that follows one within the site",
    arguments: [HTTPMethod.get, .post])
  func sameSiteAfterDetour(method: HTTPMethod) async throws {
    let start = FakeReply.ok.setting(
      "strict=1; SameSite=Strict", "lax=1; SameSite=Lax", "none=1; SameSite=None; Secure", "unset=1")
    let fixture = try CookieFixture(
      FakeTransport(
        start, .redirect(307, to: "https://api.a.test/"), .redirect(307, to: "https://b.test/"),
        .redirect(307, to: "https://www.a.test/transfer"), .ok))
    for url in ["https://www.a.test/", "https://www.a.test/go"] {
      #expect(await fixture.session.request(url, method: method).end().error == nil)
    }
    let some = method == .get ? "lax=1; none=1; unset=1" : "none=1; unset=1"
    #expect(fixture.sent == [nil, "strict=1; lax=1; none=1; unset=1", nil, nil, some])
  }

  @Test("Requests of URLProtocol classes neither send nor store cookies") func protocolClasses() async throws
  {
    let fixture = try CookieFixture(configure: { $0.protocolClasses = [SettingProtocol.self] })
    fixture.put("a", domain: "stub.test")
    let response = await fixture.session.request("http://stub.test/").end()
    #expect(response.response?.headers["X-Cookie"] == "none")
    #expect(fixture.cookie("stub") == nil)
  }

  @Test("A cURL command contains the cookies that would be sent") func curl() async throws {
    let fixture = try CookieFixture()
    fixture.put("secure", domain: "a.test", secure: true)
    fixture.put("deep", domain: "a.test", path: "/deep")
    fixture.put("a", domain: ".a.test")
    let request = fixture.session.request("http://a.test/")
    _ = await request.end()
    #expect(request.cURLDescription().contains("-b \"a=1\""))
  }
}

/// Responds with a cookie.
private final class SettingProtocol: URLProtocol {
  override class func canInit(with request: URLRequest) -> Bool { request.url?.host == "stub.test" }
  override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

  override func startLoading() {
    guard let url = request.url,
      let response = HTTPURLResponse(
        url: url, statusCode: 200, httpVersion: "HTTP/1.1",
        headerFields: ["Set-Cookie": "stub=1", "X-Cookie": request.headers["Cookie"] ?? "none"])
    else { return }
    client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
    client?.urlProtocolDidFinishLoading(self)
  }

  override func stopLoading() {}
}
