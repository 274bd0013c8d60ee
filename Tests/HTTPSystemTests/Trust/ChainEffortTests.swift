import FoundationEssentials
import HTTPSystem
import HTTPTestServer
import Testing

/// Chains of a server are verified on a thread that other transfers use, so the work is limited.
@Suite("Effort for chains of certificates", .timeLimit(.minutes(2))) struct ChainEffortTests {
  private static func parsed(_ identity: TestIdentity) throws -> X509Certificate {
    try #require(X509Certificate.all(in: Data(identity.certificatePEM.utf8))?.first)
  }

  private static func authority(
    _ name: String, by issuer: TestIdentity? = nil, key owner: TestIdentity? = nil
  )
    throws -> TestIdentity
  {
    var specification = TestIdentity.Specification(commonName: name, isCA: true, issuer: issuer)
    specification.keyOwner = owner
    return try TestIdentity(specification)
  }

  @Test("The search for other paths through many certificates is limited", arguments: [true, false])
  func examinations(hasAnchors: Bool) throws {
    // Authorities with one name and different keys: each of them may have issued each other one.
    let crowd = try (0..<500).map { _ in try Self.authority("Same") }
    let leaf = try TestIdentity(.init(commonName: "Server", dnsNames: ["a.example"], issuer: crowd[0]))
    let presented = try ([leaf] + crowd).map(Self.parsed)
    let other = try Self.parsed(Self.authority("Other"))
    let anchors = hasAnchors ? TrustAnchors([other]) : nil
    try #require((anchors != nil) == hasAnchors)
    var effort = PathEffort()
    let chain = ServerChain.of(presented, anchors: anchors, &effort)
    #expect(chain == Array(presented.prefix(2)))
    #expect(effort.examinations > 0 && effort.examinations <= PathEffort.examinationLimit)
    #expect(effort.signatures <= PathEffort.signatureLimit)
  }

  @Test("An issuer among the first certificates is found, and one far behind is not searched for")
  func position() throws {
    let root = try Self.authority("Root")
    let narrowRoot = try Self.authority("Narrow root")
    let middle = try Self.authority("Middle", by: root)
    var specification = TestIdentity.Specification(commonName: "Middle", isCA: true, issuer: narrowRoot)
    specification.keyOwner = middle
    specification.permittedDomains = ["elsewhere.example"]
    let narrow = try TestIdentity(specification)
    let leaf = try Self.parsed(
      TestIdentity(.init(commonName: "Server", dnsNames: ["a.example"], issuer: middle)))
    let anchors = try #require(TrustAnchors([try Self.parsed(root), try Self.parsed(narrowRoot)]))
    let verifier = ChainVerifier(anchors: anchors, host: "a.example")
    let others = try (0..<PathEffort.certificateLimit).map { try Self.parsed(Self.authority("Other \($0)")) }
    // OpenSSL finds the first issuer, and only a search finds the second one.
    let near = try [leaf, Self.parsed(narrow)] + others.dropLast(3) + [Self.parsed(middle)]
    #expect(throws: Never.self) { try verifier.verify(near).get() }
    let far = try [leaf, Self.parsed(narrow)] + others + [Self.parsed(middle)]
    #expect(throws: ChainFault.self) { try verifier.verify(far).get() }
  }

  @Test(
    "The signature of each certificate and list is verified once with each key", arguments: [true, false])
  func signatures(hasOneKey: Bool) throws {
    let first = try Self.authority("Same")
    let others = try (1..<100).map { _ in
      hasOneKey ? try Self.authority("Same", by: first, key: first) : try Self.authority("Same")
    }
    let lists = try RevocationLists.of([Data(first.revocationList(of: []))]).get()
    let presented = try ([first] + others).map(Self.parsed)
    let chain = Array(presented.prefix(10))
    var checks = SignatureChecks()
    #expect(lists.fault(ofLinked: chain, presented: presented, &checks) == nil)
    if hasOneKey { #expect(checks.count == chain.count + 1) }
    #expect(checks.count > 0 && checks.count <= chain.count * PathEffort.certificateLimit)
    let before = checks.count
    #expect(lists.fault(ofLinked: chain, presented: presented, &checks) == nil)
    #expect(checks.count == before)
  }
}
