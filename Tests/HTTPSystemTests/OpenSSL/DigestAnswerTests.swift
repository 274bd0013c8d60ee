import FoundationEssentials
import HTTPSystem
import HTTPWire
import Testing

@Suite("Answers to Digest challenges")
struct DigestAnswerTests {
  private let hashes = OpenSSLHashes()
  private let mufasa = PasswordCredential(user: "Mufasa", password: "Circle of Life")

  private func challenge(_ field: String) throws -> DigestChallenge {
    try #require(Challenge.all(in: [field]).first.flatMap { DigestChallenge($0) })
  }

  private func parameters(_ field: String?) throws -> [String: String] {
    let answer = try #require(Challenge.all(in: [field ?? ""]).first)
    #expect(answer.scheme == "digest")
    return Dictionary(uniqueKeysWithValues: answer.parameters.map { ($0.name, $0.value) })
  }

  @Test(
    "The examples of RFC 7616 §3.9.1",
    arguments: [
      ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
      ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
    ])
  func examples(algorithm: String, response: String) throws {
    let challenge = try challenge(
      """
      Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=\(algorithm), \
      nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"
      """)
    let ticket = DigestTicket(
      nonce: challenge.nonce, cnonce: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ", count: 1)
    var answer = DigestAnswer(
      challenge: challenge, credential: mufasa, ticket: ticket, method: "GET", target: "/dir/index.html",
      quality: .auth)
    let field = answer.field(with: hashes)
    #expect(
      field == """
        Digest username="Mufasa", realm="http-auth@example.org", uri="/dir/index.html", algorithm=\(algorithm), \
        nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", nc=00000001, \
        cnonce="f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ", qop=auth, response="\(response)", \
        opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"
        """)
  }

  /// Compares with values that Python computes with SHA-512/256 proper. The RFC's own values come from a truncated
  /// SHA-512.
  @Test("The example of RFC 7616 with a hashed name is computed") func hashedName() throws {
    let challenge = try challenge(
      """
      Digest realm="api@example.org", qop="auth", algorithm=SHA-512-256, \
      nonce="5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK", \
      opaque="HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS", charset=UTF-8, userhash=true
      """)
    var answer = DigestAnswer(
      challenge: challenge, credential: PasswordCredential(user: "Jäsøn Doe", password: "Secret, or not?"),
      ticket: DigestTicket(nonce: challenge.nonce, cnonce: "NTg6RKcb9boFIAS3KrFK9BGeh+niz/sm", count: 1),
      method: "GET", target: "/doe.json", quality: .auth)
    let values = try parameters(answer.field(with: hashes))
    #expect(values["username"] == "793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b")
    #expect(values["userhash"] == "true")
    #expect(values["response"] == "7a4e1192babbba02e91182d2895bfdbf7adafc6e48d4e517ca301974843d840c")
  }

  @Test("The example of RFC 2617 is computed") func rfc2617() throws {
    let challenge = try challenge(
      #"Digest realm="testrealm@host.com", qop="auth,auth-int", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093""#)
    var answer = DigestAnswer(
      challenge: challenge, credential: PasswordCredential(user: "Mufasa", password: "Circle Of Life"),
      ticket: DigestTicket(nonce: challenge.nonce, cnonce: "0a4f113b", count: 1), method: "GET",
      target: "/dir/index.html", quality: .auth)
    let values = try parameters(answer.field(with: hashes))
    #expect(values["response"] == "6629fae49393a05397450978507c4ef1")
    #expect(values["algorithm"] == nil, "what the server did not name is not named to it")
  }

  /// Compares with the value of the erratum 749 to RFC 2069.
  @Test("A challenge without a quality is answered") func noQuality() throws {
    let challenge = try challenge(
      #"Digest realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093""#)
    var answer = DigestAnswer(
      challenge: challenge, credential: PasswordCredential(user: "Mufasa", password: "CircleOfLife"),
      ticket: .first(for: challenge), method: "GET", target: "/dir/index.html", quality: nil)
    let values = try parameters(answer.field(with: hashes))
    #expect(values["response"] == "1949323746fe6a43ef61f9606e7febea")
    #expect(values["cnonce"] == nil && values["nc"] == nil && values["qop"] == nil)
  }

  @Test(
    "Sessions and signed bodies; the numbers are Python's",
    arguments: [
      ("MD5-sess", "18c9f64df361baecebab9f5036ab8a84"),
      ("SHA-256-sess", "a2eaaf376a5defa28746d41bfe762fa350de76988cb07fc5253f9c1c12156e13"),
      ("SHA-512-256-sess", "989d7316dd67b457e029cb3be6c59e6784dd1187c1479e94fa164a50f83e54fb"),
    ])
  func sessions(algorithm: String, response: String) throws {
    let challenge = try challenge(
      """
      Digest realm="http-auth@example.org", qop="auth-int", algorithm=\(algorithm), \
      nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v"
      """)
    let ticket = DigestTicket(
      nonce: challenge.nonce, cnonce: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ", count: 2)
    var answer = DigestAnswer(
      challenge: challenge, credential: mufasa, ticket: ticket, method: "POST", target: "/dir/index.html",
      quality: .authInt)
    let bodyHash = hashes.text(challenge.algorithm, of: .bytes(Data("v=1".utf8)))
    #expect(try parameters(answer.field(with: hashes, bodyHash: bodyHash))["response"] == response)
    #expect(answer.field(with: hashes) == nil, "without the hash of the body, no answer is computed")
  }

  @Test(
    "A session keeps its first nonce when the server names a next one; the numbers are Python's",
    arguments: [
      ("MD5-sess", "024890dca8a922796bd6a8324bc748c2"),
      ("SHA-256-sess", "7cd72319fac9ebd5e69582b8298e4769d9f4c1633c2e2d06b914a9d3ca5a8e78"),
    ])
  func nextNonce(algorithm: String, response: String) throws {
    let challenge = try challenge(
      """
      Digest realm="http-auth@example.org", qop="auth", algorithm=\(algorithm), \
      nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v"
      """)
    let cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"
    let first = DigestTicket(nonce: challenge.nonce, cnonce: cnonce, count: 1)
    var answer = DigestAnswer(
      challenge: challenge, credential: mufasa,
      ticket: DigestTicket(nonce: "next", cnonce: cnonce, count: 1, session: first.session), method: "GET",
      target: "/dir/index.html", quality: .auth)
    #expect(try parameters(answer.field(with: hashes))["response"] == response)
  }

  @Test(
    "Later answers know the secret of the first one, and are the same as without it",
    arguments: ["", "-sess"])
  func secret(suffix: String) throws {
    let challenge = try challenge(#"Digest realm="r", qop="auth", nonce="n", algorithm=SHA-256\#(suffix)"#)
    let origin = Origin(scheme: "http", host: "a.test", port: 80)
    var first = DigestAnswer(
      challenge: challenge, credential: mufasa, ticket: .first(for: challenge), method: "GET", target: "/",
      quality: .auth)
    let field = first.field(with: hashes)
    let proof = AuthenticationProof(
      scheme: .digest, realm: "r", credential: mufasa, source: .session, field: field, digest: challenge,
      ticket: first.ticket, isAnswer: true)
    var spaces = CredentialSpaces()
    spaces.accepted(proof, origin: origin, target: "/", nextNonce: "next")
    let match = try #require(spaces.matches(origin, target: "/b").first)
    let nextTicket = spaces.ticket(match.number, origin: origin, cnonce: "c")
    let ticket = try #require(nextTicket)
    #expect(ticket.secret != nil)
    #expect(ticket.next?.secret == ticket.secret)
    let hash = try #require(ticket.secret).hash
    #expect(!"\(ticket) \(String(reflecting: ticket))".contains(hash))
    var known = first
    known.ticket = ticket
    var unknown = first
    unknown.ticket = DigestTicket(
      nonce: ticket.nonce, cnonce: ticket.cnonce, count: ticket.count, session: ticket.session)
    let fields = (known.field(with: hashes), unknown.field(with: hashes))
    #expect(fields.0 != nil && fields.0 == fields.1)
  }

  @Test(
    "Names",
    arguments: [
      (#"a"b\c"#, "", #"username="a\"b\\c""#),
      ("Jäsøn", ", charset=UTF-8", "username*=UTF-8''J%C3%A4s%C3%B8n"),
      ("Jäsøn", "", "username=\"Jäsøn\""), ("plain", ", charset=UTF-8", "username=\"plain\""),
    ])
  func names(user: String, charset: String, parameter: String) throws {
    let challenge = try challenge(#"Digest realm="r", qop="auth", nonce="n""# + charset)
    var answer = DigestAnswer(
      challenge: challenge, credential: PasswordCredential(user: user, password: "p"),
      ticket: .first(for: challenge), method: "GET", target: "/", quality: .auth)
    let field = answer.field(with: hashes)
    #expect(field?.hasPrefix("Digest " + parameter) == true)
  }

  @Test("A line break in a name is refused") func lineBreak() throws {
    let challenge = try challenge(#"Digest realm="r", qop="auth", nonce="n""#)
    var answer = DigestAnswer(
      challenge: challenge, credential: PasswordCredential(user: "a\r\nX-Evil: 1", password: "p"),
      ticket: .first(for: challenge), method: "GET", target: "/", quality: .auth)
    #expect(answer.field(with: hashes) == nil)
  }

  @Test("A file is hashed like its bytes") func file() throws {
    let folder = try TemporaryFolder()
    let bytes = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
    let path = folder.path + "/body"
    try bytes.write(to: URL(fileURLWithPath: path))
    let source = try FileSource(path: path)
    for algorithm in DigestChallenge.Algorithm.allCases {
      let expected = hashes.text(algorithm, Array(bytes))
      #expect(hashes.text(algorithm, of: .source(source)) == expected)
      #expect(hashes.text(algorithm, of: .bytes(bytes)) == expected)
    }
  }
}
