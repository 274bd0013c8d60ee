import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@Suite("Attacks on credentials", .timeLimit(.minutes(5))) struct CredentialAttackTests {
  private func ask(
    _ fake: FakeTransport
  ) async -> AFDataResponse<Data?> {
    await Session.retained(fake: fake).request("http://a.test/").authenticate(
      username: "ann", password: "pass"
    )
    .end()
  }

  /// Responds as an origin server with the challenge of a proxy.
  @Test("A 407 of an origin server is not answered") func proxyChallengeOfServer() async {
    let fake = FakeTransport { _, _ in
      .status(
        407,
        headers: [
          ("Proxy-Authenticate", #"Basic realm="r""#), ("WWW-Authenticate", #"Basic realm="r""#),
        ])
    }
    let response = await ask(fake)
    #expect(response.response?.statusCode == 407)
    #expect(fake.requests.count == 1)
  }

  /// Each challenge has another realm, scheme or nonce.
  @Test(
    "A server that challenges forever is given up",
    arguments: [
      #"Basic realm="%""#, #"Digest realm="%", nonce="%""#, #"Digest realm="%", nonce="%", stale=true"#,
      #"Digest realm="%", nonce="%", Basic realm="b%""#, #"Basic realm="%", Basic realm="b%""#,
      #"Digest realm="r", nonce="%", stale=true, Digest realm="q", nonce="%", algorithm=SHA-256, stale=true"#,
    ])
  func endlessChallenges(challenge: String) async {
    let fake = FakeTransport { _, count in .challenge(challenge.replacing("%", with: "\(count)")) }
    let response = await ask(fake)
    #expect(response.response?.statusCode == 401)
    #expect(fake.requests.count <= 12, "\(fake.requests.count)")
  }

  @Test(
    "A challenge with invalid parameters is not answered",
    arguments: [
      "nonce=\"a\u{1}b\"", "nonce=\"\u{7F}\"", "nonce=\"n\", opaque=\"\u{2}\"",
      "nonce=\"n\", qop=\"auth-conf\"",
      "nonce=\"n\", algorithm=MD6", "nonce=\"n\", algorithm=\"MD5\", qop=\"\u{3000}\"", "nonce=\"\"", "",
    ])
  func invalidChallenges(parameters: String) async {
    let fake = FakeTransport { _, _ in .challenge("Digest realm=\"r\", \(parameters)") }
    let response = await ask(fake)
    #expect(response.response?.statusCode == 401)
    #expect(fake.requests.count == 1)
  }

  @Test("An invalid nextnonce is not sent back") func invalidNextNonce() async {
    let fake = FakeTransport { request, _ in
      guard request.value("Authorization") != nil else {
        return .challenge(#"Digest realm="r", nonce="n", qop="auth""#)
      }
      return .status(
        200, headers: [("Authentication-Info", "nextnonce=\"a\rX-Evil: 1\r\u{1}b\"")])
    }
    let session = Session.retained(fake: fake)
    for _ in 0..<3 {
      _ = await session.request("http://a.test/").authenticate(username: "ann", password: "pass").end()
    }
    for request in fake.requests {
      #expect(request.value("Authorization").map(HeaderFieldRules.isFieldValue) ?? true)
    }
    #expect(fake.requests.count == 4)
  }

  /// Fields for the initial origin must not reach another one, however its URL is written.
  @Test("No credential reaches another origin", arguments: [301, 302, 303, 307, 308])
  func origins(status: Int) async {
    let ways = [
      "https://a.test/", "http://a.test:8080/", "http://a.test./", "http://A.test@b.test/", "//b.test/",
      "http://x.a.test/", "http://a.test%2eb.test/", "http://user:other@b.test/", "\\\\b.test/", "/\\b.test/",
      "http:\\\\b.test/", "http://b.test\\@a.test/", "http://b.test#@a.test/", "http://b.test?@a.test/",
    ]
    for way in ways {
      let fake = FakeTransport { request, count in
        if count == 0 { return .redirect(status, to: way) }
        return request.origin == Origin(url: "http://a.test/") ? .text("home") : .challenge()
      }
      var urlRequest = URLRequest(url: URL(string: "http://ann:pass@a.test/")!)
      urlRequest.headers = ["Authorization": "Bearer secret", "Cookie": "c=secret", "X-Key": "secret"]
      let session = Session.retained(fake: fake)
      _ = await session.request(urlRequest).transportOptions { $0.protectedHeaders = ["x-key"] }.end()
      for request in fake.requests.dropFirst()
      where request.origin.host != "a.test" || request.origin.port != 80 {
        #expect(!request.fields.contains { $0.value.contains("secret") }, "\(way) \(request.url)")
        #expect(request.value("Authorization") == nil, "\(way)")
        #expect(
          !request.url.contains("@") || request.url.contains("?@") || request.url.contains("#@"), "\(way)")
      }
    }
  }
}
