import Alamofire
import Foundation
import HTTPTestServer
import HTTPWire
import Testing

/// Chains of a server are verified on a thread that other requests use.
@Suite("Attacks by long chains", .timeLimit(.minutes(5))) struct ChainSizeAttackTests {
  private static func der(_ identity: TestIdentity) throws -> Data {
    try #require(Certificate.all(in: Data(identity.certificatePEM.utf8)).first).data
  }

  /// Measures the verification of chains that are nearly as long as OpenSSL permits: 100 KiB of certificates, some 250.
  @Test("Verification of a long chain ends soon", arguments: ["row", "crowd"], [false, true])
  func size(shape: String, isShuffled: Bool) throws {
    let trustFixtures = try TrustFixtures.shared.get()
    var issuer = try TrustFixtures.authority("First")
    var shown: [Data] = []
    for number in 0..<(shape == "row" ? 90 : 150) {
      // In a crowd, all authorities have one name and different keys.
      let next = try TrustFixtures.authority(shape == "row" ? "A\(number)" : "Same", by: issuer)
      shown.append(try Self.der(next))
      if shape == "row" || number == 0 { issuer = next }
    }
    let leaf = try trustFixtures.server { $0.issuer = issuer }
    shown.reverse()
    if isShuffled {
      shown = shown.enumerated().sorted { ($0.offset * 37) % 101 < ($1.offset * 37) % 101 }.map(\.element)
    }
    let chain = PresentedChain(
      host: "api.lab.localhost", port: 443, certificates: [try Self.der(leaf)] + shown)
    let pins = try Certificate.all(in: Data(trustFixtures.middle.certificatePEM.utf8))
    for evaluator: any ServerTrustEvaluating in [
      .default, .pinnedCertificates(certificates: pins, performDefaultValidation: false, validateHost: false),
    ] {
      let trust = ServerTrust(chain, options: trustFixtures.options)
      let took = processorTime {
        #expect(throws: AFError.self) { try evaluator.evaluate(trust, forHost: chain.host) }
      }
      #expect(took < .seconds(10), "\(took)")
    }
  }
}
