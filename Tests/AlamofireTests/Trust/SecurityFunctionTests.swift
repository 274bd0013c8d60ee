import Alamofire
import Foundation
import HTTPTestServer
import Testing

@Suite("Functions of Apple's Security framework") struct SecurityFunctionTests {
  private static func trust(_ change: (inout TrustFixtures.ServerFixture) throws -> Void = { _ in }) throws
    -> SecTrust
  {
    let trustFixtures = try TrustFixtures.shared.get()
    return try trustFixtures.fixture(trustFixtures.server(), change).trust()
  }

  @Test("A trusted server has no error")
  func trusted() throws {
    let trust = try Self.trust()
    var error: CFError? = NSError(domain: "d", code: 1)
    let isTrusted = SecTrustEvaluateWithError(trust, &error)
    #expect(isTrusted && error == nil)
    #expect(SecTrustEvaluateWithError(trust, nil))
    var result = SecTrustResultType.invalid
    let status = SecTrustEvaluate(trust, &result)
    #expect(status == errSecSuccess)
    #expect(result == .unspecified)
  }

  @Test("A server that is not trusted has an error with Apple's number")
  func untrusted() throws {
    let trust = try Self.trust { $0.host = "other.localhost" }
    var error: CFError?
    let isTrusted = SecTrustEvaluateWithError(trust, &error)
    #expect(!isTrusted)
    let reason = try #require(error)
    #expect(reason.domain == NSOSStatusErrorDomain && reason.code == -67602)
    #expect(reason.localizedDescription.contains("other.localhost"))
    #expect((reason.userInfo[NSUnderlyingErrorKey] as? ServerTrust.Failure)?.kind == .hostMismatch)
    #expect(!SecTrustEvaluateWithError(trust, nil))
    var result = SecTrustResultType.invalid
    let status = SecTrustEvaluate(trust, &result)
    #expect(status == errSecSuccess)
    #expect(result == .recoverableTrustFailure)
  }

  @Test("The chain contains the certificates of the path only")
  func chain() throws {
    let untrusted = try TrustFixtures.shared.get().untrusted
    let trust = try Self.trust { $0.tls.appendedCertificates = [untrusted.certificatePEM] }
    let chain = try #require(SecTrustCopyCertificateChain(trust) as? [SecCertificate])
    #expect(chain.map { SecCertificateCopySubjectSummary($0) } == ["Server", "Middle", "Root"])
    #expect(SecTrustGetCertificateCount(trust) == 3)
    #expect(SecTrustGetCertificateAtIndex(trust, 2) == chain[2])
    #expect(SecTrustGetCertificateAtIndex(trust, 3) == nil && SecTrustGetCertificateAtIndex(trust, -1) == nil)
    #expect(SecTrustCopyKey(trust) == chain[0].publicKey)
    #expect(SecTrustCopyCertificateChain(ServerTrust(certificates: [], host: "a.example")) == nil)
  }

  @Test("A trust is created from certificates and policies")
  func made() throws {
    let chain = try Self.trust().certificates
    let leaf = try #require(chain.first)
    let rows: [(CFTypeRef, CFTypeRef?, String?)] = [
      (chain, SecPolicyCreateSSL(true, "localhost"), "localhost"),
      (chain, [SecPolicyCreateBasicX509(), SecPolicyCreateSSL(true, "a.test")], "a.test"),
      (leaf, nil, ""), ([leaf] as CFArray, SecPolicyCreateBasicX509(), ""),
      ([SecCertificate](), nil, nil), ("none", nil, nil), ([leaf, 1] as CFArray, nil, nil),
      (leaf, "no policy", nil), (leaf, [SecPolicyCreateBasicX509(), 1] as CFArray, nil),
    ]
    for (index, (certificates, policies, host)) in rows.enumerated() {
      var trust: SecTrust? = try Self.trust()
      let status = SecTrustCreateWithCertificates(certificates, policies, &trust)
      #expect(trust?.host == host, "row \(index)")
      #expect(status == (host == nil ? errSecParam : errSecSuccess), "row \(index)")
    }
    var trust: SecTrust?
    SecTrustCreateWithCertificates(chain, SecPolicyCreateSSL(true, "api.lab.localhost"), &trust)
    let new = try #require(trust)
    #expect(new.certificates == chain)
    SecTrustSetAnchorCertificates(new, [try #require(chain.last)])
    #expect(SecTrustEvaluateWithError(new, nil) == SecTrustEvaluateWithError(try Self.trust(), nil))
  }

  @Test("Policies replace the earlier ones")
  func policies() throws {
    let trust = try Self.trust()
    #expect(
      SecTrustSetPolicies(trust, SecPolicyCreateSSL(true, "other.localhost" as CFString)) == errSecSuccess)
    #expect(!SecTrustEvaluateWithError(trust, nil))
    #expect(SecTrustSetPolicies(trust, [SecPolicyCreateBasicX509()] as CFArray) == errSecSuccess)
    #expect(SecTrustEvaluateWithError(trust, nil))
    #expect(SecTrustSetPolicies(trust, "no policy") == errSecParam)
    #expect(SecTrustSetPolicies(trust, [SecPolicyCreateBasicX509(), 1] as CFArray) == errSecParam)
    #expect(trust.policies == [.default])
    #expect(SecPolicyCreateSSL(true, nil) == .default)
  }

  @Test("Anchors replace the trust store")
  func anchors() throws {
    let trust = try Self.trust()
    let chain = trust.certificates
    let untrusted = try #require(
      Certificate.all(in: Data(TrustFixtures.shared.get().untrusted.certificatePEM.utf8)).first)
    #expect(SecTrustSetAnchorCertificates(trust, [untrusted] as CFArray) == errSecSuccess)
    #expect(!SecTrustEvaluateWithError(trust, nil))
    #expect(SecTrustSetAnchorCertificatesOnly(trust, true) == errSecSuccess)
    #expect(SecTrustSetAnchorCertificatesOnly(trust, false) == errSecUnimplemented)
    #expect(SecTrustSetAnchorCertificates(trust, [chain[1], "no certificate"] as CFArray) == errSecParam)
    #expect(trust.anchors == [untrusted])
    #expect(SecTrustSetAnchorCertificates(trust, [chain[1]] as CFArray) == errSecSuccess)
    #expect(SecTrustEvaluateWithError(trust, nil))
    #expect(SecTrustSetAnchorCertificates(trust, nil) == errSecSuccess)
    #expect(trust.anchors == nil)
    #expect(SecTrustSetAnchorCertificatesOnly(trust, false) == errSecSuccess)
  }

  @Test("Certificates are read and written as DER")
  func certificates() throws {
    let leaf = try #require(Self.trust().certificates.first)
    let data = SecCertificateCopyData(leaf) as Data
    #expect(SecCertificateCreateWithData(nil, data as CFData) == leaf)
    #expect(SecCertificateCreateWithData(kCFAllocatorDefault, Data("none".utf8)) == nil)
  }

  @Test("The external representation of a key has no algorithm")
  func keys() throws {
    let trustFixtures = try TrustFixtures.shared.get()
    let curve = try #require(Self.trust().certificates.first.flatMap { SecCertificateCopyKey($0) })
    let point = try #require(SecKeyCopyExternalRepresentation(curve, nil) as Data?)
    #expect(point.count == 65 && point.first == 4)
    // The prefix that pinning code for Apple's systems adds: the algorithm of P-256.
    let algorithm: [UInt8] = [
      0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08, 0x2A, 0x86,
      0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
    ]
    #expect(Data(algorithm) + point == curve.data)
    let identity = try trustFixtures.server { $0.key = .rsa(bits: 2048) }
    let rsa = try #require(Certificate.all(in: Data(identity.certificatePEM.utf8)).first?.publicKey)
    let numbers = try #require(SecKeyCopyExternalRepresentation(rsa, nil))
    #expect(numbers.count == 270 && numbers.prefix(4) == Data([0x30, 0x82, 0x01, 0x0A]))
  }
}
