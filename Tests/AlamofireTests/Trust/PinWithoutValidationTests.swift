import Alamofire
import Foundation
import HTTPTestServer
import Testing

@Suite("Pins and lists of revoked certificates") struct PinWithoutValidationTests {
  private static func pins(of identity: TestIdentity) throws -> [Certificate] {
    try Certificate.all(in: Data(identity.certificatePEM.utf8))
  }

  @Test("A list counts for pins without validation, also if the server withholds the issuer")
  func withheldIssuer() throws {
    let laboratory = try Laboratory.shared.get()
    let unknown = try Laboratory.authority("Unknown middle", by: laboratory.stranger)
    let server = try laboratory.server { $0.issuer = unknown }
    let other = try laboratory.server { $0.issuer = unknown }
    let pins = try Self.pins(of: server)
    let evaluators: [any ServerTrustEvaluating] = [
      .pinnedCertificates(certificates: pins, performDefaultValidation: false, validateHost: false),
      .publicKeys(keys: pins.af.publicKeys, performDefaultValidation: false, validateHost: false),
      .pinnedCertificates(certificates: pins, acceptSelfSignedCertificates: true),
    ]
    for (revoked, isRefused) in [(server, true), (other, false)] {
      let specimen = try laboratory.specimen(server) {
        $0.tls.sendsIntermediates = false
        $0.options.certificateRevocationLists = [Data(try unknown.revocationList(of: [revoked]))]
      }
      for evaluator in evaluators {
        var failure: ServerTrust.Failure?
        do {
          try evaluator.evaluate(specimen.trust(), forHost: specimen.host)
        } catch {
          failure = error.asAFError?.underlyingError as? ServerTrust.Failure
        }
        #expect(failure?.kind == (isRefused ? .revoked : nil))
      }
    }
  }

  @Test("A list that cannot be used says why it cannot")
  func unusableList() throws {
    let laboratory = try Laboratory.shared.get()
    let server = try laboratory.server()
    for (rule, word) in [(RevocationListRule.delta, "delta"), (.unknown, "critical extension")] {
      let specimen = try laboratory.specimen(server) {
        $0.options.certificateRevocationLists = [
          Data(try laboratory.middle.revocationList(of: [server], rule: rule))
        ]
      }
      let failure = #expect(throws: ServerTrust.Failure.self) { try specimen.trust().evaluate() }
      #expect(failure?.kind == .revoked)
      #expect(failure?.errorDescription?.contains(word) == true, "\(failure?.errorDescription ?? "")")
    }
  }

  @Test("The error of pinned keys names the pins that were expected", arguments: [false, true])
  func expectedPins(byDigest: Bool) throws {
    let laboratory = try Laboratory.shared.get()
    let keys = try Self.pins(of: laboratory.otherMiddle).af.publicKeys
    let pin = try #require(keys.first?.pin.description)
    let evaluator: PublicKeysTrustEvaluator =
      try byDigest ? .publicKeys(pins: [pin]) : .publicKeys(keys: keys)
    let specimen = laboratory.specimen(try laboratory.server())
    let trust = try specimen.trust()
    let error = #expect(throws: AFError.self) { try evaluator.evaluate(trust, forHost: specimen.host) }
    let message = try #require(error?.localizedDescription)
    #expect(message.contains("Pinned: \(pin). Keys of the server: sha256/"), "\(message)")
    let shown = try #require(trust.certificates.first?.publicKey?.pin.description)
    #expect(message.contains(shown))
  }
}
