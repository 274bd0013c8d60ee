import COpenSSL
import FoundationEssentials
import HTTPEngine
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Testing

@Suite(.timeLimit(.minutes(5))) struct ClientIdentityTests {
  static let authority = TestIdentity.localhostAuthority

  func client(_ name: String, _ change: (inout TestIdentity.Specification) -> Void = { _ in }) throws
    -> TestIdentity
  {
    var specification = TestIdentity.Specification(commonName: name, issuer: Self.authority)
    change(&specification)
    return try TestIdentity(specification)
  }

  func identity(_ test: TestIdentity) throws -> ClientIdentity {
    try ClientIdentity.read(
      certificates: Data(test.chainPEM.utf8), privateKey: Data(test.privateKeyPEM.utf8), passphrase: nil
    ).get()
  }

  @Test("A server that requests a certificate receives it", arguments: [TLSOptions.Version.tls1_2, .tls1_3])
  func certificate(version: TLSOptions.Version) async throws {
    let options = TLSOptions(maximumVersion: version, clientAuthority: Self.authority.caPEM)
    let server = try HTTPTestServer(.tls(.localhost, options))
    let ada = try client("Ada")
    let mine = try identity(ada)
    let profile = Client.profile { $0.clientIdentity = mine }
    let client = Client()
    #expect(try await client.send(client.request(server.url("/get"), profile: profile)).status == 200)
    let shown = try #require(await server.takeRequest().tls?.clientCertificatePEM)
    #expect(shown == ada.certificatePEM)
  }

  @Test(
    "A certificate that the server does not accept is reported",
    arguments: [TLSOptions.Version.tls1_2, .tls1_3])
  func rejected(version: TLSOptions.Version) async throws {
    let options = TLSOptions(maximumVersion: version, clientAuthority: Self.authority.caPEM)
    let server = try HTTPTestServer(.tls(.localhost, options))
    let stranger = try identity(TestIdentity(.init(commonName: "Ada")))
    let failure = try await Client { $0.clientIdentity = stranger }.failure(of: server.url("/get"))
    #expect(failure.kind == .clientCertificateRejected, "\(failure.message)")
    #expect(failure.message.contains("localhost did not accept the client certificate"), "\(failure.message)")
  }

  @Test("Connections of one identity are not used by another") func connections() async throws {
    let options = TLSOptions(clientAuthority: Self.authority.caPEM, requiresClientCertificate: false)
    let server = try HTTPTestServer(.tls(.localhost, options))
    let client = Client()
    let people = try ["Ada", "Grace"].map { try self.client($0) }
    let profiles = try people.map { person in
      let identity = try identity(person)
      return Client.profile { $0.clientIdentity = identity }
    }
    var expected: [String?] = []
    for round in 0..<3 {
      for (person, profile) in zip(people, profiles) {
        _ = try await client.send(client.request(server.url("/get"), profile: profile))
        expected.append(person.certificatePEM)
      }
      _ = try await client.get(server.url("/get?\(round)"))
      expected.append(nil)
    }
    var shown: [String?] = []
    for _ in expected { shown.append(try await server.takeRequest().tls?.clientCertificatePEM) }
    #expect(shown == expected)
    #expect(server.connectionCount == 3)
  }

  private struct ChoosingEvaluator: ServerEvaluator {
    func evaluate(_ chain: PresentedChain, for profile: ConnectionProfile) -> TrustVerdict { .accept }
    func choosesIdentity(forHost host: String, port: Int) -> Bool { true }
  }

  /// A resumed session would have no client certificate, and the server would not ask for one.
  @Test(
    "A session that ended at the request for a certificate is not resumed",
    arguments: [TLSOptions.Version.tls1_2, .tls1_3])
  func resumption(version: TLSOptions.Version) async throws {
    let options = TLSOptions(
      maximumVersion: version, clientAuthority: Self.authority.caPEM, requiresClientCertificate: false)
    let server = try HTTPTestServer(.tls(.localhost, options))
    let client = Client()
    let profile = ConnectionProfile(options: client.profile.options, evaluator: ChoosingEvaluator())
    for _ in 0..<3 {
      let failure = try await client.failure(of: client.request(server.url("/get"), profile: profile))
      #expect(failure.kind == .identityUndecided, "\(failure.message)")
    }
    #expect(server.requestCount == 0)
  }

  @Test("An invalid identity is a clear failure") func invalidIdentity() throws {
    let ada = try client("Ada")
    let other = try client("Other")
    let old = try client("Old") {
      $0.notBefore = .seconds(-7200)
      $0.notAfter = .seconds(-3600)
    }
    let early = try client("Early") {
      $0.notBefore = .seconds(3600)
      $0.notAfter = .seconds(7200)
    }
    func fault(_ certificates: String, _ key: String, _ passphrase: String? = nil) -> IdentityFault? {
      let result = ClientIdentity.read(
        certificates: Data(certificates.utf8), privateKey: Data(key.utf8), passphrase: passphrase)
      guard case .failure(let fault) = result else { return nil }
      return fault
    }
    #expect(fault(ada.certificatePEM, ada.privateKeyPEM) == nil)
    #expect(fault(ada.certificatePEM + ada.privateKeyPEM, ada.certificatePEM + ada.privateKeyPEM) == nil)
    #expect(fault(ada.certificatePEM, other.privateKeyPEM) == .keyDoesNotMatch)
    #expect(fault(old.certificatePEM, old.privateKeyPEM) == .expired)
    #expect(fault(early.certificatePEM, early.privateKeyPEM) == .notYetValid)
    #expect(fault("", ada.privateKeyPEM) == .noCertificate)
    #expect(fault(ada.certificatePEM, "") == .noPrivateKey)
    #expect(fault(ada.certificatePEM, ada.certificatePEM) == .noPrivateKey)
    #expect(fault("garbage", ada.privateKeyPEM) == .noCertificate)
    let broken = ada.certificatePEM.replacing("MII", with: "AAA")
    guard case .unreadable = fault(broken, ada.privateKeyPEM) else {
      Issue.record("a broken certificate was not reported")
      return
    }
  }

  @Test("A key with a passphrase needs the right one") func passphrase() throws {
    let ada = try client("Ada")
    let encrypted = try #require(encryptedKey(ada.privateKeyPEM, passphrase: "open sesame"))
    func read(_ passphrase: String?) -> Result<ClientIdentity, IdentityFault> {
      ClientIdentity.read(
        certificates: Data(ada.certificatePEM.utf8), privateKey: encrypted, passphrase: passphrase)
    }
    #expect(try read("open sesame").get() == identity(ada))
    for wrong in [nil, "", "shut", String(repeating: "long", count: 1000)] {
      guard case .failure(.wrongPassphrase) = read(wrong) else {
        Issue.record("\(wrong ?? "no passphrase") was not reported to be wrong: \(read(wrong))")
        continue
      }
    }
  }

  @Test("A PKCS#12 file without a key is reported") func missingKey() throws {
    let whole = try #require(container(client("Ada"), passphrase: "p", hasKey: false))
    #expect(ClientIdentity.read(pkcs12: whole, passphrase: "p") == .failure(.noPrivateKey))
  }

  @Test("A PKCS#12 file is read with its passphrase") func pkcs12() throws {
    let ada = try client("Ada")
    let whole = try #require(container(ada, passphrase: "päss"))
    let read = try ClientIdentity.read(pkcs12: whole, passphrase: "päss").get()
    #expect(read.certificates.first == (try identity(ada).certificates.first))
    #expect(read.subject == "CN=Ada")
    #expect("\(read)" == "ClientIdentity(CN=Ada)")
    #expect(ClientIdentity.read(pkcs12: whole, passphrase: "pass") == .failure(.wrongPassphrase))
    for end in [0, 1, whole.count / 2, whole.count - 1] {
      guard case .failure = ClientIdentity.read(pkcs12: whole.prefix(end), passphrase: "päss") else {
        Issue.record("\(end) bytes of a file were read")
        continue
      }
    }
  }
}

/// Returns the key of `pem`, encrypted.
private func encryptedKey(_ pem: String, passphrase: String) -> Data? {
  withKey(pem) { key in
    memory {
      PEM_write_bio_PrivateKey($0, key, EVP_aes_256_cbc(), passphrase, Int32(passphrase.utf8.count), nil, nil)
    }
  }
}

private func container(_ identity: TestIdentity, passphrase: String, hasKey: Bool = true) -> Data? {
  withKey(identity.privateKeyPEM) { key in
    let certificate = Array(identity.certificatePEM.utf8).withUnsafeBytes { bytes -> OpaquePointer? in
      let bio = BIO_new_mem_buf(bytes.baseAddress, Int32(bytes.count))
      defer { BIO_free(bio) }
      return PEM_read_bio_X509(bio, nil, nil, nil)
    }
    defer { X509_free(certificate) }
    let made = PKCS12_create(passphrase, "name", hasKey ? key : nil, certificate, nil, 0, 0, 0, 0, 0)
    defer { PKCS12_free(made) }
    return memory { i2d_PKCS12_bio($0, made) }
  }
}

private func withKey(_ pem: String, _ body: (OpaquePointer) -> Data?) -> Data? {
  let key = Array(pem.utf8).withUnsafeBytes { bytes -> OpaquePointer? in
    let bio = BIO_new_mem_buf(bytes.baseAddress, Int32(bytes.count))
    defer { BIO_free(bio) }
    return PEM_read_bio_PrivateKey(bio, nil, nil, nil)
  }
  defer { EVP_PKEY_free(key) }
  return key.flatMap(body)
}

private func memory(_ write: (OpaquePointer?) -> Int32) -> Data? {
  let bio = BIO_new(BIO_s_mem())
  defer { BIO_free(bio) }
  guard write(bio) == 1 else { return nil }
  var bytes: UnsafeMutablePointer<CChar>?
  let count = openssl_memory_bytes(bio, &bytes)
  return bytes.map { Data(bytes: $0, count: count) }
}
