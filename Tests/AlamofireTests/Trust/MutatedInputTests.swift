import Alamofire
import HTTPTestServer
import Randomness
import Scenarios
import Testing

/// Corrupt certificates, keys, revocation lists, responses and pins. They are parsed or refused, without a crash.
@Suite("Mutated trust inputs", .timeLimit(.minutes(5))) struct MutatedInputTests {
  private func mutated(_ data: Data, _ numbers: inout SeededGenerator) -> Data {
    var bytes = Array(data)
    for _ in 0..<Int.random(in: 1...4, using: &numbers) where !bytes.isEmpty {
      let place = Int.random(in: 0..<bytes.count, using: &numbers)
      switch Int.random(in: 0..<4, using: &numbers) {
      case 0: bytes[place] = UInt8.random(in: 0...255, using: &numbers)
      case 1: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &numbers)
      case 2: bytes.removeLast(bytes.count - place)
      default: bytes.insert(UInt8.random(in: 0...255, using: &numbers), at: place)
      }
    }
    return Data(bytes)
  }

  @Test("Corrupt input is parsed or refused", .steps, arguments: [1, 2, 3, 4] as [UInt64])
  func corruptInput(seed: UInt64) throws {
    var numbers = SeededGenerator(seed: seed)
    let trustFixtures = try TrustFixtures.shared.get()
    let identity = try trustFixtures.server {
      $0.statusURL = "http://127.0.0.1:1/ocsp"
      $0.listURL = "http://127.0.0.1:1/list"
      $0.ipAddresses = ["192.0.2.1", "::1"]
    }
    let leaf = try #require(Certificate.all(in: Data(identity.certificatePEM.utf8)).first)
    let list = Data(try trustFixtures.middle.revocationList(of: [identity]))
    let staple = Data(try StatusResponder(trustFixtures.middle).response(about: identity))
    let middle = try #require(Certificate.all(in: Data(trustFixtures.middle.certificatePEM.utf8)).first)
    var (accepted, readable) = (0, 0)
    for number in 0..<150 {
      step("input \(number)")
      let certificate = Certificate(data: mutated(leaf.data, &numbers))
      let text = Data(
        String(decoding: mutated(Data(identity.certificatePEM.utf8), &numbers), as: UTF8.self).utf8)
      _ = try? Certificate.all(in: text)
      _ = try? PublicKey.all(in: mutated(try #require(leaf.publicKey).data, &numbers))
      _ = try? PublicKeyPin(String(decoding: mutated(Data(Known.pin.utf8), &numbers), as: UTF8.self))
      if let certificate {
        readable += 1
        _ = (
          certificate.hostNames, certificate.addresses, certificate.validity,
          certificate.publicKey?.description
        )
        _ = (certificate.subject, certificate.serialNumber, certificate.isSelfSigned)
      }
      var options = trustFixtures.options
      options.certificateRevocationLists = [mutated(list, &numbers)]
      let trust = ServerTrust(
        certificates: [certificate ?? leaf, middle], host: "api.lab.localhost",
        stapledResponse: mutated(staple, &numbers), transportOptions: options)
      let evaluator = RevocationTrustEvaluator(options: [
        .any, .networkAccessDisabled, .requirePositiveResponse,
      ])
      do {
        try evaluator.evaluate(trust, forHost: trust.host)
        accepted += 1
      } catch {
        #expect(error.asAFError?.isServerTrustEvaluationError == true)
      }
      _ = trust.serverCertificates
    }
    // A signature is valid for its own certificate only, and "positive" has none for the authority.
    #expect(accepted == 0 && readable > 10)
  }
}
