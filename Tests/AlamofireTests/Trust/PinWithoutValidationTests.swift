import Alamofire
import Foundation
import HTTPTestServer
import Testing

@Suite("Pins and lists of revoked certificates") struct PinWithoutValidationTests {
  private static func pins(of identity: TestIdentity) throws -> [Certificate] {
    try Certificate.all(in: Data(identity.certificatePEM.utf8))
  }

  @Test("A revocation list applies to pins without validation, also if the server withholds the issuer")
  func withheldIssuer() throws {
    let trustFixtures = try TrustFixtures.shared.get()
    let unknown = try TrustFixtures.authority("Unknown middle", by: trustFixtures.untrusted)
    let server = try trustFixtures.server { $0.issuer = unknown }
    let other = try trustFixtures.server { $0.issuer = unknown }
    let pins = try Self.pins(of: server)
    let evaluators: [any ServerTrustEvaluating] = [
      .pinnedCertificates(certificates: pins, performDefaultValidation: false, validateHost: false),
      .publicKeys(keys: pins.af.publicKeys, performDefaultValidation: false, validateHost: false),
      .pinnedCertificates(certificates: pins, acceptSelfSignedCertificates: true),
    ]
    for (revoked, isRefused) in [(server, true), (other, false)] {
      let fixture = try trustFixtures.fixture(server) {
        $0.tls.sendsIntermediates = false
        $0.options.certificateRevocationLists = [Data(try unknown.revocationList(of: [revoked]))]
      }
      for evaluator in evaluators {
        var failure: ServerTrust.Failure?
        do {
          try evaluator.evaluate(fixture.trust(), forHost: fixture.host)
        } catch {
          failure = error.asAFError?.underlyingError as? ServerTrust.Failure
        }
        #expect(failure?.kind == (isRefused ? .revoked : nil))
      }
    }
  }

  @Test("A list that cannot be used is reported with the reason")
  func unusableList() throws {
    let trustFixtures = try TrustFixtures.shared.get()
    let server = try trustFixtures.server()
    for (rule, word) in [(RevocationListRule.delta, "delta"), (.unknown, "critical extension")] {
      let fixture = try trustFixtures.fixture(server) {
        $0.options.certificateRevocationLists = [
          Data(try trustFixtures.middle.revocationList(of: [server], rule: rule))
        ]
      }
      let failure = #expect(throws: ServerTrust.Failure.self) { try fixture.trust().evaluate() }
      #expect(failure?.kind == .revoked)
      #expect(failure?.errorDescription?.contains(word) == true, "\(failure?.errorDescription ?? "")")
    }
  }

  @Test("The error of pinned keys names the expected pins", arguments: [false, true])
  func expectedPins(byDigest: Bool) throws {
    let trustFixtures = try TrustFixtures.shared.get()
    let keys = try Self.pins(of: trustFixtures.otherMiddle).af.publicKeys
    let pin = try #require(keys.first?.pin.description)
    let evaluator: PublicKeysTrustEvaluator =
      try byDigest ? .publicKeys(pins: [pin]) : .publicKeys(keys: keys)
    let fixture = trustFixtures.fixture(try trustFixtures.server())
    let trust = try fixture.trust()
    let error = #expect(throws: AFError.self) { try evaluator.evaluate(trust, forHost: fixture.host) }
    let message = try #require(error?.localizedDescription)
    #expect(message.contains("Pinned: \(pin). Keys of the server: sha256/"), "\(message)")
    let shown = try #require(trust.certificates.first?.publicKey?.pin.description)
    #expect(message.contains(shown))
  }
}
