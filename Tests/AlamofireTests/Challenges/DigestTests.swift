import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

@Suite("Digest challenges", .timeLimit(.minutes(5)))
struct DigestTests {
  private static let digest = #"Digest realm="r", nonce="n1", qop="auth", opaque="o""#

  /// Returns the parameters of the Authorization field by name.
  private static func authorization(_ request: WireRequest) -> [String: String] {
    let challenge = request.value("Authorization").flatMap { Challenge.all(in: [$0]).first }
    return Dictionary(
      (challenge?.parameters ?? []).map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
  }

  private static func protected(_ field: String = digest) -> FakeTransport.Responder {
    { request, _ in request.value("Authorization") == nil ? .challenge(field) : .text("in") }
  }

  private func ask(_ session: Session, _ url: String = "http://a.test/x?y=1", password: String? = "pass")
    async
    -> Int?
  {
    let request = session.request(url)
    if let password { request.authenticate(username: "user", password: password) }
    return await request.end().response?.statusCode
  }

  @Test("The test server accepts the answer", arguments: ["auth", "auth-int"], ["MD5", "SHA-256"])
  func server(quality: String, algorithm: String) async throws {
    let server = try HTTPTestServer()
    let session = Session()
    let url = server.url("/digest-auth/\(quality)/us%65r/pass/\(algorithm)")
    for attempt in 0..<3 {
      let response = await session.request(url, method: .post, parameters: ["a": "b"])
        .authenticate(username: "user", password: "pass").end()
      #expect(response.response?.statusCode == 200)
      #expect(response.metrics?.transactionMetrics.count == (attempt == 0 ? 2 : 1))
    }
    let wrong = await session.request(url, method: .post).authenticate(username: "user", password: "bad")
      .end()
    #expect(wrong.response?.statusCode == 401)
    #expect(wrong.error == nil)
  }

  @Test("Later requests send Digest preemptively and increase the nonce count") func nonceCount() async {
    let fake = FakeTransport(responder: Self.protected())
    let session = Session.retained(fake: fake)
    #expect(await ask(session) == 200)
    #expect(await ask(session, "http://a.test/other") == 200)
    #expect(await ask(session, "http://a.test/third#part") == 200)
    let authorization = fake.requests.map(Self.authorization)
    #expect(authorization.map { $0["nc"] } == [nil, "00000001", "00000002", "00000003"])
    #expect(authorization.map { $0["uri"] } == [nil, "/x?y=1", "/other", "/third"])
    #expect(Set(authorization.compactMap { $0["cnonce"] }).count == 3)
    #expect(authorization[1]["opaque"] == "o")
  }

  @Test("A challenge that repeats a nonce goes on with its count") func repeatedNonce() async {
    // Outside of the domain nothing is sent preemptively.
    let challenge = Self.digest + #", domain="/in""#
    let fake = FakeTransport(responder: Self.protected(challenge))
    let session = Session.retained(fake: fake)
    for path in ["in/1", "out", "in/2", "out"] { #expect(await ask(session, "http://a.test/\(path)") == 200) }
    let counts = fake.requests.map { Self.authorization($0)["nc"] }
    #expect(counts == [nil, "00000001", nil, "00000002", "00000003", nil, "00000004"])
  }

  @Test("A request with another credential or none is not authenticated preemptively") func otherCredential()
    async
  {
    let fake = FakeTransport(responder: Self.protected())
    let session = Session.retained(fake: fake)
    #expect(await ask(session) == 200)
    #expect(await ask(session, password: nil) == 401)
    #expect(await ask(session, password: "other") == 200)
    #expect(fake.requests.map { $0.value("Authorization") != nil } == [false, true, false, false, true])
  }

  @Test(
    "A credential is normalized for servers that name a charset, and for no others", arguments: [false, true])
  func normalization(namesCharset: Bool) async {
    let challenge = #"Digest realm="r", nonce="n""# + (namesCharset ? ", charset=UTF-8" : "")
    var answers: [String?] = []
    for password in ["\u{E9}", "e\u{301}"] {
      let fake = FakeTransport(responder: Self.protected(challenge))
      #expect(await ask(Session.retained(fake: fake), password: password) == 200)
      answers.append(fake.requests.last.flatMap { Self.authorization($0)["response"] })
    }
    #expect(answers[0] != nil)
    #expect((answers[0] == answers[1]) == namesCharset)
  }

  @Test("The strongest challenge is answered") func strongestChallenge() async {
    let offers = """
      Basic realm="b", Digest realm="m", nonce="1", qop="auth", algorithm=MD5, Digest realm="s", nonce="2", \
      qop="auth", algorithm=SHA-256, Digest realm="?", nonce="3", algorithm=SHA3-512
      """
    let fake = FakeTransport(responder: Self.protected(offers))
    #expect(await ask(Session.retained(fake: fake)) == 200)
    #expect(fake.requests.last.map { Self.authorization($0)["realm"] } == "s")
  }

  @Test("A stale nonce is replaced by the new one") func staleNonce() async {
    let stale = #"Digest realm="r", nonce="n2", qop="auth", stale=true"#
    let fake = FakeTransport(.challenge(Self.digest), .challenge(stale), .text("in"), .text("in"))
    let session = Session.retained(fake: fake)
    #expect(await ask(session) == 200)
    #expect(await ask(session) == 200)
    #expect(fake.requests.map { Self.authorization($0)["nonce"] } == [nil, "n1", "n2", "n2"])
    #expect(fake.requests.map { Self.authorization($0)["nc"] } == [nil, "00000001", "00000001", "00000002"])
  }

  @Test("A nonce that expired between two requests is replaced") func expiredNonce() async {
    let fresh = #"Digest realm="r", nonce="n2", qop="auth""#
    let fake = FakeTransport(.challenge(Self.digest), .text("in"), .challenge(fresh), .text("in"))
    let session = Session.retained(fake: fake)
    #expect(await ask(session) == 200)
    #expect(await ask(session) == 200)
    #expect(fake.requests.map { Self.authorization($0)["nonce"] } == [nil, "n1", "n1", "n2"])
  }

  @Test("A remembered password that Digest has shown to be wrong is not sent by Basic") func noBasic() async {
    let both = Self.digest + #", Basic realm="r""#
    let refusal = FakeReply.status(401, "refused", headers: [("WWW-Authenticate", both)])
    let fake = FakeTransport(.challenge(Self.digest), .text("in"), refusal, .text("by Basic"))
    let session = Session.retained(fake: fake)
    #expect(await ask(session) == 200)
    let response = await session.request("http://a.test/").authenticate(username: "user", password: "pass")
      .end()
    #expect(response.response?.statusCode == 401 && response.data == Data("refused".utf8))
    #expect(fake.requests.allSatisfy { $0.value("Authorization")?.hasPrefix("Basic") != true })
  }

  @Test("A server that challenges forever is given up") func endlessChallenges() async {
    let fake = FakeTransport { _, index in
      .challenge(#"Digest realm="r", nonce="\#(index)", qop="auth", stale=true"#)
    }
    #expect(await ask(Session.retained(fake: fake)) == 401)
    #expect(fake.requests.count == 6)
  }

  @Test("The next nonce is used") func nextNonce() async {
    let fake = FakeTransport(
      .challenge(Self.digest), .status(200, "in", headers: [("Authentication-Info", #"nextnonce="n9""#)]),
      .text("in"))
    let session = Session.retained(fake: fake)
    #expect(await ask(session) == 200)
    #expect(await ask(session) == 200)
    #expect(fake.requests.map { Self.authorization($0)["nonce"] } == [nil, "n1", "n9"])
    #expect(fake.requests.last.map { Self.authorization($0)["nc"] } == "00000001")
  }

  @Test("The next nonce of a stored response is not used again after a 304", arguments: [nil, "n4"])
  func nextNonceOfStoredResponse(later: String?) async {
    func info(_ nonce: String) -> (String, String) { ("Authentication-Info", "nextnonce=\"\(nonce)\"") }
    let fake = FakeTransport(
      .challenge(Self.digest), .cacheable("one", "public, no-cache", tag: "1", info("n2")),
      .status(200, "two", headers: [info("n3")]),
      .status(304, headers: [("ETag", "\"1\"")] + (later.map { [info($0)] } ?? [])), .text("in"))
    let fixture = CacheFixture(fake)
    for path in ["x", "y", "x", "z"] {
      #expect(await ask(fixture.session, "http://a.test/\(path)") == 200, "\(path)")
    }
    #expect(fake.requests.map { $0.value("If-None-Match") } == [nil, nil, nil, "\"1\"", nil])
    let nonces = fake.requests.map { Self.authorization($0)["nonce"] }
    #expect(nonces == [nil, "n1", "n2", "n3", later ?? "n3"])
  }

  // MARK: Requests that are sent again

  /// Returns the count of the nonce in each request. A server accepts each count once (RFC 7616 §3.4).
  private func counts(_ fake: FakeTransport) -> [String?] {
    fake.requests.map { Self.authorization($0)["nc"] }
  }

  @Test("The request for a whole file uses the next count of a nonce") func wholeFile() async {
    let fake = FakeTransport(.challenge(Self.digest), .failure(.cannotContinue), .text("in"))
    let response = await Session.retained(fake: fake).request(
      "http://a.test/", headers: ["Range": "bytes=5-"]
    )
    .authenticate(username: "user", password: "pass").end()
    #expect(response.response?.statusCode == 200)
    #expect(fake.requests.map { $0.value("Range") } == ["bytes=5-", "bytes=5-", nil])
    #expect(counts(fake) == [nil, "00000001", "00000002"])
  }

  @Test("A request after a 304 for another response uses the next count of a nonce")
  func otherRepresentation() async {
    let fake = FakeTransport(
      .challenge(Self.digest), .cacheable("one", "public, max-age=60", tag: "1"),
      .status(304, headers: [("ETag", "\"2\"")]), .cacheable("two", "public, max-age=60", tag: "2"),
      .text("in"))
    let fixture = CacheFixture(fake)
    #expect(await ask(fixture.session) == 200)
    fixture.clock.advance(70)
    #expect(await ask(fixture.session) == 200)
    #expect(await ask(fixture.session, "http://a.test/other") == 200)
    #expect(fake.requests.map { $0.value("If-None-Match") } == [nil, nil, "\"1\"", nil, nil])
    #expect(counts(fake) == [nil, "00000001", "00000002", "00000003", "00000004"])
  }

  @Test(
    "A request that an alternative service has refused uses the next count of a nonce",
    arguments: [("auth", 0), ("auth-int", 1), ("auth-int", 20_000)])
  func misdirected(quality: String, count: Int) async {
    let services = AlternativeServices()
    services.note(
      ResponseHead(status: 200, fields: [HTTPHeader(name: "Alt-Svc", value: #"h2="alt.test:9443""#)]),
      of: Origin(scheme: "https", host: "a.test", port: 8443))
    var options = TransportOptions()
    options.alternativeServices = services
    let fake = FakeTransport(
      .challenge(#"Digest realm="r", nonce="n1", qop="\#(quality)""#), .status(421), .text("in"))
    let session = Session.retained(fake: fake, configuration: .isolated, options: options)
    let response = await session.upload(Data(repeating: 1, count: count), to: "https://a.test:8443/")
      .authenticate(username: "user", password: "pass").end()
    #expect(response.response?.statusCode == 200)
    #expect(fake.requests.map { $0.alternative != nil } == [true, true, false])
    #expect(counts(fake) == [nil, "00000001", "00000002"])
    #expect(Set(fake.requests.compactMap { Self.authorization($0)["response"] }).count == 2)
  }

  @Test("A redirect within the origin has a new digest") func redirect() async {
    let fake = FakeTransport(.challenge(Self.digest), .redirect(302, to: "/next"), .text("in"))
    #expect(await ask(Session.retained(fake: fake)) == 200)
    #expect(fake.requests.map { Self.authorization($0)["uri"] } == [nil, "/x?y=1", "/next"])
  }

  @Test("Concurrent requests share a nonce count") func concurrentRequests() async {
    let fake = FakeTransport(responder: Self.protected())
    let session = Session.retained(fake: fake)
    #expect(await ask(session) == 200)
    await withTaskGroup { group in
      for _ in 0..<50 { group.addTask { await ask(session) } }
      for await status in group { #expect(status == 200) }
    }
    let counts = fake.requests.compactMap { Self.authorization($0)["nc"] }
    #expect(counts.count == 51 && Set(counts).count == 51)
  }

  @Test("A file is hashed for auth-int and sent", arguments: ["line\n", "\u{FF}\u{0}"])
  func file(content: String) async throws {
    let server = try HTTPTestServer()
    let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    // ISO Latin 1, so that one of the files is not UTF-8.
    let line = try #require(content.data(using: .isoLatin1))
    try Data((0..<40_000).flatMap { _ in line }).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    let session = Session()
    let response = await session.upload(file, to: server.url("/digest-auth/auth-int/u/p/SHA-256"))
      .authenticate(username: "u", password: "p").end()
    #expect(response.response?.statusCode == 200)
  }

  @Test("A request ends with an error if the file to sign is gone", arguments: [1, 100_000])
  func missingFile(count: Int) async throws {
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("signed-\(UUID().uuidString)")
    try Data(repeating: 1, count: count).write(to: file)
    let fake = FakeTransport { request, _ in
      try? FileManager.default.removeItem(at: file)
      return .challenge(#"Digest realm="r", nonce="n", qop="auth-int""#)
    }
    let response = await Session.retained(fake: fake).upload(file, to: "http://a.test/")
      .authenticate(username: "user", password: "pass").end()
    let error = try #require(response.error?.underlyingError as? URLError)
    #expect(error.code == .requestBodyStreamExhausted || error.code == .fileDoesNotExist, "\(error)")
    #expect(error.localizedDescription.contains("auth-int"), "\(error.localizedDescription)")
    #expect(fake.requests.count == 1, "the request was repeated without an answer")
  }

  @Test(
    "A stream fails with auth-int and is sent with auth",
    arguments: [
      "auth-int", "auth,auth-int",
    ])
  func stream(quality: String) async throws {
    let fake = FakeTransport(responder: Self.protected(#"Digest realm="r", nonce="n", qop="\#(quality)""#))
    let response = await Session.retained(fake: fake)
      .upload(InputStream(data: Data("abc".utf8)), to: "http://a.test/")
      .authenticate(username: "u", password: "p").end()
    if quality == "auth-int" {
      let error = try #require(response.error?.underlyingError as? URLError)
      #expect(error.code == .requestBodyStreamExhausted)
      #expect(error.localizedDescription.contains("auth-int"))
    } else {
      #expect(response.response?.statusCode == 200)
    }
  }

  @Test("A stream is sent without the credential that would have to sign it") func unsignedStream() async {
    let challenge = #"Digest realm="r", nonce="n", qop="auth-int""#
    let fake = FakeTransport(.challenge(challenge))
    let session = Session.retained(fake: fake)
    #expect(await ask(session) == 200)
    let response = await session.upload(InputStream(data: Data("abc".utf8)), to: "http://a.test/x")
      .authenticate(username: "user", password: "pass").end()
    #expect(response.response?.statusCode == 200, "\(String(describing: response.error))")
    #expect(fake.requests.map { $0.value("Authorization") != nil } == [false, true, false])
  }

  @Test("The delegate is called for a Digest credential") func delegate() async throws {
    let server = try HTTPTestServer()
    let delegate = ChallengeDelegate { challenge in
      challenge.previousFailureCount > 0
        ? (.rejectProtectionSpace, nil)
        : (.useCredential, URLCredential(user: "u", password: "p", persistence: .forSession))
    }
    let session = Session(delegate: delegate)
    let response = await session.request(server.url("/digest-auth/auth/u/p/SHA-256")).end()
    #expect(response.response?.statusCode == 200)
    #expect(delegate.calls.values == ["\(NSURLAuthenticationMethodHTTPDigest) test@localhost 0"])
    // The credential is for the session, so its other requests use it preemptively.
    let second = await session.request(server.url("/digest-auth/auth/u/p/SHA-256")).end()
    #expect(second.response?.statusCode == 200)
    #expect(delegate.calls.count == 1)
    let wrong = await session.request(server.url("/digest-auth/auth/u/other/SHA-256")).end()
    #expect(wrong.response?.statusCode == 401)
  }

  @Test("A challenge that the delegate rejects is followed by the next scheme") func rejectedScheme() async {
    let fake = FakeTransport(responder: Self.protected(Self.digest + #", Basic realm="b""#))
    let delegate = ChallengeDelegate { challenge in
      challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodHTTPDigest
        ? (.rejectProtectionSpace, nil)
        : (.useCredential, URLCredential(user: "u", password: "p", persistence: .none))
    }
    let session = Session.retained(fake: fake, observers: SessionObservers(delegate: delegate))
    #expect(await session.request("http://a.test/").end().response?.statusCode == 200)
    #expect(fake.requests.last?.value("Authorization")?.hasPrefix("Basic ") == true)
    #expect(
      delegate.calls.values == [
        "\(NSURLAuthenticationMethodHTTPDigest) r 0", "\(NSURLAuthenticationMethodHTTPBasic) b 0",
      ])
  }

  @Test("A delegate that repeats the same wrong credential ends with the 401") func repeatedCredential() async
  {
    // The server gives up, so that a credential that is sent forever ends the test.
    let fake = FakeTransport { _, index in index < 5 ? .challenge() : .text("gave up") }
    let delegate = ChallengeDelegate { _ in
      (.useCredential, URLCredential(user: "u", password: "p", persistence: .none))
    }
    let session = Session.retained(fake: fake, observers: SessionObservers(delegate: delegate))
    #expect(await session.request("http://a.test/").end().response?.statusCode == 401)
    #expect(fake.requests.count == 2)
    #expect(delegate.calls.values.last?.hasSuffix(" 1") == true)
  }

  @Test("A delegate is proposed the credential of the request, else that of the storage")
  func proposedCredential() async {
    let host = "\(UUID().uuidString.lowercased()).test"
    let configuration = URLSessionConfiguration.ephemeral
    let space = URLProtectionSpace(
      host: host, port: 80, protocol: "http", realm: "r",
      authenticationMethod: NSURLAuthenticationMethodHTTPDigest)
    configuration.urlCredentialStorage?.setDefaultCredential(
      URLCredential(user: "stored", password: "p", persistence: .forSession), for: space)
    for password in ["pass", nil] {
      let proposed = Recorder<String?>()
      let delegate = ChallengeDelegate { challenge in
        proposed.add(challenge.proposedCredential?.user)
        return (.performDefaultHandling, nil)
      }
      let session = Session.retained(
        fake: FakeTransport(responder: Self.protected()), configuration: configuration,
        observers: SessionObservers(delegate: delegate))
      #expect(await ask(session, "http://\(host)/", password: password) == 200)
      #expect(proposed.values == [password == nil ? "stored" : "user"])
    }
  }

  @Test("The credential storage answers Digest") func storage() async {
    let host = "\(UUID().uuidString.lowercased()).test"
    let configuration = URLSessionConfiguration.ephemeral
    let space = URLProtectionSpace(
      host: host, port: 80, protocol: "http", realm: "r",
      authenticationMethod: NSURLAuthenticationMethodHTTPDigest)
    configuration.urlCredentialStorage?.setDefaultCredential(
      URLCredential(user: "stored", password: "p", persistence: .forSession), for: space)
    let fake = FakeTransport(responder: Self.protected())
    let session = Session.retained(fake: fake, configuration: configuration)
    #expect(await ask(session, "http://\(host)/", password: nil) == 200)
    #expect(await ask(session, "http://\(host)/", password: nil) == 200)
    #expect(fake.requests.map { Self.authorization($0)["username"] } == [nil, "stored", "stored"])
  }

  @Test("Credentials of the URL answer Digest") func credentialsOfURL() async {
    let fake = FakeTransport(responder: Self.protected())
    #expect(await ask(Session.retained(fake: fake), "http://user:pass@a.test/", password: nil) == 200)
    #expect(fake.requests.last.map { Self.authorization($0)["username"] } == "user")
  }
}

/// A delegate that answers challenges with given dispositions and records them.
final class ChallengeDelegate: SessionDelegate, @unchecked Sendable {
  // Unchecked, as its superclass is: its own properties are constants.
  typealias Answer = (URLSession.AuthChallengeDisposition, URLCredential?)

  let calls = Recorder<String>()
  private let answer: @Sendable (URLAuthenticationChallenge) -> Answer

  init(_ answer: @escaping @Sendable (URLAuthenticationChallenge) -> Answer) {
    self.answer = answer
    super.init()
  }

  override func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    let space = challenge.protectionSpace
    calls.add("\(space.authenticationMethod) \(space.realm ?? "") \(challenge.previousFailureCount)")
    let answer = answer(challenge)
    completionHandler(answer.0, answer.1)
  }
}
