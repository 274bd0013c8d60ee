import FoundationEssentials
import HTTPTestServer
import HTTPWire
import Testing

@Suite(.timeLimit(.minutes(5))) struct TrustTests {
  @Test("An authority in memory is trusted") func authorityInMemory() async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    let response = try await Client().get(server.url("/get"))
    #expect(response.status == 200)
    let tls = try #require(await server.takeRequest().tls)
    #expect(tls.serverName == "localhost")
    #expect(tls.version == "TLSv1.3")
  }

  @Test("An authority in a file is trusted") func authorityInFile() async throws {
    let file = FileManager.default.temporaryDirectory.appending(path: "authority-\(UUID().uuidString).pem")
    try Data(TestIdentity.localhostAuthority.caPEM.utf8).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    let server = try HTTPTestServer(.tls(.localhost))
    #expect(try await Client { $0.trustStore = .file(file.path) }.get(server.url("/get")).status == 200)
  }

  @Test(
    "A server of an unknown authority is refused",
    arguments: [
      TransportOptions.TrustStore.system, .pem(Data(otherAuthority.utf8)),
    ])
  func unknownAuthority(store: TransportOptions.TrustStore) async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    let failure = try await Client { $0.trustStore = store }.failure(of: server.url("/get"))
    #expect(failure.kind == .certificateHasUnknownRoot)
    #expect(failure.helps(host: "localhost"))
    #expect(failure.message.contains("trusted root"))
    #expect(server.requestCount == 0)
  }

  static let otherAuthority: String = {
    (try? TestIdentity(.init(commonName: "Another CA", isCA: true)).caPEM) ?? ""
  }()

  @Test(
    "An unreadable trust store is a clear failure",
    arguments: [
      TransportOptions.TrustStore.file("/nonexistent/authorities.pem"), .pem(Data("no certificate".utf8)),
      .pem(Data()), .file(""),
    ])
  func unreadableStore(store: TransportOptions.TrustStore) async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    let failure = try await Client { $0.trustStore = store }.failure(of: server.url("/get"))
    #expect([.certificateUntrusted, .certificateHasUnknownRoot].contains(failure.kind), "\(failure)")
    #expect(failure.helps())
    #expect(server.requestCount == 0)
  }

  struct Bad: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let kind: TransportFailure.FailureKind
    let words: String
    let identity: @Sendable () throws -> TestIdentity
  }

  static let authority = TestIdentity.localhostAuthority
  static let bad: [Bad] = [
    Bad(testDescription: "wrong host", kind: .certificateUntrusted, words: "name") {
      try TestIdentity(.init(commonName: "other", dnsNames: ["other.example"], issuer: authority))
    },
    Bad(testDescription: "expired", kind: .certificateHasBadDate, words: "expired") {
      try TestIdentity(
        .init(
          commonName: "localhost", dnsNames: ["localhost"], notBefore: .seconds(-7200),
          notAfter: .seconds(-3600),
          issuer: authority))
    },
    Bad(testDescription: "not yet valid", kind: .certificateNotYetValid, words: "not valid yet") {
      try TestIdentity(
        .init(
          commonName: "localhost", dnsNames: ["localhost"], notBefore: .seconds(3600),
          notAfter: .seconds(7200),
          issuer: authority))
    },
    Bad(testDescription: "self-signed", kind: .certificateHasUnknownRoot, words: "trusted root") {
      try TestIdentity(.init(commonName: "localhost", dnsNames: ["localhost"]))
    },
  ]

  @Test("An invalid certificate is refused for its reason", arguments: bad)
  func invalidCertificates(bad: Bad) async throws {
    let server = try HTTPTestServer(.tls(bad.identity()))
    let client = Client()
    for _ in 0..<2 {
      let failure = try await client.failure(of: server.url("/get"))
      #expect(failure.kind == bad.kind)
      #expect(failure.helps(host: "localhost"))
      #expect(failure.message.contains(bad.words), "\(failure.message)")
    }
    #expect(server.requestCount == 0)
  }

  @Test("A missing intermediate is an unknown root") func missingIntermediate() async throws {
    let root = try TestIdentity(.init(commonName: "Root", isCA: true))
    let middle = try TestIdentity(.init(commonName: "Middle", isCA: true, issuer: root))
    let leaf = try TestIdentity(.init(commonName: "localhost", dnsNames: ["localhost"], issuer: middle))
    let client = Client { $0.trustStore = .pem(Data(root.caPEM.utf8)) }
    let whole = try HTTPTestServer(.tls(leaf))
    #expect(try await client.get(whole.url("/get")).status == 200)
    let broken = try HTTPTestServer(.tls(leaf, TLSOptions(sendsIntermediates: false)))
    #expect(try await client.failure(of: broken.url("/get")).kind == .certificateHasUnknownRoot)
  }

  @Test("A server below the minimum version is refused") func minimumVersion() async throws {
    let old = try HTTPTestServer(.tls(.localhost, TLSOptions(maximumVersion: .tls1_2)))
    #expect(try await Client().get(old.url("/get")).metrics.tlsVersion == "TLSv1.2")
    let failure = try await Client { $0.minimumTLSVersion = .tls13 }.failure(of: old.url("/get"))
    #expect(failure.kind == .secureConnectionFailed)
    #expect(failure.helps(host: "localhost"))
    #expect(failure.message.contains("speaks TLS 1.3 (minimumTLSVersion)."), "\(failure.message)")
    #expect(old.requestCount == 1)
  }

  @Test("A server that requires a client certificate is reported") func requiredCertificate() async throws {
    for version in [TLSOptions.Version.tls1_2, .tls1_3] {
      let options = TLSOptions(maximumVersion: version, clientAuthority: Self.authority.caPEM)
      let server = try HTTPTestServer(.tls(.localhost, options))
      let failure = try await Client().failure(of: server.url("/get"))
      #expect(failure.kind == .clientCertificateRequired, "\(version): \(failure.message)")
      #expect(failure.helps(host: "localhost"))
    }
  }

  @Test("A connection is not shared between trust settings") func sharing() async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    let client = Client()
    _ = try await client.get(server.url("/get"))
    let other = Client.profile { $0.trustStore = .pem(Data(Self.otherAuthority.utf8)) }
    let request = try client.request(server.url("/get"), profile: other)
    #expect(try await client.failure(of: request).kind == .certificateHasUnknownRoot)
    let stricter = Client.profile { $0.minimumTLSVersion = .tls13 }
    #expect(try await client.send(client.request(server.url("/get"), profile: stricter)).status == 200)
    #expect(try await client.get(server.url("/get")).status == 200)
    #expect(server.requestCount == 3)
  }
}
