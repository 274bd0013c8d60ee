import HTTPWire
import Testing

@Suite("Parsing of challenges (RFC 9110 §11)")
struct ChallengeParserTests {
  private func all(_ fields: String...) -> [Challenge] { Challenge.all(in: fields) }

  private func challenge(_ scheme: String, _ parameters: [(String, String)] = [], token: String? = nil)
    -> Challenge
  {
    Challenge(
      scheme: scheme, token: token,
      parameters: parameters.map { Challenge.Parameter(name: $0.0, value: $0.1) })
  }

  @Test("One field has several challenges") func severalChallenges() {
    // The example of RFC 9110 §11.6.1.
    #expect(
      all(#"Basic realm="simple", Newauth realm="apps", type=1, title="Login to \"apps\"""#) == [
        challenge("basic", [("realm", "simple")]),
        challenge("newauth", [("realm", "apps"), ("type", "1"), ("title", #"Login to "apps""#)]),
      ])
    #expect(
      all(#"Newauth realm="apps", type=1, title="x", Basic realm="simple""#).map(\.scheme) == [
        "newauth", "basic",
      ])
  }

  @Test("Several fields have challenges") func severalFields() {
    #expect(all("Negotiate", "NTLM", #"Basic realm="x""#).map(\.scheme) == ["negotiate", "ntlm", "basic"])
    #expect(all("Negotiate, NTLM").map(\.scheme) == ["negotiate", "ntlm"])
  }

  @Test("An invalid field does not hide the next one") func invalidField() {
    #expect(all(#"Digest realm="never closed"#, #"Basic realm="x""#).map(\.scheme) == ["digest", "basic"])
  }

  @Test(
    "Tokens",
    arguments: [
      ("NTLM TlRMTVNTUAAC==", "TlRMTVNTUAAC=="), ("Negotiate abc", "abc"), ("X a=", "a="),
      ("X a-._~+/b==,", "a-._~+/b=="),
    ])
  func tokens(field: String, token: String) {
    #expect(all(field).first?.token == token)
    #expect(all(field).first?.parameters == [])
  }

  @Test("A token is followed by other challenges") func token() {
    #expect(
      all(#"Negotiate YII=, Basic realm="a, b""#) == [
        challenge("negotiate", token: "YII="), challenge("basic", [("realm", "a, b")]),
      ])
  }

  @Test(
    "Forms",
    arguments: [
      #"Basic realm="x""#, #"basic REALM="x""#, #"BASIC realm = "x""#, "Basic\trealm=\"x\"",
      #"Basic realm=x"#,
      #" , ,Basic realm="x",,"#, #"Basic realm="\x""#, #"Basic , realm="x""#,
    ])
  func forms(field: String) {
    #expect(all(field) == [challenge("basic", [("realm", "x")])])
  }

  @Test("Spaces between parameters are accepted") func spaces() {
    #expect(
      all(#"Digest realm="a" nonce="b", qop=auth"#)
        == [challenge("digest", [("realm", "a"), ("nonce", "b"), ("qop", "auth")])])
  }

  @Test("The first of equal parameters is used") func equalParameters() {
    #expect(all(#"Basic realm="a", realm="b""#).first?.realm == "a")
  }

  @Test("Garbage", arguments: ["", ",", " ,\t, ", "\"", "=", "=x", "\"Basic\"=", "a=b", "@@@"])
  func garbage(field: String) {
    #expect(all(field).allSatisfy { $0.scheme != "basic" })
    #expect(all(field + ", Basic realm=\"x\"").last.map { $0.scheme } != nil)
  }

  @Test("Characters beyond ASCII are preserved") func otherAlphabets() {
    #expect(all("Basic realm=\"Zürich ✓\"").first?.realm == "Zürich ✓")
  }

  @Test("The number of challenges is limited") func limit() {
    #expect(all(String(repeating: "Basic,", count: 10_000)).count == 32)
  }

  @Test("Authentication-Info is parsed") func authenticationInfo() {
    #expect(AuthenticationInfo([#"qop=auth, nextnonce="next", rspauth="x""#]).nextNonce == "next")
    #expect(AuthenticationInfo([#"nextnonce="""#]).nextNonce == nil)
    #expect(AuthenticationInfo([]).nextNonce == nil)
    for character in ["\r", "\u{1}", "\u{7F}"] {
      #expect(AuthenticationInfo(["nextnonce=\"a\(character)b\""]).nextNonce == nil)
    }
  }

  /// Parses 100,000 deterministic inputs: half of them are random bytes, half are random tokens of the grammar.
  @Test("Any bytes are parsed") func anyBytes() {
    var state: UInt64 = 0x9E37_79B9_7F4A_7C15
    func random(_ limit: Int) -> Int {
      state ^= state << 13
      state ^= state >> 7
      state ^= state << 17
      return Int(state % UInt64(limit))
    }
    let pieces = [
      "Basic", "Digest", "NTLM", " ", ",", "=", "\"", "\\", "realm", "nonce", "qop", "auth,auth-int", "\t",
      "==",
      "algorithm=SHA-256-sess", "é", "domain=\"/a /b\"", "stale=true", "userhash", ";", "machine", "login",
      "#", "\n",
    ]
    var found = 0
    var violations = 0
    for _ in 0..<50_000 {
      let bytes = (0..<random(60)).map { _ in UInt8(random(256)) }
      let words = (0..<random(14)).map { _ in pieces[random(pieces.count)] }.joined()
      for text in [String(decoding: bytes, as: UTF8.self), words] {
        let challenges = Challenge.all(in: [text])
        found += AuthenticationOffer.ranked(challenges, connectionSchemes: [.ntlm, .negotiate]).count
        if challenges.contains(where: { $0.scheme.isEmpty || $0.scheme != $0.scheme.lowercased() }) {
          violations += 1
        }
        for digest in challenges.compactMap({ DigestChallenge($0) }) {
          _ = ProtectionDomain.ofDigest(
            digest.domain, origin: Origin(scheme: "http", host: "a.test", port: 80))
        }
        _ = AuthenticationInfo([text])
        _ = Netrc(text).credential(host: "a")
        _ = ProxyServer(text, bypass: [])
        _ = ProxyBypass(ProxyBypass.words(text)).covers(Origin(scheme: "http", host: text, port: 80))
      }
    }
    #expect(found > 1000 && violations == 0)
  }
}
