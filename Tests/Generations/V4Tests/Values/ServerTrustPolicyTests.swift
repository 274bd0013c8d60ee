import Alamofire
import Foundation
import HTTPTestServer
import Testing

@testable import AlamofireV4

@Suite("Server trust policies") struct ServerTrustPolicyTests {
  private let root: TestIdentity
  private let server: TestIdentity
  private let other: TestIdentity

  init() throws {
    root = try TestIdentity(TestIdentity.Specification(commonName: "Root", isCA: true))
    server = try TestIdentity(
      TestIdentity.Specification(commonName: "Server", dnsNames: ["api.test"], issuer: root))
    other = try TestIdentity(TestIdentity.Specification(commonName: "Other", dnsNames: ["api.test"]))
  }

  private func certificate(_ identity: TestIdentity) throws -> SecCertificate {
    try #require(Certificate.all(in: Data(identity.certificatePEM.utf8)).first)
  }

  private func key(_ identity: TestIdentity) throws -> SecKey {
    try #require(certificate(identity).publicKey)
  }

  /// Returns the trust of `api.test`. Its root is in the trust store only if `isKnown` is true.
  private func trust(isKnown: Bool = true) throws -> SecTrust {
    var options = TransportOptions()
    options.trustStore = .pem(Data((isKnown ? root : other).certificatePEM.utf8))
    return ServerTrust(certificates: [try certificate(server)], host: "api.test", transportOptions: options)
  }

  private func evaluate(_ policy: ServerTrustPolicy, isKnown: Bool = true, host: String = "api.test") throws
    -> Bool
  {
    policy.evaluate(try trust(isKnown: isKnown), forHost: host)
  }

  @Test("The default evaluates trust store and host") func defaultPolicy() throws {
    #expect(try evaluate(.performDefaultEvaluation(validateHost: true)))
    #expect(try !evaluate(.performDefaultEvaluation(validateHost: true), isKnown: false))
    #expect(try !evaluate(.performDefaultEvaluation(validateHost: true), host: "else.test"))
    #expect(try evaluate(.performDefaultEvaluation(validateHost: false), host: "else.test"))
  }

  @Test("A subclass finds a policy in any spelling of its host") func spellings() {
    final class Own: ServerTrustPolicyManager {
      override func serverTrustPolicy(forHost host: String) -> ServerTrustPolicy? {
        super.serverTrustPolicy(forHost: host)
      }
    }
    let policies = Own(policies: [
      "API.example.com": .disableEvaluation, "b\u{FC}cher.example": .disableEvaluation,
      "[::1]": .disableEvaluation, "*.example.org": .disableEvaluation,
    ])
    for host in ["api.example.com", "xn--bcher-kva.example", "::1"] {
      #expect(policies.serverTrustPolicy(forHost: host) != nil, "\(host)")
    }
    #expect(policies.serverTrustPolicy(forHost: "www.example.org") == nil)
  }

  @Test("Revocation is checked according to the flags") func revocation() throws {
    let quiet = kSecRevocationUseAnyAvailableMethod | kSecRevocationNetworkAccessDisabled
    #expect(try evaluate(.performRevokedEvaluation(validateHost: true, revocationFlags: quiet)))
    let strict = quiet | kSecRevocationRequirePositiveResponse
    #expect(try !evaluate(.performRevokedEvaluation(validateHost: true, revocationFlags: strict)))
    #expect(
      try !evaluate(.performRevokedEvaluation(validateHost: true, revocationFlags: quiet), host: "else.test"))
    #expect(
      try evaluate(.performRevokedEvaluation(validateHost: false, revocationFlags: quiet), host: "else.test"))
    // The values of Apple's headers and of the core.
    #expect(kSecRevocationUseAnyAvailableMethod == RevocationTrustEvaluator.Options.any.rawValue)
    #expect(kSecRevocationPreferCRL == RevocationTrustEvaluator.Options.preferCRL.rawValue)
  }

  private func pin(_ certificates: [SecCertificate], chain: Bool, host: Bool) -> ServerTrustPolicy {
    .pinCertificates(certificates: certificates, validateCertificateChain: chain, validateHost: host)
  }

  @Test("Pinned certificates are the anchors of a validated chain") func pinnedCertificates() throws {
    let (leaf, authority, stranger) = try (certificate(server), certificate(root), certificate(other))
    #expect(
      try evaluate(pin([authority], chain: true, host: true), isKnown: false), "the store does not matter")
    #expect(try evaluate(pin([leaf], chain: true, host: true), isKnown: false))
    #expect(try !evaluate(pin([stranger], chain: true, host: true)))
    #expect(try !evaluate(pin([], chain: true, host: true)))
    #expect(try !evaluate(pin([authority], chain: true, host: true), host: "else.test"))
    #expect(try evaluate(pin([authority], chain: true, host: false), host: "else.test"))
  }

  @Test("Without validation of the chain only the pin counts") func pinsWithoutValidation() throws {
    let (leaf, stranger) = try (certificate(server), certificate(other))
    #expect(try evaluate(pin([leaf], chain: false, host: true), isKnown: false, host: "else.test"))
    #expect(try !evaluate(pin([stranger], chain: false, host: true)))
    #expect(try !evaluate(pin([], chain: false, host: false)))
  }

  private func pin(keys: [SecKey], chain: Bool, host: Bool) -> ServerTrustPolicy {
    .pinPublicKeys(publicKeys: keys, validateCertificateChain: chain, validateHost: host)
  }

  @Test("Pinned keys are checked with the trust store") func pinnedKeys() throws {
    let (own, stranger) = try (key(server), key(other))
    #expect(try evaluate(pin(keys: [own], chain: true, host: true)))
    #expect(try evaluate(pin(keys: [stranger, key(root)], chain: true, host: true)))
    #expect(try !evaluate(pin(keys: [own], chain: true, host: true), isKnown: false))
    #expect(try !evaluate(pin(keys: [own], chain: true, host: true), host: "else.test"))
    #expect(try evaluate(pin(keys: [own], chain: true, host: false), host: "else.test"))
    #expect(try evaluate(pin(keys: [own], chain: false, host: true), isKnown: false, host: "else.test"))
    #expect(try !evaluate(pin(keys: [stranger], chain: false, host: false)))
    #expect(try !evaluate(pin(keys: [], chain: false, host: false)))
  }

  @Test("Disabled and custom policies decide alone") func customPolicies() throws {
    #expect(try evaluate(.disableEvaluation, isKnown: false, host: "else.test"))
    var hosts: [String] = []
    let custom = ServerTrustPolicy.customEvaluation { trust, host in
      hosts.append(host)
      return host == "api.test" && trust.certificates.count == 1
    }
    #expect(try evaluate(custom, isKnown: false))
    #expect(try !evaluate(custom, host: "else.test"))
    #expect(hosts == ["api.test", "else.test"])
  }

  @Test("Bundles have certificates and keys") func bundles() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID()).bundle")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try Data(root.certificatePEM.utf8).write(to: folder.appendingPathComponent("root.pem"))
    try Data("none".utf8).write(to: folder.appendingPathComponent("broken.cer"))
    let bundle = try #require(Bundle(path: folder.path))
    #expect(try ServerTrustPolicy.certificates(in: bundle) == [certificate(root)])
    #expect(try ServerTrustPolicy.publicKeys(in: bundle) == [key(root)])
  }

  @Test("A manager of a dictionary is converted completely") func conversion() throws {
    let manager = ServerTrustPolicyManager(policies: [
      "api.test": .disableEvaluation, "*.test": .disableEvaluation,
      "own.test": .customEvaluation { _, _ in false },
    ])
    #expect(manager.serverTrustPolicy(forHost: "unlisted.test") == nil)
    let current = manager.current
    #expect(
      type(of: current) == Alamofire::ServerTrustManager.self, "evaluated in the handshake, without asking")
    #expect(try current.serverTrustEvaluator(forHost: "api.test") is DisabledTrustEvaluator)
    #expect(
      try current.serverTrustEvaluator(forHost: "unlisted.test") == nil, "the system's default, no refusal")
    let own = try #require(try current.serverTrustEvaluator(forHost: "own.test"))
    #expect(throws: (any Error).self) { try own.evaluate(trust(), forHost: "own.test") }
  }

  @Test("A subclass is called for each host") func subclass() throws {
    final class Wildcards: ServerTrustPolicyManager {
      var calls: [String] = []
      override func serverTrustPolicy(forHost host: String) -> ServerTrustPolicy? {
        calls.append(host)
        return host.hasSuffix(".test") ? .disableEvaluation : super.serverTrustPolicy(forHost: host)
      }
    }
    let manager = Wildcards(policies: ["a.other": .performDefaultEvaluation(validateHost: true)])
    let current = manager.current
    #expect(!current.allHostsMustBeEvaluated)
    #expect(try current.serverTrustEvaluator(forHost: "x.test") is DisabledTrustEvaluator)
    #expect(try current.serverTrustEvaluator(forHost: "a.other") is DefaultTrustEvaluator)
    #expect(try current.serverTrustEvaluator(forHost: "b.other") == nil)
    #expect(manager.calls == ["x.test", "a.other", "b.other"])
  }
}
