import HTTPWire
import Testing

@Suite("Challenges that a request has answered")
struct AuthenticationTrailTests {
  private let ann = PasswordCredential(user: "ann", password: "1")
  private let bob = PasswordCredential(user: "bob", password: "2")

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

  @Test("A credential is tried once") func oneAttempt() throws {
    let basic = try offer(#"Basic realm="r""#)
    var trail = AuthenticationTrail()
    #expect(trail.mayAnswer(basic, with: ann) && trail.failureCount(for: basic) == 0)
    trail.brings(proof(basic, ann))
    #expect(!trail.mayAnswer(basic, with: ann) && trail.failureCount(for: basic) == 1)
    #expect(trail.mayAnswer(basic, with: bob))
    trail.brings(proof(basic, bob))
    #expect(!trail.mayAnswer(basic, with: ann) && !trail.mayAnswer(basic, with: bob))
    #expect(trail.failureCount(for: basic) == 2)
    #expect(trail.mayAnswer(try offer(#"Basic realm="other""#), with: ann))
  }

  @Test("A rejected password is not sent by Basic") func noFallbackToBasic() throws {
    var trail = AuthenticationTrail()
    trail.brings(proof(try offer(#"Digest realm="r", nonce="1""#), ann))
    #expect(!trail.mayAnswer(try offer(#"Basic realm="r""#), with: ann))
    #expect(!trail.mayAnswer(try offer(#"Digest realm="r", nonce="2""#), with: ann))
  }

  @Test("A stale nonce is answered a limited number of times") func staleNonce() throws {
    var trail = AuthenticationTrail()
    trail.brings(proof(try offer(#"Digest realm="r", nonce="0""#), ann))
    var count = 0
    for nonce in 1...100 {
      let stale = try offer(#"Digest realm="r", stale=true, nonce="\#(nonce)""#)
      guard trail.mayAnswer(stale, with: ann) else { break }
      count += 1
      trail.brings(proof(stale, ann))
    }
    #expect(count == 4)
  }

  @Test("A repeated nonce is not stale") func repeatedNonce() throws {
    var trail = AuthenticationTrail()
    trail.brings(proof(try offer(#"Digest realm="r", nonce="0""#), ann))
    #expect(!trail.mayAnswer(try offer(#"Digest realm="r", stale=true, nonce="0""#), with: ann))
  }

  @Test("A nonce of an earlier request can be stale without stale=true") func expiredNonce() throws {
    var trail = AuthenticationTrail()
    trail.brings(proof(try offer(#"Digest realm="r", nonce="0""#), ann, isAnswer: false))
    let fresh = try offer(#"Digest realm="r", nonce="1""#)
    #expect(trail.mayAnswer(fresh, with: ann) && trail.failureCount(for: fresh) == 0)
    trail.brings(proof(fresh, ann))
    #expect(!trail.mayAnswer(try offer(#"Digest realm="r", nonce="2""#), with: ann))
  }

  @Test("A preemptive credential can be answered in another scheme") func otherScheme() throws {
    var trail = AuthenticationTrail()
    trail.brings(
      AuthenticationProof(
        scheme: .basic, realm: nil, credential: ann, source: .request, field: "x", isAnswer: false))
    #expect(!trail.mayAnswer(try offer(#"Basic realm="r""#), with: ann))
    #expect(trail.mayAnswer(try offer(#"Digest realm="r", nonce="1""#), with: ann))
    #expect(trail.mayAnswer(try offer(#"Basic realm="r""#), with: bob))
  }

  @Test("Each login of a connection is tried once, and then another scheme") func refusedLogins() throws {
    let (negotiate, ntlm) = (try offer("Negotiate"), try offer("NTLM"))
    let basic = try offer(#"Basic realm="r""#)
    var trail = AuthenticationTrail()
    trail.brings(proof(negotiate, ann))
    #expect(!trail.mayAnswer(negotiate, with: ann) && trail.failureCount(for: negotiate) == 1)
    #expect(trail.mayAnswer(ntlm, with: ann) && trail.mayAnswer(basic, with: ann))
    trail.brings(proof(ntlm, ann))
    #expect(!trail.mayAnswer(negotiate, with: ann) && !trail.mayAnswer(ntlm, with: ann))
    #expect(trail.mayAnswer(basic, with: ann) && trail.failureCount(for: basic) == 0)
    trail.brings(proof(basic, ann))
    for offer in [negotiate, ntlm, basic] { #expect(!trail.mayAnswer(offer, with: ann)) }
    #expect(trail.mayAnswer(negotiate, with: bob), "another user may have a ticket")
  }

  @Test("A refused login does not count as a stale nonce") func loginBeforeDigest() throws {
    var trail = AuthenticationTrail()
    trail.brings(proof(try offer("Negotiate"), ann))
    trail.brings(proof(try offer(#"Digest realm="r", nonce="0""#), ann))
    for nonce in 1...4 {
      let stale = try offer(#"Digest realm="r", stale=true, nonce="\#(nonce)""#)
      #expect(trail.mayAnswer(stale, with: ann), "\(nonce)")
      trail.brings(proof(stale, ann))
    }
    #expect(!trail.mayAnswer(try offer(#"Digest realm="r", stale=true, nonce="5""#), with: ann))
  }

  /// Checks that a request ends after any sequence of challenges.
  @Test("Every request ends") func end() throws {
    var trail = AuthenticationTrail()
    var count = 0
    for number in 0..<10_000 {
      let field = [
        #"Basic realm="\#(number)""#, #"Digest realm="r", nonce="\#(number)", stale=true"#, "NTLM",
      ][number % 3]
      guard trail.mayAnswer(try offer(field), with: ann) else { continue }
      count += 1
      trail.brings(proof(try offer(field), ann))
      if number % 7 == 0 { trail.moved() }
    }
    #expect(count <= 64)
  }
}
