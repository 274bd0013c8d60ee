import Alamofire
import HTTPTestServer
import HTTPWire
import Testing

@Suite("ServerTrust and its helpers") struct ServerTrustTests {
  private let laboratory: Laboratory

  init() throws {
    laboratory = try Laboratory.shared.get()
  }

  private func certificate(_ identity: TestIdentity) throws -> Certificate {
    try #require(Certificate.all(in: Data(identity.certificatePEM.utf8)).first)
  }

  @Test func aGoodServerPasses() throws {
    let identity = try laboratory.server()
    let trust = try laboratory.specimen(identity).trust()
    #expect(trust.policies == [.hostname("api.lab.localhost")])
    #expect(trust.anchors == nil)
    let path = try trust.evaluate()
    let expected = try [identity, laboratory.middle, laboratory.root].map(certificate)
    #expect(path == expected)
    #expect(trust.af.certificates == expected)
    #expect(trust.af.certificateData == expected.map(\.data))
    #expect(trust.af.publicKeys == expected.compactMap(\.publicKey))
    #expect("\(trust)".contains("api.lab.localhost"))
    try trust.af.evaluate()
    try trust.af.performValidation(forHost: "api.lab.localhost")
    try trust.af.performDefaultValidation(forHost: "elsewhere.example")
  }

  @Test func policiesAndAnchorsCanBeExchanged() throws {
    let trust = try laboratory.specimen(laboratory.server()).trust()
    #expect(try trust.af.apply(policy: .af.hostname("other.lab.localhost")) === trust)
    let wrong = #expect(throws: ServerTrust.Failure.self) { try trust.evaluate() }
    #expect(wrong?.kind == .hostMismatch && wrong?.certificateIndex == 0)
    #expect(wrong?.status == -67602 && wrong?.status.af.isSuccess == false)
    #expect(wrong?.result == .recoverableTrustFailure && wrong?.result.af.isSuccess == false)
    #expect(wrong?.localizedDescription.contains("other.lab.localhost") == true)
    try trust.af.evaluate(afterApplying: .af.default)
    #expect(trust.policies == [.default])
    try trust.af.setAnchorCertificates([certificate(laboratory.otherRoot)])
    #expect(#expect(throws: ServerTrust.Failure.self) { try trust.evaluate() }?.kind == .unknownRoot)
    try trust.af.setAnchorCertificates([certificate(laboratory.middle)])
    #expect(try trust.evaluate().count == 2)
    try trust.af.setAnchorCertificates([])
    #expect(#expect(throws: ServerTrust.Failure.self) { try trust.evaluate() }?.kind == .unknownRoot)
    trust.anchors = nil
    #expect(try trust.evaluate().count == 3)
  }

  @Test func severalPoliciesAllCount() throws {
    let identity = try laboratory.server { $0.dnsNames = ["a.example", "b.example"] }
    let trust = try laboratory.specimen(identity) { $0.host = "a.example" }.trust()
    trust.policies = [.hostname("a.example"), .hostname("b.example")]
    try trust.evaluate()
    trust.policies.append(.hostname("c.example"))
    #expect(throws: ServerTrust.Failure.self) { try trust.evaluate() }
  }

  @Test func anEmptyOrBrokenChainIsRefused() throws {
    let empty = ServerTrust(certificates: [], host: "example.com")
    #expect(throws: ServerTrust.Failure.self) { try empty.evaluate() }
    #expect(empty.serverCertificates.isEmpty)
    // The second certificate does not take the place of a leaf that cannot be read.
    let good = try certificate(laboratory.server())
    let chain = PresentedChain(
      host: "api.lab.localhost", port: 443,
      certificates: [Data("broken".utf8), good.data, try certificate(laboratory.middle).data])
    let trust = ServerTrust(chain, options: laboratory.options)
    #expect(throws: ServerTrust.Failure.self) { try trust.evaluate() }
    #expect(trust.certificates.isEmpty)
  }

  @Test func pinsOfNothingRefuseEverybody() throws {
    let trust = try laboratory.specimen(laboratory.server()).trust()
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

  @Test func aRefusalByPinsTellsWhatWasShown() throws {
    let trust = try laboratory.specimen(laboratory.server()).trust()
    let stranger = try certificate(laboratory.stranger)
    let byCertificate = #expect(throws: AFError.self) {
      try PinnedCertificatesTrustEvaluator(certificates: [stranger]).evaluate(trust, forHost: trust.host)
    }
    guard
      case .serverTrustEvaluationFailed(
        .certificatePinningFailed(
          trust.host, trust: let shown, pinnedCertificates: [stranger], let certificates)) =
        byCertificate
    else {
      Issue.record("\(String(describing: byCertificate))")
      return
    }
    #expect(shown === trust && certificates == trust.serverCertificates)
    let keys = try [#require(stranger.publicKey)]
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
    // The message holds what would have to be pinned.
    for key in serverKeys { #expect(byKey?.localizedDescription.contains(key.pin.description) == true) }
  }

  @Test func theFirstRefusalOfSeveralCounts() throws {
    let trust = try laboratory.specimen(laboratory.server()).trust()
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

  @Test func namesInLettersBecomeALabels() throws {
    let identity = try laboratory.server { $0.dnsNames = ["xn--bcher-kva.lab.localhost"] }
    let trust = try laboratory.specimen(identity) { $0.host = "b\u{FC}cher.lab.localhost" }.trust()
    try trust.evaluate()
  }

  @Test func olderCodeGetsStatusAndResult() throws {
    struct Old: Error, Equatable {
      let status: OSStatus
      let result: SecTrustResultType
    }
    let trust = try laboratory.specimen(laboratory.server { $0.issuer = laboratory.stranger }).trust()
    let validation: any OlderValidation = trust.af
    #expect(throws: Old(status: -67843, result: .recoverableTrustFailure)) {
      try validation.validate { Old(status: $0, result: $1) }
    }
    #expect(throws: Old(status: -67843, result: .recoverableTrustFailure)) {
      try validation.validate(policy: .default) { Old(status: $0, result: $1) }
    }
    trust.anchors = [try certificate(laboratory.stranger)]
    try validation.validate(policy: .default) { Old(status: $0, result: $1) }
    #expect(errSecSuccess.af.isSuccess && SecTrustResultType.proceed.af.isSuccess)
    #expect(SecTrustResultType.unspecified.af.isSuccess && !SecTrustResultType.deny.af.isSuccess)
  }

  @Test func anAuthoritysListsOfManyCertificatesAreLookedThroughInTime() throws {
    // A server may send as many as it likes; each that is not linked costs a search.
    let many = try (0..<60).map { try Laboratory.authority("Many \($0 % 3)").certificatePEM }
    let specimen = try laboratory.specimen(laboratory.server()) { $0.tls.appendedCertificates = many }
    let trust = try specimen.trust()
    let duration = try processorTime {
      try trust.evaluate()
      #expect(trust.serverCertificates.count == 3)
    }
    #expect(duration < .seconds(5))
  }
}

/// The deprecated forms, without a warning for each use.
private protocol OlderValidation {
  func validate(
    policy: SecPolicy, errorProducer: (_ status: OSStatus, _ result: SecTrustResultType) -> any Error) throws
  func validate(errorProducer: (_ status: OSStatus, _ result: SecTrustResultType) -> any Error) throws
}

extension AlamofireExtension: OlderValidation where ExtendedType == SecTrust {}
