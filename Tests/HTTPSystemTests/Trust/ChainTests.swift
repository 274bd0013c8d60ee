import FoundationEssentials
import Glibc
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Testing

@Suite("Chains of certificates") struct ChainTests {
  private static func certificate(_ identity: TestIdentity) throws -> X509Certificate {
    try #require(X509Certificate.all(in: Data(identity.certificatePEM.utf8))?.first)
  }

  private static func authority(
    _ name: String, by issuer: TestIdentity? = nil,
    _ change: (inout TestIdentity.Specification) -> Void = { _ in }
  ) throws -> TestIdentity {
    var specification = TestIdentity.Specification(commonName: name, isCA: true, issuer: issuer)
    change(&specification)
    return try TestIdentity(specification)
  }

  private static func server(by issuer: TestIdentity) throws -> TestIdentity {
    try TestIdentity(.init(commonName: "Server", dnsNames: ["a.example"], issuer: issuer))
  }

  private static func verify(
    _ presented: [TestIdentity], trusted: [TestIdentity], at time: Int? = nil, host: String? = "a.example"
  ) throws -> Result<[X509Certificate], ChainFault> {
    let anchors = try #require(TrustAnchors(try trusted.map(certificate)))
    var verifier = ChainVerifier(anchors: anchors, host: host)
    verifier.time = time
    return verifier.verify(try presented.map(certificate))
  }

  private static func kind(_ result: Result<[X509Certificate], ChainFault>) -> TransportFailure.FailureKind? {
    if case .failure(let fault) = result { fault.kind } else { nil }
  }

  /// Returns the message about a server of `middle`, which `root` has issued; `nil` if the chain is accepted.
  private static func malformed(
    root change: (inout TestIdentity.Specification) -> Void = { _ in },
    middle changeMiddle: (inout TestIdentity.Specification) -> Void = { _ in },
    server changeServer: (inout TestIdentity.Specification) -> Void = { _ in }
  ) throws -> String? {
    let root = try authority("Root", change)
    let middle = try authority("Middle", by: root, changeMiddle)
    var specification = TestIdentity.Specification(commonName: "S", dnsNames: ["a.example"], issuer: middle)
    changeServer(&specification)
    let server = try TestIdentity(specification)
    guard case .failure(let fault) = try verify([server, middle], trusted: [root]) else { return nil }
    #expect(fault.kind == .certificateUntrusted)
    return fault.message(for: "a.example")
  }

  @Test("A negative serial number is refused, except in a trusted certificate") func serialNumbers()
    throws
  {
    let server = try Self.malformed(server: { $0.hasNegativeSerialNumber = true })
    #expect(server?.contains("certificate 0") == true && server?.contains("serial number") == true)
    let middle = try Self.malformed(middle: { $0.hasNegativeSerialNumber = true })
    #expect(middle?.contains("certificate 1") == true && middle?.contains("serial number") == true)
    #expect(try Self.malformed(root: { $0.hasNegativeSerialNumber = true }) == nil)
    // A server that is trusted itself.
    var specification = TestIdentity.Specification(commonName: "S", dnsNames: ["a.example"])
    specification.hasNegativeSerialNumber = true
    let own = try TestIdentity(specification)
    #expect(try Self.kind(Self.verify([own], trusted: [own])) == nil)
  }

  @Test("An authority needs a subject, and a server does not") func subjects() throws {
    for message in [
      try Self.malformed(root: { $0.hasSubject = false }),
      try Self.malformed(middle: { $0.hasSubject = false }),
    ] {
      #expect(message?.contains("no subject") == true, "\(message ?? "accepted")")
    }
    #expect(try Self.malformed(server: { $0.hasSubject = false }) == nil)
  }

  @Test("An authority on the way states that it is one; its key usage is not enough") func constraints()
    throws
  {
    let message = try Self.malformed(middle: { $0.hasBasicConstraints = false })
    #expect(message?.contains("certificate 1") == true, "\(message ?? "accepted")")
    #expect(try Self.malformed(root: { $0.hasBasicConstraints = false }) == nil)
    #expect(try Self.malformed(server: { $0.hasBasicConstraints = false }) == nil)
  }

  @Test("A root that names another key as its issuer's is refused") func keyIdentifierOfRoot() throws {
    let message = try Self.malformed(root: { $0.authorityKeyIdentifier = [1, 2, 3, 4] })
    #expect(message?.contains("another key") == true, "\(message ?? "accepted")")
    #expect(message?.contains("certificate 2") == true)
    #expect(try Self.malformed() == nil)
  }

  @Test(
    "A certificate is valid from its first to its last second", arguments: ["server", "authority", "root"])
  func lastSecond(shortest: String) throws {
    func short(_ specification: inout TestIdentity.Specification, _ name: String) {
      guard name == shortest else { return }
      specification.notBefore = .seconds(-100)
      specification.notAfter = .seconds(100)
    }
    let root = try Self.authority("Root") { short(&$0, "root") }
    let middle = try Self.authority("Middle", by: root) { short(&$0, "authority") }
    var specification = TestIdentity.Specification(commonName: "S", dnsNames: ["a.example"], issuer: middle)
    short(&specification, "server")
    let server = try TestIdentity(specification)
    let shown = shortest == "root" ? root : shortest == "authority" ? middle : server
    let validity = try #require(try Self.certificate(shown).validity)
    func kind(at time: Int) throws -> TransportFailure.FailureKind? {
      try Self.kind(Self.verify([server, middle], trusted: [root], at: time))
    }
    #expect(try kind(at: validity.lowerBound - 1) == .certificateNotYetValid)
    #expect(try kind(at: validity.lowerBound) == nil)
    #expect(try kind(at: validity.upperBound - 1) == nil)
    #expect(try kind(at: validity.upperBound) == nil)
    #expect(try kind(at: validity.upperBound + 1) == .certificateHasBadDate)
  }

  @Test("After a failure other paths are tried, whatever failed", arguments: [false, true])
  func otherPaths(isStored: Bool) throws {
    let root = try Self.authority("Root")
    let otherRoot = try Self.authority("Other root")
    let middle = try Self.authority("Middle", by: root)
    let server = try Self.server(by: middle)
    // The same authority, as others certified it: with too short a path, for other names, with a weak digest.
    let faulty = [
      try Self.authority("Middle", by: otherRoot) {
        $0.keyOwner = middle
        $0.permittedDomains = ["elsewhere.example"]
      },
      try Self.authority("Middle", by: otherRoot) {
        $0.keyOwner = middle
        $0.digest = .sha1
      },
      try Self.authority("Middle", by: otherRoot) {
        $0.keyOwner = middle
        $0.notBefore = .seconds(-7200)
        $0.notAfter = .seconds(-3600)
      },
    ]
    // Certificates in the trust store come first and are trusted themselves, so each of them ends the path.
    let result = try Self.verify(
      [server] + (isStored ? [] : faulty) + [middle],
      trusted: [root, otherRoot] + (isStored ? faulty : []))
    let path = try result.get().map(\.subject)
    #expect(path == (isStored ? ["CN=Server", "CN=Middle"] : ["CN=Server", "CN=Middle", "CN=Root"]))
  }

  @Test("A path may turn back after several certificates")
  func deepPaths() throws {
    let root = try Self.authority("Root")
    let narrowRoot = try Self.authority("Narrow root") { $0.permittedDomains = ["elsewhere.example"] }
    let upper = try Self.authority("Upper", by: root)
    let crossUpper = try Self.authority("Upper", by: narrowRoot) { $0.keyOwner = upper }
    let lower = try Self.authority("Lower", by: upper)
    let server = try Self.server(by: lower)
    let result = try Self.verify([server, lower, crossUpper, upper], trusted: [narrowRoot, root])
    #expect(try result.get().map(\.subject) == ["CN=Server", "CN=Lower", "CN=Upper", "CN=Root"])
    #expect(throws: ChainFault.self) {
      try Self.verify([server, lower, crossUpper], trusted: [narrowRoot, root]).get()
    }
  }

  @Test("Name constraints of a trusted authority hold for the host of a wildcard, too")
  func constraintsOfRoot() throws {
    let root = try Self.authority("Root") { $0.excludedDomains = ["api.lab.example"] }
    let server = try TestIdentity(.init(commonName: "Server", dnsNames: ["*.lab.example"], issuer: root))
    func kind(_ host: String) throws -> TransportFailure.FailureKind? {
      try Self.kind(Self.verify([server], trusted: [root], host: host))
    }
    #expect(try kind("www.lab.example") == nil)
    #expect(try kind("api.lab.example") == .certificateUntrusted)
  }

  @Test("The zone of an IPv6 address is not compared")
  func zoneOfAddress() throws {
    let root = try Self.authority("Root")
    let server = try TestIdentity(
      .init(commonName: "Server", dnsNames: [], ipAddresses: ["fe80::1"], issuer: root))
    func kind(_ host: String) throws -> TransportFailure.FailureKind? {
      try Self.kind(Self.verify([server], trusted: [root], host: host))
    }
    for host in ["fe80::1", "fe80::1%eth0", "FE80:0::1%25"] { #expect(try kind(host) == nil) }
    for host in ["fe80::2%eth0", "eth0", "%eth0"] { #expect(try kind(host) == .certificateUntrusted) }
  }

  @Test("The number of paths that are tried is bounded")
  func boundedPaths() throws {
    let root = try Self.authority("Root")
    let otherRoot = try Self.authority("Other root")
    let middle = try Self.authority("Middle", by: root)
    let server = try Self.server(by: middle)
    let faulty = try (0..<20).map { _ in
      try Self.authority("Middle", by: otherRoot) {
        $0.keyOwner = middle
        $0.permittedDomains = ["elsewhere.example"]
      }
    }
    let trusted = [root, otherRoot]
    #expect(try Self.kind(Self.verify([server] + faulty.prefix(10) + [middle], trusted: trusted)) == nil)
    let many = try Self.verify([server] + faulty + [middle], trusted: trusted)
    #expect(Self.kind(many) == .certificateUntrusted)
  }

  @Test("The failure of the first path is reported")
  func failureOfFirst() throws {
    let root = try Self.authority("Root")
    let server = try Self.server(by: root)
    #expect(try Self.kind(Self.verify([server], trusted: [])) == .certificateHasUnknownRoot)
    #expect(
      try Self.kind(Self.verify([server], trusted: [root], host: "b.example")) == .certificateUntrusted)
  }

  @Test("A machine without certificates is reported which package has them")
  func noCertificates() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "empty-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let empty = folder.appending(path: "authorities.pem")
    let locations = [
      TrustLocation(file: nil, folder: nil), TrustLocation(file: "/nonexistent/a.pem", folder: nil),
      TrustLocation(file: nil, folder: folder.path), TrustLocation(file: nil, folder: "/nonexistent"),
    ]
    func message(_ location: TrustLocation) -> String? {
      guard case .failure(let fault) = TrustAnchors.system(at: location) else { return nil }
      #expect(fault.kind == .certificateHasUnknownRoot)
      return fault.message(for: "a.example")
    }
    for location in locations {
      let text = try #require(message(location))
      #expect(text.contains("ca-certificates") && text.contains("a.example"), "\(text)")
    }
    try Data().write(to: empty)
    #expect(message(TrustLocation(file: empty.path, folder: nil))?.contains(empty.path) == true)
    try Data(Self.authority("Root").caPEM.utf8).write(to: empty)
    #expect(message(TrustLocation(file: empty.path, folder: nil)) == nil)
  }

  @Test("A trust store may consist of several folders, with colons in between")
  func severalFolders() throws {
    let folder = try TemporaryFolder()
    let file = try folder.write(Array(Self.authority("Root").caPEM.utf8), "root.pem")
    for folders in [
      folder.path, "/nonexistent:\(folder.path)", "\(folder.path):/nonexistent", ":\(folder.path):",
    ] {
      let location = TrustLocation(file: nil, folder: folders)
      #expect(throws: Never.self, "\(folders)") { try TrustAnchors.system(at: location).get() }
    }
    for folders in ["/nonexistent:/absent", ":", "\(file):\(file)"] {
      let location = TrustLocation(file: nil, folder: folders)
      #expect(throws: ChainFault.self, "\(folders)") { try TrustAnchors.system(at: location).get() }
    }
  }

  @Test("An empty name of a trust store counts as none")
  func emptyNames() throws {
    let folder = try TemporaryFolder()
    let file = try folder.write(Array(Self.authority("Root").caPEM.utf8), "root.pem")
    for (file, folder) in [("", folder.path), (file, "")] {
      let location = TrustLocation(file: file, folder: folder)
      #expect(throws: Never.self) { try TrustAnchors.system(at: location).get() }
    }
    #expect(TrustLocation(file: "", folder: "") == TrustLocation(file: nil, folder: nil))
  }

  @Test("A trust store that is not there is reported from one that is broken")
  func brokenStore() throws {
    func message(_ path: String) throws -> String {
      guard case .failure(let fault) = TrustAnchors.of(.file(path)) else { return "" }
      return fault.message(for: "a.example")
    }
    #expect(try message("/nonexistent/a.pem").contains("No such file"))
    let file = FileManager.default.temporaryDirectory.appending(path: "broken-\(UUID().uuidString).pem")
    try Data("-----BEGIN CERTIFICATE-----\nAAAA".utf8).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    #expect(try message(file.path).contains("PEM is complete"))
    #expect(truncate(file.path, off_t(BoundedFile.sizeLimit + 1)) == 0)
    #expect(try message(file.path).contains("more than 16 MiB"))
    let pipe = file.path + ".pipe"
    #expect(mkfifo(pipe, 0o600) == 0)
    defer { unlink(pipe) }
    for path in ["/dev/zero", pipe] {
      #expect(try message(path).contains("not a regular file"), "\(path)")
    }
    #expect(try message("/").contains("directory"))
  }

  @Test("The file of a trust store may hold keys, lists and other text besides certificates")
  func mixedStore() throws {
    let (root, other) = (try Self.authority("Root"), try Self.authority("Other"))
    let file = FileManager.default.temporaryDirectory.appending(path: "mixed-\(UUID().uuidString).pem")
    defer { try? FileManager.default.removeItem(at: file) }
    try Data("Root\n\(root.privateKeyPEM)\(root.caPEM)\n# Other\n\(other.caPEM)".utf8).write(to: file)
    let anchors = try TrustAnchors.of(.file(file.path)).get()
    for authority in [root, other] {
      let server = try Self.certificate(Self.server(by: authority))
      let verifier = ChainVerifier(anchors: anchors, host: "a.example")
      #expect(throws: Never.self) { try verifier.verify([server]).get() }
    }
  }
}
