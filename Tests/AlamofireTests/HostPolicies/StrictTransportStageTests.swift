import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

@Suite("HSTS of requests", .timeLimit(.minutes(5)))
struct StrictTransportStageTests {
  private let hosts = StrictTransportSecurity()

  private func session(
    _ fake: FakeTransport, configuration: URLSessionConfiguration = .isolated,
    _ change: (inout TransportOptions) -> Void = { _ in }
  ) -> Session {
    var options = TransportOptions()
    options.strictTransportSecurity = hosts
    change(&options)
    return .retained(fake: fake, configuration: configuration, options: options)
  }

  private static func strict(_ value: String = "max-age=1000", status: Int = 200) -> FakeReply {
    .status(status, headers: [("Strict-Transport-Security", value)])
  }

  @Test("A host with a policy is requested over HTTPS") func upgrade() async throws {
    let fake = FakeTransport(Self.strict(), .text("here"))
    let session = session(fake)
    _ = await session.request("https://a.test/first").end()
    let request = session.request("http://a.test:80/second?q#f")
    let response = await request.end()
    #expect(fake.urls == ["https://a.test/first", "https://a.test/second?q#f"])
    #expect(fake.requests.last?.origin == Origin(scheme: "https", host: "a.test", port: 443))
    #expect(response.response?.url?.absoluteString == "https://a.test/second?q#f")
    #expect(response.metrics?.transactionMetrics.last?.request.url?.scheme == "https")
    #expect(request.performedRequests.map(\.url?.absoluteString) == ["https://a.test/second?q#f"])
    #expect(response.metrics?.redirectCount == 0, "no redirect is invented")
    // The caller's request is not changed.
    #expect(response.request?.url?.absoluteString == "http://a.test:80/second?q#f")
    #expect(hosts.hosts == ["a.test"])
  }

  @Test("Requests to hosts without a policy are unchanged") func otherHosts() async throws {
    hosts.preload("a.test", includingSubdomains: false)
    let fake = FakeTransport(Self.strict(), .ok)
    let session = session(fake)
    _ = await session.request("http://b.a.test/").end()
    _ = await session.request("http://b.a.test/").end()
    #expect(fake.urls == ["http://b.a.test/", "http://b.a.test/"], "what comes without TLS says nothing")
    let plain = FakeTransport()
    _ = await Session.retained(fake: plain).request("http://a.test/").end()
    #expect(plain.urls == ["http://a.test/"])
  }

  @Test("The policy of every response is stored", arguments: [301, 307, 401, 404, 503])
  func everyResponseCounts(status: Int) async throws {
    var reply = Self.strict(status: status)
    if status < 400 { reply.fields.append(HTTPHeader(name: "Location", value: "https://b.test/")) }
    _ = await session(FakeTransport(reply)).request("https://a.test/").end()
    #expect(hosts.hosts == ["a.test"])
  }

  @Test("The policy is stored with the head, even if the body fails") func failedBody() async throws {
    var reply = Self.strict()
    reply.chunks = [Data("half".utf8)]
    reply.failure = TransportFailure(.connectionLost, "lost")
    #expect(await session(FakeTransport(reply)).request("https://a.test/").end().error != nil)
    #expect(hosts.hosts == ["a.test"])
  }

  @Test("A request that is upgraded is authenticated") func challenge() async {
    hosts.preload("a.test")
    let fake = FakeTransport(.challenge(), .text("in"))
    let response = await session(fake).request("http://a.test/").authenticate(username: "a", password: "b")
      .end()
    #expect(response.response?.statusCode == 200)
    #expect(fake.requests.map { $0.value("Authorization") } == [nil, "Basic YTpi"])
  }

  @Test("Redirects to a host with a policy are upgraded") func redirects() async throws {
    hosts.preload("a.test")
    hosts.preload("b.test")
    let fake = FakeTransport(.redirect(302, to: "http://b.test:8080/x"), .redirect(307, to: "http://c.test/"))
    let response = await session(fake).request("http://a.test/", headers: [.authorization("secret")]).end()
    #expect(fake.urls == ["https://a.test/", "https://b.test:8080/x", "http://c.test/"])
    #expect(fake.requests.map { $0.value("Authorization") } == ["secret", nil, nil])
    #expect(response.metrics?.redirectCount == 2)
  }

  /// Checks that the redirect to HTTP drops credentials, because RFC 6797 upgrades the URL after the redirect is
  /// evaluated.
  @Test("A redirect to HTTP that is upgraded drops credentials") func credentialsOfRedirect() async throws {
    hosts.preload("a.test")
    let fake = FakeTransport(.redirect(302, to: "http://a.test/x"))
    _ = await session(fake).request("https://a.test/", headers: [.authorization("secret")]).end()
    #expect(fake.urls == ["https://a.test/", "https://a.test/x"])
    #expect(fake.requests.last?.value("Authorization") == nil)
  }

  @Test("A server that redirects to HTTP forever ends at the limit of redirects") func endlessRedirects()
    async throws
  {
    hosts.preload("a.test")
    let fake = FakeTransport { _, _ in .redirect(301, to: "http://a.test/") }
    let response = await session(fake) { $0.redirectLimit = 5 }.request("http://a.test/").end()
    #expect((response.error?.underlyingError as? URLError)?.code == .httpTooManyRedirects)
    #expect(fake.urls == Array(repeating: "https://a.test/", count: 6))
  }

  @Test("Redirect handlers see the upgraded URL and cannot undo it") func redirectHandlers() async throws {
    hosts.preload("b.test")
    hosts.preload("c.test")
    let seen = Recorder<String>()
    let fake = FakeTransport(.redirect(302, to: "http://b.test/x"), .ok)
    let redirector = Redirector(
      behavior: .modify { _, proposed, _ in
        seen.add(proposed.url?.absoluteString ?? "")
        var changed = proposed
        changed.url = URL(string: "http://c.test/y")
        return changed
      })
    _ = await session(fake).request("http://a.test/").redirect(using: redirector).end()
    #expect(seen.values == ["https://b.test/x"])
    #expect(fake.urls == ["http://a.test/", "https://c.test/y"])
  }

  @Test("Cookies are selected for the upgraded URL") func cookies() async throws {
    hosts.preload("a.test")
    let configuration = URLSessionConfiguration.isolated
    let properties: [HTTPCookiePropertyKey: Any] = [
      .name: "s", .value: "1", .domain: "a.test", .path: "/", .secure: "TRUE",
    ]
    let cookie = try #require(HTTPCookie(properties: properties))
    configuration.httpCookieStorage?.setCookie(cookie)
    let fake = FakeTransport()
    _ = await session(fake, configuration: configuration).request("http://a.test/").end()
    #expect(fake.requests.first?.value("Cookie") == "s=1")
  }

  @Test("Credentials of the URL are not sent over HTTP") func credentialsOfURL() async throws {
    hosts.preload("a.test")
    let fake = FakeTransport()
    _ = await session(fake) { $0.preemptiveBasicAuthentication = true }.request("http://u:p@a.test/").end()
    #expect(fake.urls == ["https://a.test/"])
    #expect(fake.requests.first?.value("Authorization")?.hasPrefix("Basic ") == true)
  }

  @Test("URLProtocol classes receive the upgraded URL") func protocolClasses() async throws {
    hosts.preload("strict.test")
    let configuration = URLSessionConfiguration.isolated
    configuration.protocolClasses = [StrictProtocol.self]
    let fake = FakeTransport()
    let response = await session(fake, configuration: configuration).request("http://strict.test/x").end()
    #expect(response.response?.url?.absoluteString == "https://strict.test/x")
    #expect(response.response?.statusCode == 299)
    // A policy from a response of such a class is ignored.
    #expect(hosts.hosts.isEmpty)
    #expect(fake.requests.isEmpty)
  }

  @Test("A stored response is found by the upgraded URL, and its policy is ignored") func cache() async throws
  {
    hosts.preload("a.test")
    let fake = FakeTransport(
      .status(
        200, "stored",
        headers: [("Cache-Control", "max-age=600"), ("Strict-Transport-Security", "max-age=9")]))
    let configuration = URLSessionConfiguration.cached(
      by: HTTPCache(memoryCapacity: 1 << 20, diskCapacity: 0, directory: nil))
    let session = session(fake, configuration: configuration)
    _ = await session.request("https://a.test/").end()
    hosts.forgetAll()
    let response = await session.request("http://a.test/").end()
    #expect(response.data == Data("stored".utf8))
    #expect(fake.requests.count == 1)
    #expect(hosts.hosts.isEmpty)
  }

  @Test("A background revalidation notes the policies of its response") func backgroundRevalidation() async {
    var options = TransportOptions()
    options.strictTransportSecurity = hosts
    let fixture = CacheFixture(
      FakeTransport(
        .cacheable(
          "one", "max-age=60, stale-while-revalidate=60", tag: nil,
          ("Strict-Transport-Security", "max-age=100")),
        .cacheable("two", "max-age=60", tag: nil, ("Strict-Transport-Security", "max-age=0"))),
      options: options)
    func get() async -> String {
      CacheFixture.Received(await fixture.session.request("https://a.test/x").end()).description
    }
    #expect(await get() == "200 one n")
    #expect(hosts.protects("a.test"))
    fixture.clock.advance(70)
    #expect(await get() == "200 one c")
    let hosts = hosts
    #expect(await eventually { !hosts.protects("a.test") })
  }

  @Test("Sessions share policies") func sharedStore() async throws {
    _ = await session(FakeTransport(Self.strict())).request("https://a.test/").end()
    let fake = FakeTransport()
    _ = await session(fake).request("http://a.test/").end()
    #expect(fake.urls == ["https://a.test/"])
    let own = FakeTransport()
    let hosts = hosts
    _ = await Session.retained(fake: own).request("http://a.test/")
      .transportOptions { $0.strictTransportSecurity = hosts }.end()
    #expect(own.urls == ["https://a.test/"])
  }
}

/// Responds to requests for one host.
private final class StrictProtocol: URLProtocol {
  override class func canInit(with request: URLRequest) -> Bool { request.url?.host == "strict.test" }
  override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

  override func startLoading() {
    let fields = ["Strict-Transport-Security": "max-age=1000"]
    guard let url = request.url,
      let response = HTTPURLResponse(url: url, statusCode: 299, httpVersion: nil, headerFields: fields)
    else { return }
    client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
    client?.urlProtocolDidFinishLoading(self)
  }

  override func stopLoading() {}
}
