import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@Suite("Basic challenges", .timeLimit(.minutes(5)))
struct AuthenticationTests {
  static let protected: FakeTransport.Responder = { request, _ in
    request.value("Authorization") == HTTPHeader.authorization(username: "user", password: "pass").value
      ? .text("in") : .challenge()
  }

  @Test("Credentials answer a challenge and are not sent before") func credentials() async {
    let fake = FakeTransport(responder: Self.protected)
    let request = Session.retained(fake: fake).request("http://a.test/").authenticate(
      username: "user", password: "pass")
    let response = await request.end()
    #expect(response.value == Data("in".utf8))
    #expect(fake.requests.map { $0.value("Authorization") != nil } == [false, true])
    #expect(response.metrics?.transactionMetrics.count == 2)
    #expect(response.metrics?.redirectCount == 0)
    #expect(request.credential?.user == "user")
    #expect(request.allMetrics.count == 1)
  }

  @Test("The body is sent again") func body() async throws {
    let fake = FakeTransport(responder: Self.protected)
    var urlRequest = try URLRequest(url: "http://a.test/", method: .post)
    urlRequest.httpBody = Data("body".utf8)
    let credential = URLCredential(user: "user", password: "pass", persistence: .none)
    let response = await Session.retained(fake: fake).request(urlRequest).authenticate(with: credential).end()
    #expect(response.value == Data("in".utf8))
    #expect(fake.requests.map(\.body.bytes) == [Data("body".utf8), Data("body".utf8)])
  }

  @Test("Credentials of the URL answer a challenge") func credentialsOfURL() async {
    let fake = FakeTransport(responder: Self.protected)
    let response = await Session.retained(fake: fake).request("http://us%65r:pass@a.test/x").end()
    #expect(response.value == Data("in".utf8))
    #expect(fake.urls == ["http://a.test/x", "http://a.test/x"])
  }

  @Test("Credentials of the session's storage answer a challenge", arguments: [true, false])
  func storedCredentials(isOfThisRealm: Bool) async {
    // A unique host, because the storage may be the process's.
    let host = "\(UUID().uuidString.lowercased()).test"
    let configuration = URLSessionConfiguration.ephemeral
    let space = URLProtectionSpace(
      host: host, port: 80, protocol: "http", realm: isOfThisRealm ? "r" : "other",
      authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
    let credential = URLCredential(user: "user", password: "pass", persistence: .forSession)
    configuration.urlCredentialStorage?.setDefaultCredential(credential, for: space)
    let fake = FakeTransport(responder: Self.protected)
    let session = Session(configuration: configuration, engine: Engine(transport: fake))
    let response = await session.request("http://\(host)/").end()
    #expect(response.response?.statusCode == (isOfThisRealm ? 200 : 401))
    #expect(fake.requests.count == (isOfThisRealm ? 2 : 1))
  }

  @Test("A credential that was removed from the storage is no longer sent") func removedCredential()
    async throws
  {
    let host = "\(UUID().uuidString.lowercased()).test"
    let configuration = URLSessionConfiguration.ephemeral
    let space = URLProtectionSpace(
      host: host, port: 80, protocol: "http", realm: "r",
      authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
    let credential = URLCredential(user: "user", password: "pass", persistence: .forSession)
    let storage = try #require(configuration.urlCredentialStorage)
    storage.setDefaultCredential(credential, for: space)
    let fake = FakeTransport(responder: Self.protected)
    let session = Session(configuration: configuration, engine: Engine(transport: fake))
    for status in [200, 200] {
      #expect(await session.request("http://\(host)/").end().response?.statusCode == status)
    }
    storage.remove(credential, for: space)
    #expect(await session.request("http://\(host)/").end().response?.statusCode == 401)
    #expect(fake.requests.map { $0.value("Authorization") != nil } == [false, true, true, false])
  }

  @Test(
    "A stored credential answers only a realm with the same bytes",
    arguments: [("\u{E9}", 2), ("e\u{301}", 1)])
  func bytesOfRealm(realm: String, requestCount: Int) async throws {
    // The storage is the process's.
    let host = "\(UUID().uuidString.lowercased()).test"
    let configuration = URLSessionConfiguration.ephemeral
    let space = URLProtectionSpace(
      host: host, port: 80, protocol: "http", realm: "\u{E9}",
      authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
    let credential = URLCredential(user: "user", password: "pass", persistence: .forSession)
    let storage = try #require(configuration.urlCredentialStorage)
    storage.setDefaultCredential(credential, for: space)
    defer { storage.remove(credential, for: space) }
    let fake = FakeTransport { request, _ in
      request.value("Authorization") == nil ? .challenge(#"Basic realm="\#(realm)""#) : .text("in")
    }
    _ = await Session.retained(fake: fake, configuration: configuration).request("http://\(host)/").end()
    #expect(fake.requests.count == requestCount, "both forms are equal in Swift")
  }

  @Test("Credentials of the request have priority over those of the URL") func priority() async {
    let fake = FakeTransport(responder: Self.protected)
    let response = await Session.retained(fake: fake).request("http://other:wrong@a.test/")
      .authenticate(username: "user", password: "pass").end()
    #expect(response.value == Data("in".utf8))
  }

  @Test("Wrong credentials end with the 401") func wrongCredentials() async {
    let fake = FakeTransport(responder: Self.protected)
    let request = Session.retained(fake: fake).request("http://a.test/").authenticate(
      username: "user", password: "bad")
    let response = await request.end()
    #expect(response.error == nil)
    #expect(response.response?.statusCode == 401)
    #expect(response.data == nil)
    #expect(fake.requests.count == 2)
  }

  @Test("Without credentials the 401 is the response") func noCredentials() async {
    let fake = FakeTransport(responder: Self.protected)
    let response = await Session.retained(fake: fake).request("http://a.test/").validate().end()
    #expect(response.error?.responseCode == 401)
    #expect(fake.requests.count == 1)
  }

  @Test("An Authorization field of the request is not replaced") func ownAuthorization() async {
    let fake = FakeTransport(responder: Self.protected)
    let response = await Session.retained(fake: fake).request(
      "http://a.test/", headers: ["authorization": "Bearer x"]
    )
    .authenticate(username: "user", password: "pass").end()
    #expect(response.response?.statusCode == 401)
    #expect(fake.requests.count == 1)
  }

  @Test(
    "Each challenge is answered if its scheme is supported",
    arguments: [
      (#"basic realm="x""#, true), (#"Digest realm="x", nonce="y", Basic realm="z""#, true), ("BASIC", true),
      (#"Digest realm="x", nonce="y""#, true), (#"Digest realm="x""#, false), ("Bearer", false),
      ("Basically", false), ("", false),
    ])
  func schemes(challenge: String, isAnswered: Bool) async {
    let fake = FakeTransport(.challenge(challenge))
    _ = await Session.retained(fake: fake).request("http://a.test/").authenticate(
      username: "u", password: "p"
    )
    .end()
    #expect(fake.requests.count == (isAnswered ? 2 : 1))
  }

  @Test(
    "Another origin receives no credentials",
    arguments: ["http://b.test/", "http://a.test:81/", "https://a.test/"])
  func origins(location: String) async {
    let fake = FakeTransport(.challenge(), .redirect(307, to: location), .challenge())
    let response = await Session.retained(fake: fake).request("http://a.test/")
      .authenticate(username: "user", password: "pass").end()
    #expect(response.response?.statusCode == 401)
    #expect(fake.requests.map { $0.value("Authorization") != nil } == [false, true, false])
  }

  @Test("A redirect within the origin sends the credentials") func sameOrigin() async {
    let fake = FakeTransport(.challenge(), .redirect(302, to: "/next"), .text("in"))
    let response = await Session.retained(fake: fake).request("http://a.test/")
      .authenticate(username: "user", password: "pass").end()
    #expect(response.value == Data("in".utf8))
    #expect(fake.requests.map { $0.value("Authorization") != nil } == [false, true, true])
  }

  @Test("A redirect back to the origin is challenged again") func returnToOrigin() async {
    let fake = FakeTransport(
      .challenge(), .redirect(302, to: "http://b.test/"), .redirect(302, to: "http://a.test/back"),
      .challenge(),
      .text("in"))
    let response = await Session.retained(fake: fake).request("http://a.test/")
      .authenticate(username: "user", password: "pass").end()
    #expect(response.value == Data("in".utf8))
    #expect(fake.requests.map { $0.value("Authorization") != nil } == [false, true, false, false, true])
  }

  @Test("The head of a challenge that is answered is not delivered") func answeredChallenge() async {
    let fake = FakeTransport(responder: Self.protected)
    let heads = Recorder<Int>()
    let request = Session.retained(fake: fake).request("http://a.test/")
      .authenticate(username: "user", password: "bad")
      .onHTTPResponse(on: .global()) { (response: HTTPURLResponse) in heads.add(response.statusCode) }
    _ = await request.end()
    #expect(await heads.wait(for: 1) == [401], "the second one is final and must be seen")
  }
}
