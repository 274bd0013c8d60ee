import HTTPWire
import Testing

@Suite("Challenges that a request has answered")
struct AuthenticationHistoryTests {
  private let ann = PasswordCredential(user: "ann", password: "1")
  private let bob = PasswordCredential(user: "bob", password: "2")
  private let server = Origin(scheme: "http", host: "proxy.test", port: 8080)

  private func offer(_ field: String) throws -> AuthenticationOffer {
    try #require(
      AuthenticationOffer.ranked(Challenge.all(in: [field]), connectionSchemes: [.ntlm, .negotiate]).first)
  }

  private func proof(
    _ offer: AuthenticationOffer, _ credential: PasswordCredential, isAnswer: Bool = true
  ) -> AuthenticationProof {
    AuthenticationProof(
      scheme: offer.scheme, realm: offer.realm, credential: credential, source: .request, field: "x",
      digest: offer.digest, ticket: offer.digest.map { DigestTicket.first(for: $0) }, isAnswer: isAnswer)
  }

  @Test("No two requests share a count of a nonce, whatever the order of their ends") func sharedProof() {
    func proof(_ nonce: String, _ count: UInt32, isAnswer: Bool) -> AuthenticationProof {
      AuthenticationProof(
        scheme: .digest, realm: "r", credential: PasswordCredential(user: "ann", password: "s"),
        source: .request,
        field: "x", ticket: DigestTicket(nonce: nonce, cnonce: "c", count: count), isAnswer: isAnswer)
    }
    var shared = SharedProof()
    #expect(shared.take() == nil)
    shared.keep(proof("1", 1, isAnswer: true), from: server, NonceCounts())
    #expect(shared.take()?.ticket?.count == 1)
    #expect(shared.take()?.ticket?.count == 2)
    shared.keep(proof("1", 2, isAnswer: false), from: server, NonceCounts())
    #expect(shared.take()?.ticket?.count == 3)
    shared.keep(proof("2", 1, isAnswer: true), from: server, NonceCounts())
    shared.keep(proof("1", 3, isAnswer: false), from: server, NonceCounts())
    #expect(shared.take()?.ticket?.nonce == "2")
    #expect(shared.take()?.ticket?.count == 2)
  }

  @Test("The count of a shared nonce never falls, not even by an answer to a challenge that repeats it")
  func repeatedSharedNonce() throws {
    let repeated = proof(try offer(#"Digest realm="r", nonce="1""#), ann)
    var (shared, counts) = (SharedProof(), NonceCounts())
    shared.keep(repeated, from: server, counts)
    for count: UInt32 in 1...3 { #expect(shared.take()?.ticket?.count == count) }
    shared.keep(repeated, from: server, counts)
    #expect(shared.take()?.ticket?.count == 4)
    let challenge = try #require(repeated.digest)
    #expect(
      shared.ticket(answering: challenge, from: server, &counts).count == 6,
      "the last one was taken with count 5")
    #expect(shared.take()?.ticket?.count == 6)
    let fresh = try #require(try offer(#"Digest realm="r", nonce="2""#).digest)
    #expect(shared.ticket(answering: fresh, from: server, &counts).count == 1)
  }

  @Test("A credential is tried once") func oneAttempt() throws {
    let basic = try offer(#"Basic realm="r""#)
    var history = AuthenticationHistory()
    #expect(history.mayAnswer(basic, with: ann) && history.failureCount(for: basic) == 0)
    history.recordSent(proof(basic, ann))
    #expect(!history.mayAnswer(basic, with: ann) && history.failureCount(for: basic) == 1)
    #expect(history.mayAnswer(basic, with: bob))
    history.recordSent(proof(basic, bob))
    #expect(!history.mayAnswer(basic, with: ann) && !history.mayAnswer(basic, with: bob))
    #expect(history.failureCount(for: basic) == 2)
    #expect(history.mayAnswer(try offer(#"Basic realm="other""#), with: ann))
  }

  @Test("Credentials that are equal as texts but not as bytes are two") func bytes() {
    let (composed, decomposed) = ("jos\u{E9}", "jose\u{301}")
    #expect(composed == decomposed)
    #expect(
      PasswordCredential(user: composed, password: "p") != PasswordCredential(user: decomposed, password: "p")
    )
    #expect(
      PasswordCredential(user: "p", password: composed) != PasswordCredential(user: "p", password: decomposed)
    )
    #expect(PasswordCredential(user: composed, password: "p") == .init(user: composed, password: "p"))
  }

  @Test("Realms and nonces that are equal as texts but not as bytes are two") func bytesOfChallenges() throws
  {
    func basic(_ realm: String) throws -> AuthenticationOffer { try offer(#"Basic realm="\#(realm)""#) }
    func digest(_ nonce: String) throws -> AuthenticationOffer {
      try offer(#"Digest realm="r", stale=true, nonce="\#(nonce)""#)
    }
    let (composed, decomposed) = ("\u{E9}", "e\u{301}")
    var history = AuthenticationHistory()
    history.recordSent(proof(try basic(composed), ann))
    #expect(try history.mayAnswer(basic(decomposed), with: ann), "another realm has refused it")
    history.recordSent(proof(try basic(composed), bob))
    #expect(try !history.mayAnswer(basic(composed), with: ann))
    #expect(try history.mayAnswer(basic(decomposed), with: ann), "another realm has refused it before")
    history = AuthenticationHistory()
    history.recordSent(proof(try digest(composed), ann))
    #expect(try !history.mayAnswer(digest(composed), with: ann))
    #expect(try history.mayAnswer(digest(decomposed), with: ann), "the nonce is new")
    var counts = NonceCounts()
    for nonce in [composed, decomposed] {
      let challenge = try #require(try digest(nonce).digest)
      #expect(counts.ticket(answering: challenge, from: server).count == 1)
    }
  }

  @Test("A rejected password is not sent by Basic") func noFallbackToBasic() throws {
    var history = AuthenticationHistory()
    history.recordSent(proof(try offer(#"Digest realm="r", nonce="1""#), ann))
    #expect(!history.mayAnswer(try offer(#"Basic realm="r""#), with: ann))
    #expect(!history.mayAnswer(try offer(#"Digest realm="r", nonce="2""#), with: ann))
  }

  @Test("A stale nonce is answered a limited number of times") func staleNonce() throws {
    var history = AuthenticationHistory()
    history.recordSent(proof(try offer(#"Digest realm="r", nonce="0""#), ann))
    var count = 0
    for nonce in 1...100 {
      let stale = try offer(#"Digest realm="r", stale=true, nonce="\#(nonce)""#)
      guard history.mayAnswer(stale, with: ann) else { break }
      count += 1
      history.recordSent(proof(stale, ann))
    }
    #expect(count == 4)
  }

  @Test("A repeated nonce is not stale") func repeatedNonce() throws {
    var history = AuthenticationHistory()
    history.recordSent(proof(try offer(#"Digest realm="r", nonce="0""#), ann))
    #expect(!history.mayAnswer(try offer(#"Digest realm="r", stale=true, nonce="0""#), with: ann))
  }

  @Test("A nonce of an earlier request can be stale without stale=true") func expiredNonce() throws {
    var history = AuthenticationHistory()
    history.recordSent(proof(try offer(#"Digest realm="r", nonce="0""#), ann, isAnswer: false))
    let fresh = try offer(#"Digest realm="r", nonce="1""#)
    #expect(history.mayAnswer(fresh, with: ann) && history.failureCount(for: fresh) == 0)
    history.recordSent(proof(fresh, ann))
    #expect(!history.mayAnswer(try offer(#"Digest realm="r", nonce="2""#), with: ann))
  }

  @Test("A preemptive credential can be answered in another scheme") func otherScheme() throws {
    var history = AuthenticationHistory()
    history.recordSent(
      AuthenticationProof(
        scheme: .basic, realm: nil, credential: ann, source: .request, field: "x", isAnswer: false))
    #expect(!history.mayAnswer(try offer(#"Basic realm="r""#), with: ann))
    #expect(history.mayAnswer(try offer(#"Digest realm="r", nonce="1""#), with: ann))
    #expect(history.mayAnswer(try offer(#"Basic realm="r""#), with: bob))
  }

  @Test("Each login of a connection is tried once, and then another scheme") func refusedLogins() throws {
    let (negotiate, ntlm) = (try offer("Negotiate"), try offer("NTLM"))
    let basic = try offer(#"Basic realm="r""#)
    var history = AuthenticationHistory()
    history.recordSent(proof(negotiate, ann))
    #expect(!history.mayAnswer(negotiate, with: ann) && history.failureCount(for: negotiate) == 1)
    #expect(history.mayAnswer(ntlm, with: ann) && history.mayAnswer(basic, with: ann))
    history.recordSent(proof(ntlm, ann))
    #expect(!history.mayAnswer(negotiate, with: ann) && !history.mayAnswer(ntlm, with: ann))
    #expect(history.mayAnswer(basic, with: ann) && history.failureCount(for: basic) == 0)
    history.recordSent(proof(basic, ann))
    for offer in [negotiate, ntlm, basic] { #expect(!history.mayAnswer(offer, with: ann)) }
    #expect(history.mayAnswer(negotiate, with: bob), "another user may have a ticket")
  }

  @Test("A refused login does not count as a stale nonce") func loginBeforeDigest() throws {
    var history = AuthenticationHistory()
    history.recordSent(proof(try offer("Negotiate"), ann))
    history.recordSent(proof(try offer(#"Digest realm="r", nonce="0""#), ann))
    for nonce in 1...4 {
      let stale = try offer(#"Digest realm="r", stale=true, nonce="\#(nonce)""#)
      #expect(history.mayAnswer(stale, with: ann), "\(nonce)")
      history.recordSent(proof(stale, ann))
    }
    #expect(!history.mayAnswer(try offer(#"Digest realm="r", stale=true, nonce="5""#), with: ann))
  }

  /// Checks that no sequence of challenges keeps a request running.
  @Test("Every request ends") func end() throws {
    var history = AuthenticationHistory()
    var count = 0
    for number in 0..<10_000 {
      let field = [
        #"Basic realm="\#(number)""#, #"Digest realm="r", nonce="\#(number)", stale=true"#, "NTLM",
      ][number % 3]
      guard history.mayAnswer(try offer(field), with: ann) else { continue }
      count += 1
      history.recordSent(proof(try offer(field), ann))
      if number % 7 == 0 { history.recordRedirect() }
    }
    #expect(count <= 64)
  }
}
