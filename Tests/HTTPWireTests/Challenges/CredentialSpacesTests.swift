import HTTPWire
import Testing

@Suite("Protection spaces of accepted credentials", .timeLimit(.minutes(5)))
struct CredentialSpacesTests {
  private let origin = Origin(scheme: "http", host: "a.test", port: 80)
  private let ann = PasswordCredential(user: "ann", password: "1")

  private func proof(
    _ field: String, _ credential: PasswordCredential, ticket: DigestTicket? = nil, isAnswer: Bool = true
  ) throws -> AuthenticationProof {
    let offer = try #require(AuthenticationOffer.ranked(Challenge.all(in: [field])).first)
    return AuthenticationProof(
      scheme: offer.scheme, realm: offer.realm, credential: credential, source: .request, field: "x",
      digest: offer.digest, ticket: ticket ?? offer.digest.map { DigestTicket.first(for: $0) },
      isAnswer: isAnswer)
  }

  @Test(
    "Basic credentials apply to the folder of the URL (RFC 7617 §2.2)",
    arguments: [
      ("/a/b", true), ("/a/", true), ("/a/b/c?x", true), ("/a", false), ("/", false), ("/ab", false),
    ])
  func depth(target: String, isGood: Bool) throws {
    var spaces = CredentialSpaces()
    spaces.accepted(try proof(#"Basic realm="r""#, ann), origin: origin, target: "/a/x?y=/z/", nextNonce: nil)
    #expect(spaces.matches(origin, target: target).isEmpty == !isGood)
  }

  @Test("Requests below a folder do not push the folder out of the protection space") func widestFolder()
    throws
  {
    var spaces = CredentialSpaces()
    let basic = try proof(#"Basic realm="r""#, ann)
    func accept(_ target: String) {
      spaces.accepted(basic, origin: origin, target: target, nextNonce: nil)
    }
    func matches(_ target: String) -> Bool { !spaces.matches(origin, target: target).isEmpty }
    accept("/api/x")
    for number in 1...40 { accept("/api/\(number)/x") }
    #expect(matches("/api/new/x") && !matches("/other"))
    // A wider folder takes the place of those that it contains.
    for number in 1...14 { accept("/b/\(number)/x") }
    accept("/b/x")
    for number in 1...13 { accept("/\(number)/x") }
    #expect(matches("/api/new/x") && matches("/b/new/x") && matches("/1/x") && matches("/13/x"))
  }

  @Test(
    "Digest credentials apply to the URLs of domain (RFC 7616 §3.3)",
    arguments: [
      ("", "/anything", true), ("/a /b/", "/a", true), ("/a /b/", "/b", false), ("/a /b/", "/b/c", true),
      ("http://a.test/x", "/x?y", true), ("http://a.test", "/z", true), ("http://b.test/", "/", false),
      ("//b.test/", "/", false), ("https://a.test/", "/", false),
    ])
  func domain(domain: String, target: String, isGood: Bool) throws {
    var spaces = CredentialSpaces()
    spaces.accepted(
      try proof(#"Digest realm="r", nonce="n", qop=auth, domain="\#(domain)""#, ann), origin: origin,
      target: "/q",
      nextNonce: nil)
    #expect(spaces.matches(origin, target: target).isEmpty == !isGood)
  }

  @Test("Realms that are equal as texts but not as bytes are two spaces") func bytesOfRealms() throws {
    var spaces = CredentialSpaces()
    let realms = ["\u{E9}", "e\u{301}"]
    for (number, realm) in realms.enumerated() {
      spaces.accepted(
        try proof(#"Basic realm="\#(realm)""#, ann), origin: origin, target: "/\(number)/x", nextNonce: nil)
    }
    let found = (0...1).map { spaces.matches(origin, target: "/\($0)/").compactMap(\.realm) }
    #expect(found.map { $0.map { Array($0.utf8) } } == realms.map { [Array($0.utf8)] })
  }

  @Test("Other origins have no credentials") func otherOrigins() throws {
    var spaces = CredentialSpaces()
    spaces.accepted(try proof(#"Basic realm="r""#, ann), origin: origin, target: "/", nextNonce: nil)
    for other in [("https", "a.test", 80), ("http", "b.test", 80), ("http", "a.test", 81)] {
      #expect(spaces.matches(Origin(scheme: other.0, host: other.1, port: other.2), target: "/").isEmpty)
    }
  }

  @Test("Uses of a nonce are counted") func nonceCount() throws {
    var spaces = CredentialSpaces()
    let first = try proof(#"Digest realm="r", nonce="n", qop=auth"#, ann)
    spaces.accepted(first, origin: origin, target: "/", nextNonce: nil)
    let match = try #require(spaces.matches(origin, target: "/").first)
    let counts = (0..<3).map { _ in spaces.ticket(match.number, origin: origin, cnonce: "c")?.countText }
    #expect(counts == ["00000002", "00000003", "00000004"])
  }

  @Test("The next nonce starts a new count") func nextNonce() throws {
    var spaces = CredentialSpaces()
    spaces.accepted(
      try proof(#"Digest realm="r", nonce="n", qop=auth"#, ann), origin: origin, target: "/", nextNonce: "m")
    let match = try #require(spaces.matches(origin, target: "/").first)
    let next = spaces.ticket(match.number, origin: origin, cnonce: "c")
    let ticket = try #require(next)
    #expect(ticket.nonce == "m" && ticket.count == 1 && ticket.cnonce == "c")
  }

  @Test("A next nonce that is in use already goes on with its count") func repeatedNextNonce() throws {
    var spaces = CredentialSpaces()
    let first = try proof(#"Digest realm="r", nonce="n", qop=auth"#, ann)
    spaces.accepted(first, origin: origin, target: "/", nextNonce: "n")
    let match = try #require(spaces.matches(origin, target: "/").first)
    var counts: [UInt32?] = []
    for next in ["n", nil, "m", "m"] {
      let taken = spaces.ticket(match.number, origin: origin, cnonce: "c")
      let ticket = try #require(taken)
      counts.append(ticket.count)
      spaces.accepted(
        try proof(#"Digest realm="r", nonce="n", qop=auth"#, ann, ticket: ticket, isAnswer: false),
        origin: origin, target: "/", nextNonce: next)
    }
    #expect(counts == [2, 3, 4, 1])
    // An answer to an older nonce names the present one as well.
    spaces.accepted(first, origin: origin, target: "/", nextNonce: "m")
    #expect(spaces.ticket(match.number, origin: origin, cnonce: "c")?.count == 2)
    let second = try proof(#"Digest realm="r", nonce="k", qop=auth"#, ann)
    spaces.accepted(second, origin: origin, target: "/", nextNonce: "k")
    #expect(spaces.ticket(match.number, origin: origin, cnonce: "c")?.count == 2)
  }

  @Test("A session of -sess uses its first nonces") func session() throws {
    var spaces = CredentialSpaces()
    let first = try proof(#"Digest realm="r", nonce="n", qop=auth, algorithm=MD5-sess"#, ann)
    spaces.accepted(first, origin: origin, target: "/", nextNonce: "m")
    let match = try #require(spaces.matches(origin, target: "/").first)
    let next = spaces.ticket(match.number, origin: origin, cnonce: "c")
    let ticket = try #require(next)
    #expect(ticket.session == first.ticket?.session && ticket.cnonce == first.ticket?.cnonce)
  }

  @Test("A stale nonce is replaced") func staleNonce() throws {
    var spaces = CredentialSpaces()
    spaces.accepted(
      try proof(#"Digest realm="r", nonce="n", qop=auth"#, ann), origin: origin, target: "/", nextNonce: nil)
    spaces.accepted(
      try proof(#"Digest realm="r", nonce="m", qop=auth"#, ann), origin: origin, target: "/", nextNonce: nil)
    #expect(spaces.count == 1)
    let match = try #require(spaces.matches(origin, target: "/").first)
    #expect(spaces.ticket(match.number, origin: origin, cnonce: "c")?.nonce == "m")
  }

  @Test("The narrowest space is first") func narrowestFirst() throws {
    var spaces = CredentialSpaces()
    let bob = PasswordCredential(user: "bob", password: "2")
    spaces.accepted(try proof(#"Basic realm="inner""#, bob), origin: origin, target: "/a/b/x", nextNonce: nil)
    spaces.accepted(try proof(#"Basic realm="outer""#, ann), origin: origin, target: "/x", nextNonce: nil)
    #expect(spaces.matches(origin, target: "/a/b/y").map(\.realm) == ["inner", "outer"])
    #expect(spaces.matches(origin, target: "/a/y").map(\.realm) == ["outer"])
  }

  @Test("A rejected credential is forgotten") func rejected() throws {
    var spaces = CredentialSpaces()
    let basic = try proof(#"Basic realm="r""#, ann)
    spaces.accepted(basic, origin: origin, target: "/", nextNonce: nil)
    spaces.refused(basic, origin: origin)
    #expect(spaces.count == 0 && spaces.matches(origin, target: "/").isEmpty)
  }

  @Test("The number of spaces is limited") func limit() throws {
    var spaces = CredentialSpaces(limit: 8)
    for number in 0..<1000 {
      let origin = Origin(scheme: "http", host: "\(number % 40).test", port: 80)
      let credential = PasswordCredential(user: "\(number)", password: "")
      spaces.accepted(try proof(#"Basic realm="r""#, credential), origin: origin, target: "/", nextNonce: nil)
      #expect(spaces.count <= 8)
      #expect(spaces.matches(origin, target: "/").contains { $0.credential == credential })
    }
  }

  @Test("An answer to a challenge goes on with the count of its nonce") func repeatedNonce() throws {
    let memory = CredentialMemory()
    let first = try proof(#"Digest realm="r", nonce="n", qop=auth, domain="/a""#, ann)
    let other = try proof(#"Digest realm="q", nonce="n", qop=auth"#, ann)
    let challenge = try #require(other.digest)
    #expect(memory.ticket(answering: challenge, origin: origin).count == 1)
    memory.accepted(first, origin: origin, target: "/a", nextNonce: nil)
    let match = try #require(memory.matches(origin, target: "/a").first)
    #expect(memory.ticket(match, origin: origin)?.count == 2)
    let ticket = memory.ticket(answering: challenge, origin: origin)
    #expect(ticket.count == 3 && ticket.nonce == "n" && ticket.session.cnonce == ticket.cnonce)
    #expect(memory.ticket(match, origin: origin)?.count == 4)
    #expect(
      memory.ticket(answering: challenge, origin: Origin(scheme: "http", host: "b", port: 80)).count == 1)
    let fresh = try #require(try proof(#"Digest realm="q", nonce="m", qop=auth"#, ann).digest)
    #expect(memory.ticket(answering: fresh, origin: origin).count == 1)
  }

  @Test("Threads share one count") func threads() async throws {
    let memory = CredentialMemory()
    #expect(memory.isEmpty)
    memory.accepted(
      try proof(#"Digest realm="r", nonce="n", qop=auth"#, ann), origin: origin, target: "/", nextNonce: nil)
    let match = try #require(memory.matches(origin, target: "/").first)
    let counts = await withTaskGroup { group in
      for _ in 0..<200 { group.addTask { memory.ticket(match, origin: origin)?.count } }
      return await group.reduce(into: Set<UInt32>()) { if let count = $1 { $0.insert(count) } }
    }
    #expect(counts == Set(2...201))
  }

  @Test(
    "Targets",
    arguments: [
      ("http://a.test", "/"), ("http://a.test/", "/"), ("http://a.test?x=1", "/?x=1"),
      ("http://a.test/p?q#f", "/p?q"),
      ("https://[::1]:8/p", "/p"), ("http://a.test#f", "/"), ("nothing", "/"),
    ])
  func targets(url: String, target: String) {
    #expect(ProtectionDomain.target(of: url) == target)
  }
}
