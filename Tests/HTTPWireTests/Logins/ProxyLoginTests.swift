import HTTPWire
import Testing

@Suite("Login to a proxy") struct ProxyLoginTests {
  typealias Step = ProxyLogin.ProxyLoginStep

  static func login(
    _ authentication: ProxyServer.Authentication = .negotiated, user: String? = "ann",
    password: String? = "secret",
    schemes: Set<AuthenticationScheme> = [.ntlm, .negotiate], remembered: AuthenticationProof? = nil,
    hasBody: Bool = true
  ) -> ProxyLogin {
    var proxy = ProxyServer(.http, host: "proxy.test", port: 3128, username: user, password: password)
    proxy.authentication = authentication
    return ProxyLogin(
      to: proxy, target: .init(method: "CONNECT", text: "a.test:443", hasBody: hasBody),
      connectionSchemes: schemes,
      remembered: remembered, hashes: ReferenceMD5())
  }

  static func refusal(_ challenges: String...) -> ResponseHead {
    ResponseHead(status: 407, fields: challenges.map { HTTPHeader(name: "Proxy-Authenticate", value: $0) })
  }

  static func digest(
    _ nonce: String, stale: Bool = false, realm: String = "r", _ more: String = ", qop=\"auth\""
  )
    -> String
  {
    "Digest realm=\"\(realm)\", nonce=\"\(nonce)\"\(stale ? ", stale=true" : "")\(more)"
  }

  /// Returns the value that a step sends.
  static func field(_ step: Step) -> String? {
    if case .send(let field, _) = step { field } else { nil }
  }

  static let nothing = Step.send(field: nil, withBody: true)
  static let basic = Step.send(field: "Basic YW5uOnNlY3JldA==", withBody: true)
  static let ok = ResponseHead(status: 200)

  @Test("Basic is sent at once, and a 407 ends it") func basicAtOnce() {
    var login = Self.login(.basic)
    #expect(login.begin() == Self.basic)
    #expect(login.received(Self.refusal("Basic realm=\"r\""), keepsConnection: true) == .deliver)
    #expect(login.isOver)
    login = Self.login(.basic)
    #expect(login.begin() == Self.basic)
    #expect(login.received(Self.ok, keepsConnection: true) == .deliver)
  }

  @Test("Without a user and a password, no credentials are sent") func noUser() {
    for authentication in [ProxyServer.Authentication.basic, .negotiated] {
      var login = Self.login(authentication, user: nil, password: nil)
      #expect(login.begin() == Self.nothing)
      #expect(
        login.received(Self.refusal("Basic realm=\"r\", NTLM, Negotiate"), keepsConnection: true) == .deliver)
    }
    var login = Self.login(.basic, user: nil)
    #expect(login.begin() == .send(field: "Basic OnNlY3JldA==", withBody: true), "a password alone")
    login = Self.login(.basic, password: nil)
    #expect(login.begin() == .send(field: "Basic YW5uOg==", withBody: true), "a name alone")
  }

  @Test(
    "The strongest challenge is answered",
    arguments: [
      (["Basic realm=r"], "Basic"), (["Basic realm=r, NTLM"], "ntlm"),
      (["NTLM", "Basic realm=r", #"Digest realm=r, nonce=n, qop="auth""#], "Digest"),
      (["Negotiate", "Basic realm=r"], "Basic"), (["Negotiate"], "none"), (["Bearer"], "none"), ([], "none"),
      ([#"Digest realm=r, nonce=n, qop="auth-int""#, "Basic realm=r"], "Basic"),
      ([#"Digest realm=r, nonce=n, qop="auth-int,auth""#, "NTLM"], "Digest"),
      (["Digest realm=r, nonce=n, algorithm=SHA-256, qop=auth", "NTLM"], "ntlm"),
      (["Digest realm=r, nonce=n, algorithm=FOO", "Basic realm=r"], "Basic"),
      (["Digest realm=r, nonce=n"], "Digest"),
    ])
  func strongest(challenges: [String], scheme: String) {
    var login = Self.login()
    #expect(login.begin() == Self.nothing)
    let head = ResponseHead(
      status: 407, fields: challenges.map { HTTPHeader(name: "Proxy-Authenticate", value: $0) })
    switch login.received(head, keepsConnection: true) {
    case .send(let field, let withBody):
      #expect(field?.prefix { $0 != " " } == scheme[...])
      #expect(withBody)
    case .ask(let asked, let challenge):
      #expect("\(asked)" == scheme)
      #expect(challenge.isEmpty)
    case .deliver: #expect(scheme == "none")
    }
  }

  @Test("Without connection-based schemes another one is answered") func noConnectionSchemes() {
    var login = Self.login(schemes: [])
    _ = login.begin()
    #expect(login.received(Self.refusal("NTLM, Basic realm=r"), keepsConnection: true) == Self.basic)
  }

  @Test("A ticket is used only for an empty user name") func ticket() {
    var login = Self.login(user: "", password: "")
    _ = login.begin()
    let first = login.received(Self.refusal(Self.digest("n"), "NTLM, Negotiate"), keepsConnection: true)
    #expect(first == .ask(.negotiate, challenge: []))
    #expect(login.answered([1]) == .send(field: "Negotiate AQ==", withBody: true))
    #expect(
      login.received(Self.refusal("Negotiate Ag=="), keepsConnection: true)
        == .ask(.negotiate, challenge: [2]))
    #expect(login.answered([3]) == .send(field: "Negotiate Aw==", withBody: true))
    #expect(login.received(Self.ok, keepsConnection: true) == .deliver)
  }

  @Test("Digest names the method and the target of the request") func digest() throws {
    var login = Self.login()
    _ = login.begin()
    let step = login.received(
      Self.refusal(Self.digest("n1", ", qop=\"auth,auth-int\", opaque=\"o\"")), keepsConnection: true)
    let field = try #require(Self.field(step))
    let challenge = try #require(Challenge.all(in: [field]).first)
    #expect(challenge.scheme == "digest")
    let values = ["username", "realm", "uri", "nonce", "nc", "qop", "opaque"].map { challenge[$0] }
    #expect(values == ["ann", "r", "a.test:443", "n1", "00000001", "auth", "o"])
    let hashes = ReferenceMD5()
    func md5(_ text: String) -> String { hashes.text(.md5, Array(text.utf8)) ?? "" }
    let cnonce = try #require(challenge["cnonce"])
    let response = md5("\(md5("ann:r:secret")):n1:00000001:\(cnonce):auth:\(md5("CONNECT:a.test:443"))")
    #expect(challenge["response"] == response)
    #expect(login.received(Self.ok, keepsConnection: true) == .deliver)
    #expect(login.proof?.scheme == .digest)
  }

  @Test("A refused Digest answer ends the login, with a weaker scheme, too") func refusedDigest() {
    for next in [Self.digest("n1"), Self.digest("n2"), "Basic realm=r"] {
      var login = Self.login()
      _ = login.begin()
      #expect(Self.field(login.received(Self.refusal(Self.digest("n1")), keepsConnection: true)) != nil)
      #expect(login.received(Self.refusal(next), keepsConnection: true) == .deliver, "\(next)")
    }
  }

  @Test("An expired nonce is replaced, but not forever") func stale() {
    var login = Self.login()
    _ = login.begin()
    var answers = 0
    var step = login.received(Self.refusal(Self.digest("n0")), keepsConnection: true)
    while let field = Self.field(step), answers < 100 {
      #expect(field.contains("nonce=\"n\(answers)\""))
      answers += 1
      step = login.received(Self.refusal(Self.digest("n\(answers)", stale: true)), keepsConnection: true)
    }
    #expect(answers == 5)
    #expect(step == .deliver)
  }

  @Test("An endless 407 ends, whatever the proxy asks for") func endless() {
    let rounds: [(String, (Int) -> [String])] = [
      ("other realms", { [Self.digest("n\($0)", realm: "r\($0)"), "Basic realm=\"r\($0)\""] }),
      ("other realms of Basic", { ["Basic realm=\"r\($0)\""] }),
      ("messages", { _ in ["NTLM Ag==", "Negotiate Ag=="] }),
      ("schemes in turn", { [["NTLM"], ["Negotiate Ag=="], ["Basic realm=\"\($0)\""]][$0 % 3] }),
    ]
    for (name, challenges) in rounds {
      for user in ["ann", ""] {
        var login = Self.login(user: user)
        var step = login.begin()
        var requests = 0
        while step != .deliver, requests < 100 {
          guard case .send = step else {
            step = login.answered([1])
            continue
          }
          let fields = challenges(requests).map { HTTPHeader(name: "Proxy-Authenticate", value: $0) }
          requests += 1
          step = login.received(ResponseHead(status: 407, fields: fields), keepsConnection: requests % 2 == 0)
        }
        #expect(requests <= 7, "\(name)")
        #expect(login.isOver, "\(name)")
      }
    }
  }

  @Test("NTLM sends its first message without the body, and a weaker scheme follows its refusal") func ntlm()
  {
    var login = Self.login()
    _ = login.begin()
    #expect(login.received(Self.refusal("NTLM"), keepsConnection: true) == .ask(.ntlm, challenge: []))
    #expect(login.answered([1]) == .send(field: "NTLM AQ==", withBody: false))
    #expect(login.received(Self.refusal("NTLM Ag=="), keepsConnection: true) == .ask(.ntlm, challenge: [2]))
    #expect(login.answered([3]) == .send(field: "NTLM Aw==", withBody: true))
    #expect(login.received(Self.refusal("NTLM, Basic realm=r"), keepsConnection: true) == Self.basic)
    #expect(login.received(Self.refusal("NTLM, Basic realm=r"), keepsConnection: true) == .deliver)
    #expect(login.received(Self.ok, keepsConnection: true) == .deliver)
  }

  @Test("Without a token, the next scheme of the challenges is used") func noTokenButPassword() {
    var login = Self.login(user: "")
    _ = login.begin()
    let refusal = Self.refusal("Negotiate", "Basic realm=\"p\"")
    #expect(login.received(refusal, keepsConnection: true) == .ask(.negotiate, challenge: []))
    guard case .send(field: let field?, withBody: true) = login.answered(nil) else {
      Issue.record("the password is not sent")
      return
    }
    #expect(field.hasPrefix("Basic "))
    #expect(login.received(refusal, keepsConnection: true) == .deliver)
  }

  @Test("A token that cannot be generated ends the login, and the request goes without credentials")
  func noToken() {
    var login = Self.login(user: "")
    _ = login.begin()
    #expect(
      login.received(Self.refusal("Negotiate"), keepsConnection: true) == .ask(.negotiate, challenge: []))
    #expect(login.answered(nil) == Self.nothing)
    #expect(login.received(Self.refusal("Negotiate"), keepsConnection: true) == .deliver)
    var other = Self.login()
    #expect(other.answered([1]) == .deliver, "no token was asked for")
  }

  @Test("Another status is delivered") func otherStatus() {
    for status in [200, 302, 401, 403, 502] {
      var login = Self.login()
      _ = login.begin()
      let fields = [HTTPHeader(name: "Proxy-Authenticate", value: "Basic realm=r")]
      #expect(login.received(ResponseHead(status: status, fields: fields), keepsConnection: true) == .deliver)
      #expect(login.received(Self.refusal("Basic realm=r"), keepsConnection: true) == .deliver, "it is over")
    }
  }

  @Test("The next request begins with the credentials that the proxy has accepted") func remembered() throws {
    var login = Self.login()
    _ = login.begin()
    _ = login.received(Self.refusal(Self.digest("n1")), keepsConnection: true)
    var proof = try #require(login.proof)
    for count in 2...3 {
      var next = Self.login(remembered: proof)
      let field = try #require(Self.field(next.begin()))
      let answer = try #require(Challenge.all(in: [field]).first)
      #expect(answer["nc"] == "0000000\(count)")
      #expect(answer["nonce"] == "n1")
      proof = try #require(next.proof)
    }
    var next = Self.login(remembered: proof)
    _ = next.begin()
    let step = next.received(Self.refusal(Self.digest("n2", stale: true)), keepsConnection: true)
    #expect(Self.field(step)?.contains("nonce=\"n2\"") == true)
    next = Self.login(user: "bob", remembered: proof)
    #expect(next.begin() == Self.nothing, "another user")
    next = Self.login(.basic, remembered: proof)
    #expect(next.begin() == Self.basic)
    var basic = Self.login()
    _ = basic.begin()
    _ = basic.received(Self.refusal("Basic realm=r"), keepsConnection: true)
    next = Self.login(remembered: basic.proof)
    #expect(next.begin() == Self.basic)
    #expect(next.received(Self.refusal("Basic realm=r"), keepsConnection: true) == .deliver)
  }

  @Test("A remembered password that Digest has shown to be wrong is not sent by Basic") func noBasic() throws
  {
    var login = Self.login()
    _ = login.begin()
    _ = login.received(Self.refusal(Self.digest("n1")), keepsConnection: true)
    let proof = try #require(login.proof)
    for (nonce, isStale, isAnswered) in [("n1", false, false), ("n1", true, true), ("n2", false, true)] {
      var next = Self.login(remembered: proof)
      _ = next.begin()
      let refusal = Self.refusal("Basic realm=r", Self.digest(nonce, stale: isStale))
      #expect(
        (next.received(refusal, keepsConnection: true) != .deliver) == isAnswered, "\(nonce) \(isStale)")
    }
  }

  @Test("An answer by Digest has the ticket of the caller") func ownTicket() throws {
    let ticket = DigestTicket(nonce: "n1", cnonce: "c", count: 7)
    for isLate in [false, true] {
      var login = Self.login(user: isLate ? "" : "ann")
      _ = login.begin()
      let offers = isLate ? ["Negotiate", Self.digest("n1")] : [Self.digest("n1")]
      let refusal = ResponseHead(
        status: 407, fields: offers.map { HTTPHeader(name: "Proxy-Authenticate", value: $0) })
      var step = login.received(refusal, keepsConnection: true) { _ in ticket }
      if isLate { step = login.answered(nil) { _ in ticket } }
      let field = try #require(Self.field(step), "\(step)")
      #expect(Challenge.all(in: [field]).first?["nc"] == "00000007")
    }
  }

  @Test("A remembered nonce ends with its counter") func lastCount() throws {
    let challenge = try #require(Challenge.all(in: [Self.digest("n")]).first)
    let digest = try #require(DigestChallenge(challenge))
    for (count, isUsed) in [(UInt32.max - 1, true), (.max, false)] {
      let proof = AuthenticationProof(
        scheme: .digest, realm: "r", credential: PasswordCredential(user: "ann", password: "secret"),
        source: .request,
        field: "x", digest: digest, ticket: DigestTicket(nonce: "n", cnonce: "c", count: count),
        isAnswer: true)
      var login = Self.login(remembered: proof)
      #expect((Self.field(login.begin()) != nil) == isUsed)
    }
  }
}
