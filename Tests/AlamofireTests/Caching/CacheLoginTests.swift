import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Scenarios
import Testing

@Suite("The cache and credentials", .timeLimit(.minutes(5))) struct CacheLoginTests {
  /// Makes a server whose response depends on the credential. `control` decides whether the response may be stored.
  private static func server(_ control: String = "max-age=60", challengesMayBeStored: String? = nil)
    -> FakeTransport
  {
    FakeTransport { request, _ in
      guard let proof = request.value("Authorization") else {
        var fields = [("WWW-Authenticate", #"Basic realm="r""#)]
        if let challengesMayBeStored { fields.append(("Cache-Control", challengesMayBeStored)) }
        return .status(401, "who?", headers: fields)
      }
      return .cacheable(proof, control)
    }
  }

  private static func field(_ user: String) -> String {
    "Basic " + Data("\(user):p".utf8).base64EncodedString()
  }

  private static func get(_ fixture: CacheFixture, as user: String?) async -> CacheFixture.Received {
    let request = fixture.session.request("http://a.test/x")
    return CacheFixture.Received(
      await (user.map { request.authenticate(username: $0, password: "p") } ?? request).end())
  }

  @Test("A response to credentials is used for these credentials only") func credentials() async {
    let fixture = CacheFixture(Self.server())
    #expect(await Self.get(fixture, as: "ada").description == "200 \(Self.field("ada")) nn")
    #expect(await Self.get(fixture, as: "ada").description == "200 \(Self.field("ada")) c")
    #expect(await Self.get(fixture, as: "bob").body == Self.field("bob"))
    #expect(await Self.get(fixture, as: "ada").body == Self.field("ada"))
    #expect(await Self.get(fixture, as: "bob").description == "200 \(Self.field("bob")) c")
    // Another session has no credentials, so it must not get the response.
    let other = CacheFixture(Self.server(), sharing: fixture)
    #expect(await Self.get(other, as: nil).status == 401)
  }

  @Test("A stored challenge is answered", arguments: ["max-age=600", "public, max-age=600"])
  func storedChallenge(control: String) async {
    let fixture = CacheFixture(Self.server(challengesMayBeStored: control))
    #expect(await Self.get(fixture, as: nil).description == "401 who? n")
    #expect(await Self.get(fixture, as: nil).description == "401 who? c")
    #expect(await Self.get(fixture, as: "ada").body == Self.field("ada"))
    // The challenge and the response are stored separately.
    let other = CacheFixture(Self.server(), sharing: fixture)
    #expect(await Self.get(other, as: nil).description == "401 who? c")
  }

  @Test(
    "A stored 401 does not answer a request with the caller's own credential",
    arguments: ["max-age=600", "public, max-age=600"])
  func storedRefusal(control: String) async {
    let fixture = CacheFixture(
      FakeTransport { request, _ in
        request.value("Authorization") == "Bearer new"
          ? .cacheable("mine", control) : .status(401, "who?", headers: [("Cache-Control", control)])
      })
    #expect(await fixture.get().description == "401 who? n")
    #expect(await fixture.get().description == "401 who? c", "a request without a credential may get it")
    for _ in 0..<2 {
      let refused = await fixture.get(headers: [.authorization(bearerToken: "old")])
      #expect(refused.description == "401 who? n", "the server may accept the token by now")
    }
    let accepted: HTTPHeaders = [.authorization(bearerToken: "new")]
    #expect(await fixture.get(headers: accepted).description == "200 mine n")
    #expect(await fixture.get(headers: accepted).description == "200 mine c")
    #expect(fixture.fake.requests.count == 4)
  }

  @Test("A refused credential does not replace a public response") func publicRefusal() async {
    let fixture = CacheFixture(
      FakeTransport { request, _ in
        request.value("Authorization") == "Bearer new"
          ? .cacheable("shared", "public, max-age=600")
          : .status(401, "who?", headers: [("Cache-Control", "public, max-age=600")])
      })
    #expect(await fixture.get(headers: [.authorization(bearerToken: "new")]).description == "200 shared n")
    let refused = await fixture.get(
      headers: [.authorization(bearerToken: "old")], policy: .reloadIgnoringLocalCacheData)
    #expect(refused.description == "401 who? n")
    #expect(await fixture.get().description == "200 shared c", "the stored response must survive the 401")
  }

  @Test("A challenge that was answered is not stored, because its body was not read") func answeredChallenge()
    async
  {
    let fixture = CacheFixture(Self.server(challengesMayBeStored: "max-age=600"))
    #expect(await Self.get(fixture, as: "ada").description == "200 \(Self.field("ada")) nn")
    #expect(await Self.get(fixture, as: nil).description == "401 who? n")
    #expect(await Self.get(fixture, as: nil).description == "401 who? c")
  }

  /// No field would distinguish the response from that for another user.
  @Test(
    "A response on a connection that is authenticated is not stored",
    .enabled(if: Engine.connectionSchemes.contains(.ntlm)))
  func connectionLogin() async {
    let fixture = CacheFixture(
      FakeTransport(.challenge("NTLM"), .cacheable("ada's", "max-age=60"), .cacheable("open", "max-age=60")))
    #expect(await Self.get(fixture, as: "ada").description == "200 ada's nn")
    #expect(fixture.fake.requests[1].login?.credential.user == "ada")
    #expect(await Self.get(fixture, as: nil).description == "200 open n")
    #expect(await Self.get(fixture, as: nil).description == "200 open c")
  }

  @Test("A public response is shared by all users") func publicResponse() async {
    let fixture = CacheFixture(Self.server("public, max-age=60"))
    #expect(await Self.get(fixture, as: "ada").body == Self.field("ada"))
    let other = CacheFixture(Self.server(), sharing: fixture)
    #expect(await Self.get(other, as: nil).description == "200 \(Self.field("ada")) c")
  }

  @Test("An unsafe request invalidates responses to requests with other trust settings", .steps)
  func unsafeRequestOfOthers() async {
    let fixture = CacheFixture(
      FakeTransport { request, index in
        request.method == "GET"
          ? .cacheable("\(index)", "max-age=600") : .status(201, headers: [("Location", "/y")])
      })
    func send(_ method: HTTPMethod = .get, _ path: String = "x", trusting file: String? = nil) async -> String
    {
      let request = fixture.session.request("http://a.test/\(path)", method: method).transportOptions {
        if let file { $0.trustStore = .file(file) }
      }
      return CacheFixture.Received(await request.end()).description
    }
    step("responses are stored")
    #expect(await send(trusting: "/a") == "200 0 n")
    #expect(await send(.get, "y", trusting: "/a") == "200 1 n")
    #expect(await send() == "200 2 n")
    #expect(await send(trusting: "/a") == "200 0 c")
    for file in [nil, "/b"] {
      step("a POST with \(file ?? "the trust store of the system")")
      #expect(await send(.post, trusting: file).hasPrefix("201"))
      #expect(await send(trusting: "/a").hasSuffix("n"))
      #expect(await send(.get, "y", trusting: "/a").hasSuffix("n"), "the Location names it")
      #expect(await send().hasSuffix("n"))
    }
  }

  /// A request for a stored response, and the response of the server to it.
  struct Update: Sendable {
    var method = HTTPMethod.get
    var headers: [String: String] = [:]
    var policy = URLRequest.CachePolicy.useProtocolCachePolicy
    var status = 304
    var fields = [("Cache-Control", "private, max-age=600")]
  }

  static let updates = [
    Update(policy: .reloadRevalidatingCacheData),
    Update(policy: .reloadRevalidatingCacheData, fields: [("Vary", "Authorization")]),
    Update(headers: ["If-None-Match": "\"1\""]),
    Update(method: .head, headers: ["Cache-Control": "no-cache"], status: 200),
    Update(headers: ["Accept-Language": "cs"]),
  ]

  @Test("A public response that a server makes private is not used for other users", arguments: Self.updates)
  func updateForOneUser(update: Update) async {
    let fixture = CacheFixture(
      FakeTransport(
        .cacheable("ada's", "public, max-age=600", tag: "1", ("Vary", "Accept-Language")),
        .status(update.status, headers: [("ETag", "\"1\"")] + update.fields),
        .cacheable("bob's", "private")))
    func get(as user: String, _ update: Update = Update()) async -> String {
      var headers: HTTPHeaders = ["Authorization": "Bearer \(user)", "Accept-Language": "en"]
      for (name, value) in update.headers { headers.update(name: name, value: value) }
      return await fixture.get(headers: headers, method: update.method, policy: update.policy).description
    }
    #expect(await get(as: "ada") == "200 ada's n")
    _ = await get(as: "ada", update)
    #expect(await get(as: "bob") == "200 bob's n")
    let language = update.headers.filter { $0.key == "Accept-Language" }
    #expect(await get(as: "ada", Update(headers: language)) == "200 ada's c")
  }

  @Test("A 304 for a private response also concerns an older public one with the same tag")
  func olderPublicResponse() async {
    let fixture = CacheFixture(
      FakeTransport(
        .cacheable("ada's", "public, max-age=600", tag: "1"),
        .cacheable("ada's", "private, max-age=60", tag: "1"),
        .status(304, headers: [("ETag", "\"1\""), ("Cache-Control", "private, max-age=60")]),
        .cacheable("bob's", "private")))
    let ada: HTTPHeaders = [.authorization(bearerToken: "ada")]
    #expect(await fixture.get(headers: ada).description == "200 ada's n")
    fixture.clock.advance(10)
    #expect(
      await fixture.get(headers: ada, policy: .reloadIgnoringLocalCacheData).description == "200 ada's n")
    fixture.clock.advance(70)
    #expect(await fixture.get(headers: ada).description == "200 ada's nc")
    #expect(await fixture.get(headers: [.authorization(bearerToken: "bob")]).description == "200 bob's n")
  }

  @Test("A public response that a background revalidation makes private is not used for other users")
  func refreshForOneUser() async throws {
    let fixture = CacheFixture(
      FakeTransport(
        .cacheable("ada's", "public, max-age=60, stale-while-revalidate=600", tag: "1"),
        .status(304, headers: [("ETag", "\"1\""), ("Cache-Control", "private, max-age=600")]),
        .cacheable("bob's", "private")))
    _ = await fixture.get(headers: [.authorization(bearerToken: "ada")])
    fixture.clock.advance(70)
    #expect(await fixture.get(headers: [.authorization(bearerToken: "ada")]).description == "200 ada's c")
    let (cache, request) = (fixture.cache, try URLRequest(url: "http://a.test/x", method: .get))
    #expect(await eventually { cache.cachedResponse(for: request) == nil })
    #expect(await fixture.get(headers: [.authorization(bearerToken: "bob")]).description == "200 bob's n")
  }

  /// Returns a delegate that answers each challenge.
  private static func delegate(_ persistence: URLCredential.Persistence) -> ChallengeDelegate {
    ChallengeDelegate { _ in
      (.useCredential, URLCredential(user: "u", password: "p", persistence: persistence))
    }
  }

  @Test(
    "The body of a challenge that a delegate answered is not taken for the body of a stored response",
    arguments: [
      ("max-age=60", FakeReply.ok, ["200 mine nc", "200 mine nc"]),
      ("no-cache", .status(304), ["200 mine nnc", "200 mine nnc"]),
      ("no-cache", .cacheable("", "max-age=60"), ["200  nn", "200  nc"]),
      ("no-cache", .status(404, "gone"), ["404 gone nn", "200 mine nn"]),
    ])
  func bodyOfAnsweredChallenge(control: String, later: FakeReply, expected: [String]) async {
    let fake = FakeTransport { request, _ in
      guard request.value("Authorization") != nil else {
        var challenge = FakeReply.challenge()
        challenge.chunks = [Data("denied".utf8)]
        return challenge
      }
      return request.value("If-None-Match") == nil ? .cacheable("mine", control, tag: "1") : later
    }
    let fixture = CacheFixture(
      fake, observers: SessionObservers(delegate: Self.delegate(.none), eventMonitors: []))
    #expect(await fixture.get().description == "200 mine nn")
    for description in expected { #expect(await fixture.get().description == description) }
  }

  @Test("A stored response says nothing about a credential that no server has seen", .steps)
  func unseenCredential() async {
    let (gate, reached) = (Latch(), Latch())
    let fixture = CacheFixture(
      FakeTransport(
        .challenge().held(by: gate, reached: reached), .cacheable("public", "public, max-age=60")),
      observers: SessionObservers(delegate: Self.delegate(.forSession), eventMonitors: []))
    step("a public response is stored while the challenge is on its way")
    async let challenged = fixture.get()
    await reached.wait()
    #expect(await fixture.get(headers: [.authorization(bearerToken: "a")]).description == "200 public n")
    step("the answer to the challenge is answered from the cache")
    gate.open()
    #expect(await challenged.description == "200 public nc")
    step("another request")
    #expect(await fixture.get("y").description == "200 ok n")
    #expect(fixture.fake.requests.map { $0.value("Authorization") } == [nil, "Bearer a", nil])
  }

  @Test("Responses of sixteen users are stored separately") func manyUsers() async {
    let fixture = CacheFixture(
      FakeTransport { request, _ in .cacheable(request.value("Authorization") ?? "", "max-age=60") })
    for _ in 0..<2 {
      for number in 0..<16 {
        let token = String(repeating: "\(number)-", count: 300)
        #expect(await fixture.get(headers: [.authorization(bearerToken: token)]).body == "Bearer \(token)")
      }
    }
    #expect(fixture.fake.requests.count == 16)
  }

  @Test("A rejected credential does not remove the stored response") func rejectedCredential() async {
    let fixture = CacheFixture(
      FakeTransport(
        .cacheable("mine", "max-age=60"), .status(401, "no", headers: [("WWW-Authenticate", "Bearer")])))
    let token: HTTPHeaders = [.authorization(bearerToken: "a")]
    _ = await fixture.get(headers: token)
    #expect(await fixture.get(headers: token, policy: .reloadIgnoringLocalCacheData).status == 401)
    #expect(await fixture.get(headers: token).description == "200 mine c")
  }
}
