import AlamofireV3
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite(.timeLimit(.minutes(5))) struct TrustTests {
  private static let certificate = read(TestIdentity.localhost)
  private static let authority = read(TestIdentity.localhostAuthority)

  private static func read(_ identity: TestIdentity) -> SecCertificate? {
    try? SecCertificate.all(in: Data(identity.certificatePEM.utf8)).first
  }

  /// Returns the outcome of a request to `localhost`. Its authority is trusted only if `trusts` is true.
  private func outcome(_ policy: ServerTrustPolicy?, trusts: Bool = false) async throws -> String {
    let server = try HTTPTestServer(.tls(.localhost))
    var options = TransportOptions()
    if trusts { options.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8)) }
    let policies = ServerTrustPolicyManager(policies: policy.map { ["localhost": $0] } ?? [:])
    let end = await Manager.isolated(policies: policies, options: options).request(.GET, server.url("/get"))
      .end()
    return end.fault ?? "\(end.status ?? 0)"
  }

  private let refused = "NSURLErrorDomain \(NSURLErrorCancelled)"

  @Test("A host without a policy is evaluated by the system") func unlistedHost() async throws {
    #expect(try await outcome(nil, trusts: true) == "200")
    let fault = try await outcome(nil)
    #expect(fault.hasPrefix("NSURLErrorDomain") && fault != refused)
  }

  @Test("Policies decide") func policies() async throws {
    #expect(try await outcome(.DisableEvaluation) == "200")
    #expect(try await outcome(.PerformDefaultEvaluation(validateHost: true)) == refused)
    #expect(try await outcome(.PerformDefaultEvaluation(validateHost: true), trusts: true) == "200")
    #expect(try await outcome(.CustomEvaluation { trust, host in host == "localhost" }) == "200")
    #expect(try await outcome(.CustomEvaluation { _, _ in false }, trusts: true) == refused)
  }

  @Test("Pins decide") func pins() async throws {
    let pin = try #require(Self.certificate)
    let authority = try #require(Self.authority)
    let stranger = try #require(
      Self.read(try TestIdentity(.init(commonName: "stranger"))))
    func pins(_ certificates: [SecCertificate], chain: Bool) -> ServerTrustPolicy {
      .PinCertificates(certificates: certificates, validateCertificateChain: chain, validateHost: true)
    }
    #expect(try await outcome(pins([pin], chain: false)) == "200")
    #expect(try await outcome(pins([authority], chain: true)) == "200")
    #expect(try await outcome(pins([stranger], chain: false), trusts: true) == refused)
    #expect(try await outcome(pins([], chain: false), trusts: true) == refused)
    let key = try #require(pin.publicKey)
    func keys(_ keys: [SecKey], chain: Bool) -> ServerTrustPolicy {
      .PinPublicKeys(publicKeys: keys, validateCertificateChain: chain, validateHost: true)
    }
    #expect(try await outcome(keys([key], chain: false)) == "200")
    #expect(try await outcome(keys([key], chain: true), trusts: true) == "200")
    #expect(try await outcome(keys([key], chain: true)) == refused)
    #expect(try await outcome(keys([try #require(stranger.publicKey)], chain: false)) == refused)
  }

  @Test("A subclass chooses the policy") func subclass() async throws {
    final class Wildcards: ServerTrustPolicyManager {
      var calls: [String] = []
      override func serverTrustPolicyForHost(_ host: String) -> ServerTrustPolicy? {
        calls.append(host)
        return host.hasPrefix("local") ? .DisableEvaluation : nil
      }
    }
    let server = try HTTPTestServer(.tls(.localhost))
    let policies = Wildcards(policies: [:])
    let end = await Manager.isolated(policies: policies).request(.GET, server.url("/get")).end()
    #expect(end.status == 200)
    #expect(policies.calls.contains("localhost"))
  }

  @Test("A policy is found in any spelling of its host") func spellings() async throws {
    final class Own: ServerTrustPolicyManager {}
    final class Calling: ServerTrustPolicyManager {
      override func serverTrustPolicyForHost(_ host: String) -> ServerTrustPolicy? {
        super.serverTrustPolicyForHost(host)
      }
    }
    let server = try HTTPTestServer(.tls(.localhost))
    var options = TransportOptions()
    options.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
    let policies: [String: ServerTrustPolicy] = ["LocalHost.": .CustomEvaluation { _, _ in false }]
    for policies in [
      ServerTrustPolicyManager(policies: policies), Own(policies: policies), Calling(policies: policies),
    ] {
      let end = await Manager.isolated(policies: policies, options: options)
        .request(.GET, server.url("/get")).end()
      #expect(end.fault == refused, "\(type(of: policies))")
      #expect(policies.serverTrustPolicyForHost("localhost") != nil)
      #expect(policies.serverTrustPolicyForHost("a.localhost") == nil)
    }
    #expect(
      ServerTrustPolicyManager(policies: ["*": .DisableEvaluation]).serverTrustPolicyForHost("a.b") == nil)
  }

  @Test("A policy evaluates directly") func directEvaluation() throws {
    let pin = try #require(Self.certificate)
    let trust = SecTrust(certificates: [pin], host: "localhost")
    #expect(ServerTrustPolicy.DisableEvaluation.evaluateServerTrust(trust, isValidForHost: "localhost"))
    #expect(
      !ServerTrustPolicy.PerformDefaultEvaluation(validateHost: true)
        .evaluateServerTrust(trust, isValidForHost: "localhost"))
    let pinned = ServerTrustPolicy.PinCertificates(
      certificates: [try #require(Self.authority)], validateCertificateChain: true, validateHost: true)
    let whole = SecTrust(certificates: [pin, try #require(Self.authority)], host: "localhost")
    #expect(pinned.evaluateServerTrust(whole, isValidForHost: "localhost"))
    #expect(!pinned.evaluateServerTrust(whole, isValidForHost: "example.com"))
  }

  @Test("A bundle without certificates has none") func emptyBundle() {
    #expect(ServerTrustPolicy.certificatesInBundle().count == ServerTrustPolicy.publicKeysInBundle().count)
  }

  @Test("The closure of the delegate has priority over the policies") func priority() async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    let manager = Manager.isolated()
    manager.delegate.sessionDidReceiveChallenge = { _, challenge in
      #expect(challenge.protectionSpace.host == "localhost")
      return (.cancelAuthenticationChallenge, nil)
    }
    let end = await manager.request(.GET, server.url("/get")).end()
    #expect(end.fault == refused)
  }
}
