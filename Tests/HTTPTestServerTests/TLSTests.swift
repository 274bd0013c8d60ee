import COpenSSL
import HTTPTestServer
import Testing

@Suite(.timeLimit(.minutes(5)))
struct TLSTests {
  private let authority = TestIdentity.localhostAuthority

  private func verification(of identity: TestIdentity, trusting root: String, name: String = "localhost")
    throws -> Int?
  {
    let server = try HTTPTestServer(.tls(identity))
    do {
      _ = try TLSClient(server, authority: root, name: name)
      return nil
    } catch TLSClient.Failure.handshake(let code) {
      return code
    }
  }

  @Test("The default identity is trusted for its names", arguments: ["localhost", "127.0.0.1", "::1"])
  func defaultIdentity(_ name: String) async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    #expect(server.baseURL == "https://localhost:\(server.port)")
    let client = try TLSClient(server, authority: TestIdentity.localhost.caPEM, name: name)
    let (text, isClosedInOrder) = client.exchange("/get")
    #expect(text.contains("\"url\": \"https://localhost/get\""))
    #expect(isClosedInOrder)
    let request = try await server.takeRequest()
    #expect(request.tlsVersion == "TLSv1.3")
    #expect(request.tls?.cipher.hasPrefix("TLS_") == true)
    #expect(request.tls?.serverName == (name == "localhost" ? "localhost" : nil))
    #expect(request.tls?.applicationProtocol == nil)
    #expect(request.tls?.isResumed == false)
    #expect(request.tls?.clientCertificatePEM == nil)
  }

  @Test("Identities are created once") func once() {
    #expect(TestIdentity.localhost == TestIdentity.localhost)
    #expect(TestIdentity.localhost.caPEM == authority.certificatePEM)
    #expect(!TestIdentity.localhost.isSelfSigned)
    #expect(authority.isSelfSigned)
  }

  @Test("Invalid identities are refused for their reason") func invalidIdentities() throws {
    let root = authority.caPEM
    let names = TestIdentity.Specification(commonName: "localhost", dnsNames: ["localhost"])
    var expired = names
    expired.issuer = authority
    expired.notBefore = .seconds(-7200)
    expired.notAfter = .seconds(-3600)
    #expect(try verification(of: TestIdentity(expired), trusting: root) == Int(X509_V_ERR_CERT_HAS_EXPIRED))
    var future = names
    future.issuer = authority
    future.notBefore = .seconds(3600)
    #expect(try verification(of: TestIdentity(future), trusting: root) == Int(X509_V_ERR_CERT_NOT_YET_VALID))
    var other = names
    other.issuer = authority
    other.dnsNames = ["*.example.org"]
    let stranger = try TestIdentity(other)
    #expect(try verification(of: stranger, trusting: root) == Int(X509_V_ERR_HOSTNAME_MISMATCH))
    #expect(try verification(of: stranger, trusting: root, name: "a.example.org") == nil)
    let selfSigned = try TestIdentity(names)
    #expect(
      try verification(of: selfSigned, trusting: root) == Int(X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT))
    #expect(try verification(of: selfSigned, trusting: selfSigned.caPEM) == nil)
    let unknown = try TestIdentity(.init(commonName: "Other CA", isCA: true))
    #expect(
      try verification(of: .localhost, trusting: unknown.caPEM)
        == Int(X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY))
  }

  @Test("A chain with an intermediate is sent unless it is omitted") func intermediate() throws {
    let middle = try TestIdentity(.init(commonName: "Middle CA", isCA: true, issuer: authority))
    let leaf = try TestIdentity(
      .init(commonName: "localhost", dnsNames: ["localhost"], issuer: middle, key: .rsa(bits: 2048)))
    #expect(leaf.caPEM == authority.certificatePEM)
    #expect(leaf.intermediates == [middle.certificatePEM])
    #expect(leaf.chainPEM == leaf.certificatePEM + middle.certificatePEM)
    #expect(try verification(of: leaf, trusting: authority.caPEM) == nil)
    let server = try HTTPTestServer(.tls(leaf, TLSOptions(sendsIntermediates: false)))
    #expect(throws: TLSClient.Failure.self) { try TLSClient(server, authority: authority.caPEM) }
  }

  @Test("An issuer that is not an authority is refused") func invalidIssuer() throws {
    let leaf = try TestIdentity(
      .init(commonName: "localhost", dnsNames: ["localhost"], issuer: .localhost))
    #expect(try verification(of: leaf, trusting: authority.caPEM) == Int(X509_V_ERR_INVALID_CA))
  }

  @Test(
    "Invalid specifications are refused",
    arguments: [
      TestIdentity.Specification(commonName: ""),
      .init(commonName: "x", dnsNames: ["a,DNS:b"]), .init(commonName: "x", dnsNames: [""]),
      .init(commonName: "x", ipAddresses: ["1.2.3"]),
      .init(commonName: "x", notBefore: .seconds(10), notAfter: .seconds(0)),
      .init(commonName: String(repeating: "x", count: 65)),
    ])
  func invalidSpecifications(_ specification: TestIdentity.Specification) {
    let error = #expect(throws: ServerError.self) { try TestIdentity(specification) }
    if case .invalidSpecification? = error {} else { Issue.record("\(String(describing: error))") }
  }

  @Test("A key that cannot be created is an error") func invalidKey() {
    #expect(throws: ServerError.self) { try TestIdentity(.init(commonName: "x", key: .rsa(bits: 1))) }
    #expect(throws: ServerError.self) { try TestIdentity(.init(commonName: "x", key: .rsa(bits: -1))) }
  }

  @Test("Versions can be limited") func versions() async throws {
    let server = try HTTPTestServer(.tls(.localhost, TLSOptions(maximumVersion: .tls1_2)))
    let client = try TLSClient(server, authority: authority.caPEM, offers: ["h2", "http/1.1"])
    #expect(client.version == "TLSv1.2")
    _ = client.exchange("/ip")
    let request = try await server.takeRequest()
    #expect(request.tlsVersion == "TLSv1.2")
    #expect(request.tls?.applicationProtocol == "http/1.1")
  }

  @Test("Clients send their certificates") func clientCertificates() async throws {
    let own = try TestIdentity(.init(commonName: "client", issuer: authority))
    let options = TLSOptions(clientAuthority: authority.caPEM)
    let server = try HTTPTestServer(.tls(.localhost, options))
    let client = try TLSClient(server, authority: authority.caPEM, identity: own)
    #expect(client.exchange("/ip").text.contains("200 OK"))
    #expect(try await server.takeRequest().tls?.clientCertificatePEM == own.certificatePEM)
    // With TLS 1.3, a client is refused after its handshake.
    let refused = try? TLSClient(server, authority: authority.caPEM).exchange("/ip").text
    #expect((refused ?? "").isEmpty)
    #expect(server.requestCount == 1)
    let lenient = try HTTPTestServer(
      .tls(.localhost, TLSOptions(clientAuthority: authority.caPEM, requiresClientCertificate: false)))
    #expect(try TLSClient(lenient, authority: authority.caPEM).exchange("/ip").text.contains("200 OK"))
  }

  @Test("A cut has no closing alert and a close has one") func closingAlert() throws {
    let server = try HTTPTestServer(.tls(.localhost))
    server.enqueue(.cutAfterBody(bytes: 10), .closeAfterBody(bytes: 10))
    let cut = try TLSClient(server, authority: authority.caPEM).exchange("/")
    #expect(cut.text.contains("200 OK"))
    #expect(!cut.isClosedInOrder)
    #expect(try TLSClient(server, authority: authority.caPEM).exchange("/").isClosedInOrder)
  }

  @Test(
    "Handshakes fail as scripted",
    arguments: [
      ConnectionEffect.closeInHandshake, .closeOnAccept, .resetOnAccept, .plainText, .alert(40),
    ])
  func handshakes(_ effect: ConnectionEffect) throws {
    let server = try HTTPTestServer(.tls(.localhost))
    server.enqueue(connections: effect)
    #expect(throws: TLSClient.Failure.self) { try TLSClient(server, authority: authority.caPEM) }
    #expect(try TLSClient(server, authority: authority.caPEM).exchange("/ip").text.contains("200 OK"))
  }

  @Test("Plain bytes on a TLS port are not a request") func plainBytes() throws {
    let server = try HTTPTestServer(.tls(.localhost))
    let client = try RawClient(server)
    try client.ask("GET", "/")
    #expect(try !client.readText().contains("HTTP/1.1"))
    #expect(server.requestCount == 0)
  }

  @Test("A TLS client on a plain port fails at once") func plainPort() throws {
    let server = try HTTPTestServer()
    #expect(throws: TLSClient.Failure.self) { try TLSClient(server, authority: authority.caPEM) }
  }

  @Test("A large body is complete") func largeBody() throws {
    let server = try HTTPTestServer(.tls(.localhost))
    server.enqueue(Reply(body: .bytes([UInt8](repeating: 0x61, count: 3_000_000))))
    let text = try TLSClient(server, authority: authority.caPEM).exchange("/").text
    #expect(text.utf8.count { $0 == 0x61 } >= 3_000_000)
  }
}
