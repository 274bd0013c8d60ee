import HTTPWire
import Testing

@Suite("Where credentials have been good")
struct CredentialSpacesTests {
  private let home = Origin(scheme: "http", host: "a.test", port: 80)
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
    "Basic is good below its folder (RFC 7617 §2.2)",
    arguments: [
      ("/a/b", true), ("/a/", true), ("/a/b/c?x", true), ("/a", false), ("/", false), ("/ab", false),
    ])
  func depth(target: String, isGood: Bool) throws {
    var spaces = CredentialSpaces()
    spaces.accepted(try proof(#"Basic realm="r""#, ann), origin: home, target: "/a/x?y=/z/", nextNonce: nil)
    #expect(spaces.matches(home, target: target).isEmpty == !isGood)
  }

  @Test(
    "Digest is good where its domain says (RFC 7616 §3.3)",
    arguments: [
      ("", "/anything", true), ("/a /b/", "/a", true), ("/a /b/", "/b", false), ("/a /b/", "/b/c", true),
      ("http://a.test/x", "/x?y", true), ("http://a.test", "/z", true), ("http://b.test/", "/", false),
      ("//b.test/", "/", false), ("https://a.test/", "/", false),
    ])
  func domain(domain: String, target: String, isGood: Bool) throws {
    var spaces = CredentialSpaces()
    spaces.accepted(
      try proof(#"Digest realm="r", nonce="n", qop=auth, domain="\#(domain)""#, ann), origin: home,
      target: "/q",
      nextNonce: nil)
    #expect(spaces.matches(home, target: target).isEmpty == !isGood)
  }

  @Test func otherOriginsKnowNothing() throws {
    var spaces = CredentialSpaces()
    spaces.accepted(try proof(#"Basic realm="r""#, ann), origin: home, target: "/", nextNonce: nil)
    for other in [("https", "a.test", 80), ("http", "b.test", 80), ("http", "a.test", 81)] {
      #expect(spaces.matches(Origin(scheme: other.0, host: other.1, port: other.2), target: "/").isEmpty)
    }
  }

  @Test func noncesAreCounted() throws {
    var spaces = CredentialSpaces()
    let first = try proof(#"Digest realm="r", nonce="n", qop=auth"#, ann)
    spaces.accepted(first, origin: home, target: "/", nextNonce: nil)
    let match = try #require(spaces.matches(home, target: "/").first)
    let counts = (0..<3).map { _ in spaces.ticket(match.number, origin: home, cnonce: "c")?.countText }
    #expect(counts == ["00000002", "00000003", "00000004"])
  }

  @Test func theNextNonceBeginsAnew() throws {
    var spaces = CredentialSpaces()
    spaces.accepted(
      try proof(#"Digest realm="r", nonce="n", qop=auth"#, ann), origin: home, target: "/", nextNonce: "m")
    let match = try #require(spaces.matches(home, target: "/").first)
    let next = spaces.ticket(match.number, origin: home, cnonce: "c")
    let ticket = try #require(next)
    #expect(ticket.nonce == "m" && ticket.count == 1 && ticket.cnonce == "c")
  }

  @Test func aSessionKeepsWhatItBeganWith() throws {
    var spaces = CredentialSpaces()
    let first = try proof(#"Digest realm="r", nonce="n", qop=auth, algorithm=MD5-sess"#, ann)
    spaces.accepted(first, origin: home, target: "/", nextNonce: "m")
    let match = try #require(spaces.matches(home, target: "/").first)
    let next = spaces.ticket(match.number, origin: home, cnonce: "c")
    let ticket = try #require(next)
    #expect(ticket.session == first.ticket?.session && ticket.cnonce == first.ticket?.cnonce)
  }

  @Test func aStaleNonceIsReplaced() throws {
    var spaces = CredentialSpaces()
    spaces.accepted(
      try proof(#"Digest realm="r", nonce="n", qop=auth"#, ann), origin: home, target: "/", nextNonce: nil)
    spaces.accepted(
      try proof(#"Digest realm="r", nonce="m", qop=auth"#, ann), origin: home, target: "/", nextNonce: nil)
    #expect(spaces.count == 1)
    let match = try #require(spaces.matches(home, target: "/").first)
    #expect(spaces.ticket(match.number, origin: home, cnonce: "c")?.nonce == "m")
  }

  @Test func theNarrowestGoesFirst() throws {
    var spaces = CredentialSpaces()
    let bob = PasswordCredential(user: "bob", password: "2")
    spaces.accepted(try proof(#"Basic realm="inner""#, bob), origin: home, target: "/a/b/x", nextNonce: nil)
    spaces.accepted(try proof(#"Basic realm="outer""#, ann), origin: home, target: "/x", nextNonce: nil)
    #expect(spaces.matches(home, target: "/a/b/y").map(\.realm) == ["inner", "outer"])
    #expect(spaces.matches(home, target: "/a/y").map(\.realm) == ["outer"])
  }

  @Test func whatIsRefusedIsForgotten() throws {
    var spaces = CredentialSpaces()
    let basic = try proof(#"Basic realm="r""#, ann)
    spaces.accepted(basic, origin: home, target: "/", nextNonce: nil)
    spaces.refused(basic, origin: home)
    #expect(spaces.count == 0 && spaces.matches(home, target: "/").isEmpty)
  }

  @Test func theMemoryIsBounded() throws {
    var spaces = CredentialSpaces(limit: 8)
    for number in 0..<1000 {
      let origin = Origin(scheme: "http", host: "\(number % 40).test", port: 80)
      let credential = PasswordCredential(user: "\(number)", password: "")
      spaces.accepted(try proof(#"Basic realm="r""#, credential), origin: origin, target: "/", nextNonce: nil)
      #expect(spaces.count <= 8)
      #expect(spaces.matches(origin, target: "/").contains { $0.credential == credential })
    }
  }

  @Test func threadsShareOneCount() async throws {
    let memory = CredentialMemory()
    #expect(memory.isEmpty)
    memory.accepted(
      try proof(#"Digest realm="r", nonce="n", qop=auth"#, ann), origin: home, target: "/", nextNonce: nil)
    let match = try #require(memory.matches(home, target: "/").first)
    let counts = await withTaskGroup { group in
      for _ in 0..<200 { group.addTask { memory.ticket(match, origin: home)?.count } }
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
