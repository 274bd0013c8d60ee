import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

@Suite("Hosts over TLS alone, in the pipeline", .timeLimit(.minutes(5)))
struct StrictTransportStageTests {
  private let hosts = StrictTransportSecurity()

  private func session(
    _ fake: FakeTransport, configuration: URLSessionConfiguration = .solitary,
    _ change: (inout TransportOptions) -> Void = { _ in }
  ) -> Session {
    var options = TransportOptions()
    options.strictTransportSecurity = hosts
    change(&options)
    return .kept(fake: fake, configuration: configuration, options: options)
  }

  private static func strict(_ value: String = "max-age=1000", status: Int = 200) -> FakeReply {
    .status(status, headers: [("Strict-Transport-Security", value)])
  }

  @Test func aHostThatHasSaidSoIsReachedOverTLS() async throws {
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
    // What the user wanted is not changed.
    #expect(response.request?.url?.absoluteString == "http://a.test:80/second?q#f")
    #expect(hosts.hosts == ["a.test"])
  }

  @Test func othersGoAsTheyAre() async throws {
    hosts.preload("a.test", includingSubdomains: false)
    let fake = FakeTransport(Self.strict(), .ok)
    let session = session(fake)
    _ = await session.request("http://b.a.test/").end()
    _ = await session.request("http://b.a.test/").end()
    #expect(fake.urls == ["http://b.a.test/", "http://b.a.test/"], "what comes without TLS says nothing")
    let plain = FakeTransport()
    _ = await Session.kept(fake: plain).request("http://a.test/").end()
    #expect(plain.urls == ["http://a.test/"])
  }

  @Test(arguments: [301, 307, 401, 404, 503])
  func everyResponseCounts(status: Int) async throws {
    var reply = Self.strict(status: status)
    if status < 400 { reply.fields.append(HTTPHeader(name: "Location", value: "https://b.test/")) }
    _ = await session(FakeTransport(reply)).request("https://a.test/").end()
    #expect(hosts.hosts == ["a.test"])
  }

  @Test func aHeadIsEnoughWhateverBecomesOfItsBody() async throws {
    var reply = Self.strict()
    reply.chunks = [Data("half".utf8)]
    reply.failure = TransportFailure(.connectionLost, "lost")
    #expect(await session(FakeTransport(reply)).request("https://a.test/").end().error != nil)
    #expect(hosts.hosts == ["a.test"])
  }

  @Test func redirectsLeadOverTLS() async throws {
    hosts.preload("a.test")
    hosts.preload("b.test")
    let fake = FakeTransport(.redirect(302, to: "http://b.test:8080/x"), .redirect(307, to: "http://c.test/"))
    let response = await session(fake).request("http://a.test/", headers: [.authorization("secret")]).end()
    #expect(fake.urls == ["https://a.test/", "https://b.test:8080/x", "http://c.test/"])
    #expect(fake.requests.map { $0.value("Authorization") } == ["secret", nil, nil])
    #expect(response.metrics?.redirectCount == 2)
  }

  /// RFC 6797 changes the URL after the redirect has been judged: what stays behind on the way to http stays behind.
  @Test func aWayDownAndUpAgainTakesNoSecretsAlong() async throws {
    hosts.preload("a.test")
    let fake = FakeTransport(.redirect(302, to: "http://a.test/x"))
    _ = await session(fake).request("https://a.test/", headers: [.authorization("secret")]).end()
    #expect(fake.urls == ["https://a.test/", "https://a.test/x"])
    #expect(fake.requests.last?.value("Authorization") == nil)
  }

  @Test func aServerThatLeadsBackForEverIsLeftAtTheLimit() async throws {
    hosts.preload("a.test")
    let fake = FakeTransport { _, _ in .redirect(301, to: "http://a.test/") }
    let response = await session(fake) { $0.redirectLimit = 5 }.request("http://a.test/").end()
    #expect((response.error?.underlyingError as? URLError)?.code == .httpTooManyRedirects)
    #expect(fake.urls == Array(repeating: "https://a.test/", count: 6))
  }

  @Test func redirectHandlersSeeAndMayNotUndoIt() async throws {
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

  @Test func cookiesAreThoseOfTheSecureURL() async throws {
    hosts.preload("a.test")
    let configuration = URLSessionConfiguration.solitary
    let properties: [HTTPCookiePropertyKey: Any] = [
      .name: "s", .value: "1", .domain: "a.test", .path: "/", .secure: "TRUE",
    ]
    let cookie = try #require(HTTPCookie(properties: properties))
    configuration.httpCookieStorage?.setCookie(cookie)
    let fake = FakeTransport()
    _ = await session(fake, configuration: configuration).request("http://a.test/").end()
    #expect(fake.requests.first?.value("Cookie") == "s=1")
  }

  @Test func credentialsOfTheURLAreNotSentInTheClear() async throws {
    hosts.preload("a.test")
    let fake = FakeTransport()
    _ = await session(fake) { $0.preemptiveBasicAuthentication = true }.request("http://u:p@a.test/").end()
    #expect(fake.urls == ["https://a.test/"])
    #expect(fake.requests.first?.value("Authorization")?.hasPrefix("Basic ") == true)
  }

  @Test func classesOfTheUserSeeTheSecureURL() async throws {
    hosts.preload("strict.test")
    let configuration = URLSessionConfiguration.solitary
    configuration.protocolClasses = [StrictProtocol.self]
    let fake = FakeTransport()
    let response = await session(fake, configuration: configuration).request("http://strict.test/x").end()
    #expect(response.response?.url?.absoluteString == "https://strict.test/x")
    #expect(response.response?.statusCode == 299)
    // A header field from a `URLProtocol` class sets no policy.
    #expect(hosts.hosts.isEmpty)
    #expect(fake.requests.isEmpty)
  }

  @Test func theCacheAnswersForTheSecureURLAndSaysNothing() async throws {
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

  @Test func sessionsShareWhatTheyLearn() async throws {
    _ = await session(FakeTransport(Self.strict())).request("https://a.test/").end()
    let fake = FakeTransport()
    _ = await session(fake).request("http://a.test/").end()
    #expect(fake.urls == ["https://a.test/"])
    let own = FakeTransport()
    let hosts = hosts
    _ = await Session.kept(fake: own).request("http://a.test/")
      .transportOptions { $0.strictTransportSecurity = hosts }.end()
    #expect(own.urls == ["https://a.test/"])
  }
}

/// Takes requests for one host, and answers in its own way.
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
