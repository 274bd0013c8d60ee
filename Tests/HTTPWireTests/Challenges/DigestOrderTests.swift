import HTTPWire
import Testing

/// Nonces of Digest when responses arrive in another order than their requests were sent.
@Suite("Order of Digest answers") struct DigestOrderTests {
  private let origin = Origin(scheme: "http", host: "a.test", port: 80)
  private let ann = PasswordCredential(user: "ann", password: "1")

  private func proof(
    _ nonce: String, algorithm: String = "MD5", ticket: DigestTicket? = nil, isAnswer: Bool = true
  ) throws -> AuthenticationProof {
    let field = #"Digest realm="r", nonce="\#(nonce)", qop=auth, algorithm=\#(algorithm)"#
    let offer = try #require(AuthenticationOffer.ranked(Challenge.all(in: [field])).first)
    return AuthenticationProof(
      scheme: offer.scheme, realm: offer.realm, credential: ann, source: .request, field: "x",
      digest: offer.digest, ticket: ticket ?? offer.digest.map { DigestTicket.first(for: $0) },
      isAnswer: isAnswer)
  }

  private func ticket(_ spaces: inout CredentialSpaces, cnonce: String = "c") throws -> DigestTicket {
    let match = try #require(spaces.matches(origin, target: "/").first)
    let ticket = spaces.ticket(match.number, origin: origin, cnonce: cnonce)
    return try #require(ticket)
  }

  private func accept(
    _ proof: AuthenticationProof, next: String? = nil, in spaces: inout CredentialSpaces
  ) {
    spaces.accepted(proof, origin: origin, target: "/", nextNonce: next)
  }

  @Test("A session of -sess continues over next nonces, each of which is counted from one")
  func session() throws {
    var spaces = CredentialSpaces()
    let first = try proof("n", algorithm: "SHA-256-sess")
    accept(first, next: "m", in: &spaces)
    for count in 1...2 {
      let ticket = try ticket(&spaces, cnonce: "other")
      #expect(ticket.nonce == "m" && ticket.count == count)
      #expect(ticket.session == first.ticket?.session && ticket.session.nonce == "n")
      #expect(ticket.cnonce == first.ticket?.cnonce)
    }
    let used = try ticket(&spaces)
    accept(
      try proof("n", algorithm: "SHA-256-sess", ticket: used, isAnswer: false), next: "o", in: &spaces)
    let last = try ticket(&spaces)
    #expect(last.nonce == "o" && last.count == 1 && last.session == first.ticket?.session)
  }

  @Test("Without `-sess`, each answer has a new client nonce") func clientNonce() throws {
    var spaces = CredentialSpaces()
    accept(try proof("n"), in: &spaces)
    #expect(try ticket(&spaces, cnonce: "c1").cnonce == "c1")
    #expect(try ticket(&spaces, cnonce: "c2").cnonce == "c2")
  }

  @Test("A count is not used twice, whatever the order of the responses") func counts() throws {
    var spaces = CredentialSpaces()
    accept(try proof("n"), in: &spaces)
    let second = try ticket(&spaces)
    let third = try ticket(&spaces)
    for used in [third, second] { accept(try proof("n", ticket: used, isAnswer: false), in: &spaces) }
    #expect(try ticket(&spaces).count == 4)
    // The answer to the first challenge arrives last.
    accept(try proof("n"), in: &spaces)
    #expect(try ticket(&spaces).count == 5)
  }

  @Test(
    "A late response does not restore a nonce that was replaced",
    arguments: ["MD5", "MD5-sess"])
  func lateResponse(algorithm: String) throws {
    var spaces = CredentialSpaces()
    accept(try proof("n", algorithm: algorithm), in: &spaces)
    let second = try ticket(&spaces)
    let third = try ticket(&spaces)
    accept(try proof("n", algorithm: algorithm, ticket: second, isAnswer: false), next: "m", in: &spaces)
    accept(try proof("n", algorithm: algorithm, ticket: third, isAnswer: false), in: &spaces)
    let next = try ticket(&spaces)
    #expect(next.nonce == "m" && next.count == 1)
    #expect(next.session.nonce == (algorithm == "MD5" ? second.session.nonce : "n"))
  }

  @Test("The answer to a new challenge starts a new session") func newSession() throws {
    var spaces = CredentialSpaces()
    accept(try proof("n", algorithm: "MD5-sess"), in: &spaces)
    let answer = try proof("p", algorithm: "MD5-sess")
    accept(answer, in: &spaces)
    let next = try ticket(&spaces)
    #expect(next.nonce == "p" && next.count == 2 && next.session == answer.ticket?.session)
  }

  @Test("Answers to one challenge have different counts, before and after the first is accepted")
  func countsOfAnswers() throws {
    var spaces = CredentialSpaces()
    let challenge = try #require(try proof("n").digest)
    let answers = (0..<3).map { _ in spaces.ticket(answering: challenge, origin: origin) }
    #expect(answers.map(\.count) == [1, 2, 3])
    accept(try proof("n", ticket: answers[0]), in: &spaces)
    #expect(try ticket(&spaces).count == 4)
    #expect(spaces.ticket(answering: challenge, origin: origin).count == 5)
    accept(try proof("n", ticket: answers[2]), in: &spaces)
    #expect(try ticket(&spaces).count == 6)
    let other = Origin(scheme: "http", host: "b.test", port: 80)
    #expect(spaces.ticket(answering: challenge, origin: other).count == 1)
  }

  @Test("The counts of nonces are bounded, and the first one is forgotten first") func boundedCounts()
    throws
  {
    var counts = NonceCounts(limit: 2)
    func next(_ nonce: String) throws -> UInt32 {
      counts.ticket(answering: try #require(try proof(nonce).digest), from: origin).count
    }
    #expect(try ["a", "b", "a", "c", "b", "c", "a"].map(next) == [1, 1, 2, 1, 2, 2, 1])
    #expect(["a", "b", "c"].map { counts.last(of: $0, from: origin) } == [1, 0, 2])
    let challenge = try #require(try proof("c").digest)
    #expect(counts.ticket(answering: challenge, from: origin, after: .max).count == 1)
  }
}
