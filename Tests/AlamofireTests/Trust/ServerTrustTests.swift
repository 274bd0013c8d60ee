import Alamofire
import HTTPTestServer
import HTTPWire
import Testing

@Suite("ServerTrust and its helpers") struct ServerTrustTests {
  private let trustFixtures: TrustFixtures

  init() throws {
    trustFixtures = try TrustFixtures.shared.get()
  }

  private func certificate(_ identity: TestIdentity) throws -> Certificate {
    try #require(Certificate.all(in: Data(identity.certificatePEM.utf8)).first)
  }

  @Test("A valid server is accepted") func validServer() throws {
    let identity = try trustFixtures.server()
    let trust = try trustFixtures.fixture(identity).trust()
    #expect(trust.policies == [.hostname("api.lab.localhost")])
    #expect(trust.anchors == nil)
    let path = try trust.evaluate()
    let expected = try [identity, trustFixtures.middle, trustFixtures.root].map(certificate)
    #expect(path == expected)
    #expect(trust.af.certificates == expected)
    #expect(trust.af.certificateData == expected.map(\.data))
    #expect(trust.af.publicKeys == expected.compactMap(\.publicKey))
    #expect("\(trust)".contains("api.lab.localhost"))
    try trust.af.evaluate()
    try trust.af.performValidation(forHost: "api.lab.localhost")
    try trust.af.performDefaultValidation(forHost: "elsewhere.example")
  }

  @Test("Policies and anchors can be replaced") func replacement() throws {
    let trust = try trustFixtures.fixture(trustFixtures.server()).trust()
    #expect(try trust.af.apply(policy: .af.hostname("other.lab.localhost")) === trust)
    let wrong = #expect(throws: ServerTrust.Failure.self) { try trust.evaluate() }
    #expect(wrong?.kind == .hostMismatch && wrong?.certificateIndex == 0)
    #expect(wrong?.status == -67602 && wrong?.status.af.isSuccess == false)
    #expect(wrong?.result == .recoverableTrustFailure && wrong?.result.af.isSuccess == false)
    #expect(wrong?.localizedDescription.contains("other.lab.localhost") == true)
    try trust.af.evaluate(afterApplying: .af.default)
    #expect(trust.policies == [.default])
    try trust.af.setAnchorCertificates([certificate(trustFixtures.otherRoot)])
    #expect(#expect(throws: ServerTrust.Failure.self) { try trust.evaluate() }?.kind == .unknownRoot)
    try trust.af.setAnchorCertificates([certificate(trustFixtures.middle)])
    #expect(try trust.evaluate().count == 2)
    try trust.af.setAnchorCertificates([])
    #expect(#expect(throws: ServerTrust.Failure.self) { try trust.evaluate() }?.kind == .unknownRoot)
    trust.anchors = nil
    #expect(try trust.evaluate().count == 3)
  }

  @Test("All policies must hold") func policies() throws {
    let identity = try trustFixtures.server { $0.dnsNames = ["a.example", "b.example"] }
    let trust = try trustFixtures.fixture(identity) { $0.host = "a.example" }.trust()
    trust.policies = [.hostname("a.example"), .hostname("b.example")]
    try trust.evaluate()
    trust.policies.append(.hostname("c.example"))
    #expect(throws: ServerTrust.Failure.self) { try trust.evaluate() }
  }

  @Test("An empty or invalid chain is refused") func invalidChain() throws {
    let empty = ServerTrust(certificates: [], host: "example.com")
    #expect(throws: ServerTrust.Failure.self) { try empty.evaluate() }
    #expect(empty.serverCertificates.isEmpty)
    // The second certificate does not replace an invalid leaf.
    let good = try certificate(trustFixtures.server())
    let chain = PresentedChain(
      host: "api.lab.localhost", port: 443,
      certificates: [Data("broken".utf8), good.data, try certificate(trustFixtures.middle).data])
    let trust = ServerTrust(chain, options: trustFixtures.options)
    #expect(throws: ServerTrust.Failure.self) { try trust.evaluate() }
    #expect(trust.certificates.isEmpty)
  }

  @Test("Empty pins refuse every server") func emptyPins() throws {
    let trust = try trustFixtures.fixture(trustFixtures.server()).trust()
    let evaluators: [any ServerTrustEvaluating] = [
      .pinnedCertificates(certificates: [], performDefaultValidation: false, validateHost: false),
      .publicKeys(keys: [], performDefaultValidation: false, validateHost: false),
      try .publicKeys(pins: [], performDefaultValidation: false, validateHost: false),
    ]
    for evaluator in evaluators {
      let error = #expect(throws: AFError.self) { try evaluator.evaluate(trust, forHost: trust.host) }
      switch error {
      case .serverTrustEvaluationFailed(.noCertificatesFound),
        .serverTrustEvaluationFailed(.noPublicKeysFound):
        break
      default: Issue.record("\(String(describing: error))")
      }
    }
  }

  @Test("A refusal by pins contains the certificates of the server") func pinFailure() throws {
    let trust = try trustFixtures.fixture(trustFixtures.server()).trust()
    let untrusted = try certificate(trustFixtures.untrusted)
    let byCertificate = #expect(throws: AFError.self) {
      try PinnedCertificatesTrustEvaluator(certificates: [untrusted]).evaluate(trust, forHost: trust.host)
    }
    guard
      case .serverTrustEvaluationFailed(
        .certificatePinningFailed(
          trust.host, trust: let shown, pinnedCertificates: [untrusted], let certificates)) =
        byCertificate
    else {
      Issue.record("\(String(describing: byCertificate))")
      return
    }
    #expect(shown === trust && certificates == trust.serverCertificates)
    let keys = try [#require(untrusted.publicKey)]
    let byKey = #expect(throws: AFError.self) {
      try PublicKeysTrustEvaluator(keys: keys).evaluate(trust, forHost: trust.host)
    }
    guard
      case .serverTrustEvaluationFailed(.publicKeyPinningFailed(_, _, pinnedKeys: keys, let serverKeys)) =
        byKey
    else {
      Issue.record("\(String(describing: byKey))")
      return
    }
    // The message contains the pins of the server.
    for key in serverKeys { #expect(byKey?.localizedDescription.contains(key.pin.description) == true) }
  }

  @Test("The first refusal of several evaluators is the error") func firstRefusal() throws {
    let trust = try trustFixtures.fixture(trustFixtures.server()).trust()
    let calls = Recorder<String>()
    struct Refusal: Error {}
    struct Spy: ServerTrustEvaluating {
      let calls: Recorder<String>
      let name: String
      var refuses = false
      func evaluate(_ trust: SecTrust, forHost host: String) throws {
        calls.add(name)
        if refuses { throw Refusal() }
      }
    }
    let evaluators: [any ServerTrustEvaluating] = [
      Spy(calls: calls, name: "a"), Spy(calls: calls, name: "b", refuses: true), Spy(calls: calls, name: "c"),
    ]
    #expect(throws: Refusal.self) { try evaluators.evaluate(trust, forHost: trust.host) }
    #expect(throws: Refusal.self) {
      try CompositeTrustEvaluator(evaluators: evaluators).evaluate(trust, forHost: trust.host)
    }
    #expect(calls.values == ["a", "b", "a", "b"])
  }

  @Test("Internationalised names are encoded") func internationalName() throws {
    let identity = try trustFixtures.server { $0.dnsNames = ["xn--bcher-kva.lab.localhost"] }
    let trust = try trustFixtures.fixture(identity) { $0.host = "b\u{FC}cher.lab.localhost" }.trust()
    try trust.evaluate()
  }

  @Test("The deprecated methods receive status and result") func deprecatedMethods() throws {
    struct Old: Error, Equatable {
      let status: OSStatus
      let result: SecTrustResultType
    }
    let trust = try trustFixtures.fixture(trustFixtures.server { $0.issuer = trustFixtures.untrusted })
      .trust()
    let validation: any OlderValidation = trust.af
    #expect(throws: Old(status: -67843, result: .recoverableTrustFailure)) {
      try validation.validate { Old(status: $0, result: $1) }
    }
    #expect(throws: Old(status: -67843, result: .recoverableTrustFailure)) {
      try validation.validate(policy: .default) { Old(status: $0, result: $1) }
    }
    trust.anchors = [try certificate(trustFixtures.untrusted)]
    try validation.validate(policy: .default) { Old(status: $0, result: $1) }
    #expect(errSecSuccess.af.isSuccess && SecTrustResultType.proceed.af.isSuccess)
    #expect(SecTrustResultType.unspecified.af.isSuccess && !SecTrustResultType.deny.af.isSuccess)
  }

  @Test("Many revocation lists of an authority are searched in time") func manyLists() throws {
    // A server can send any number of certificates. Each that is not in the path costs a search.
    let many = try (0..<60).map { try TrustFixtures.authority("Many \($0 % 3)").certificatePEM }
    let fixture = try trustFixtures.fixture(trustFixtures.server()) { $0.tls.appendedCertificates = many }
    let trust = try fixture.trust()
    let duration = try processorTime {
      try trust.evaluate()
      #expect(trust.serverCertificates.count == 3)
    }
    #expect(duration < .seconds(5))
  }
}

/// The deprecated methods, called without a warning for each use.
private protocol OlderValidation {
  func validate(
    policy: SecPolicy, errorProducer: (_ status: OSStatus, _ result: SecTrustResultType) -> any Error) throws
  func validate(errorProducer: (_ status: OSStatus, _ result: SecTrustResultType) -> any Error) throws
}

extension AlamofireExtension: OlderValidation where ExtendedType == SecTrust {}
