import AlamofireV3
import HTTPTestServer
import Testing

// Code of users, compiled in both language modes, with only this import.

@Suite("Users who import the generation alone", .timeLimit(.minutes(5))) struct UsersAlone {
  @Test("The method of a server trust challenge is known") func serverTrustChallenge() async throws {
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

  /// Uses the replacements of the functions of Security.
  @Test("Types of Security have methods for its functions") func securityTypes() throws {
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

  @Test("Methods of connections have their own names") func connectionMethods() {
    let methods = [
      NSURLAuthenticationMethodServerTrust, NSURLAuthenticationMethodClientCertificate,
      NSURLAuthenticationMethodHTTPBasic,
    ]
    #expect(Set(methods).count == 3)
  }

  @Test("Exported names can be qualified and extended") func exportedNames() {
    let timeline = AlamofireV3.Timeline(requestStartTime: 1, requestCompletedTime: 3)
    #expect(timeline.wholeSeconds == 2)
    #expect(Alamofire.Timeline().wholeSeconds == 0)
    let types: [Any.Type] = [
      AlamofireV3.SecTrust.self, AlamofireV3.SecKey.self, AlamofireV3.SecCertificate.self,
    ]
    #expect(types.count == 3)
    #expect(AlamofireV3.NSURLAuthenticationMethodServerTrust == "NSURLAuthenticationMethodServerTrust")
    let delegate = QuietDelegate()
    delegate.taskDidComplete = { _, _, error in #expect(error?.domain == NSURLErrorDomain) }
    #expect(delegate.taskDidComplete != nil && delegate.sessionDidBecomeInvalidWithError == nil)
  }
}

private class QuietDelegate: Alamofire.Manager.SessionDelegate, @unchecked Sendable {
  override func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {}
}

extension Alamofire.Timeline {
  fileprivate var wholeSeconds: Int { Int(requestDuration) }
}
