import AlamofireV3
import HTTPTestServer
import Testing

// Code as users have it, compiled in both language modes, with this import alone.

@Suite("Users who import the generation alone", .timeLimit(.minutes(5))) struct UsersAlone {
  @Test func methodOfTheChallengeTellsAServerThatShowsItsCertificates() async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    let manager = Manager(configuration: .ephemeral)
    manager.delegate.sessionDidReceiveChallenge = { _, challenge in
      guard challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodServerTrust,
        let trust = challenge.protectionSpace.serverTrust
      else { return (.cancelAuthenticationChallenge, nil) }
      return (.useCredential, URLCredential(trust: trust))
    }
    let status = await withCheckedContinuation { continuation in
      manager.request(.GET, server.url("/get")).response(queue: .global()) { _, response, _, _ in
        continuation.resume(returning: response?.statusCode)
      }
    }
    #expect(status == 200)
  }

  /// What stands for the functions of Security.
  @Test func typesOfSecurityDoWhatItsFunctionsDid() throws {
    let pem = Data(TestIdentity.localhost.certificatePEM.utf8)
    let root = Data(TestIdentity.localhostAuthority.caPEM.utf8)
    let certificate = try #require(try SecCertificate.all(in: pem).first)
    #expect(SecCertificate(data: certificate.data)?.data == certificate.data)
    let trust = SecTrust(certificates: [certificate], host: "localhost")
    #expect(trust.certificates.count == 1)
    let key: SecKey? = trust.certificates.first?.publicKey
    #expect(key == certificate.publicKey)
    #expect(throws: (any Error).self) { try trust.evaluate() }
    trust.anchors = try SecCertificate.all(in: root)
    try trust.evaluate()
    trust.policies = [.hostname("another.example")]
    #expect(throws: (any Error).self) { try trust.evaluate() }
  }

  @Test func methodsOfConnectionsHaveNamesOfTheirOwn() {
    let methods = [
      NSURLAuthenticationMethodServerTrust, NSURLAuthenticationMethodClientCertificate,
      NSURLAuthenticationMethodHTTPBasic,
    ]
    #expect(Set(methods).count == 3)
  }
}
