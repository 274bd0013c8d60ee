import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@testable import Alamofire

@Suite("Trust of a session") struct TrustServiceTests {
  private final class OwnManager: ServerTrustManager, @unchecked Sendable {}

  /// An evaluator of other code, which may use whatever the handshake has shown.
  private struct OwnEvaluator: ServerTrustEvaluating {
    func evaluate(_ trust: SecTrust, forHost host: String) throws {}
  }

  private final class OwnDelegate: SessionDelegate, @unchecked Sendable {}

  @Test("A session that accepted an untrusted server does not evaluate by default any more")
  func acceptance() throws {
    let delegate = OwnDelegate()
    delegate.wantedEvents = []
    let trust = try #require(TrustService(manager: nil, observers: SessionObservers(delegate: delegate)))
    let chain = PresentedChain(host: "a.test", port: 443, certificates: [])
    #expect(trust.usesDefaultEvaluation)
    trust.remember(.usual, on: chain, in: 1)
    #expect(trust.usesDefaultEvaluation)
    trust.remember(.accepted, on: chain, in: 1)
    #expect(!trust.usesDefaultEvaluation)
  }

  private func requestsStapledResponse(_ manager: ServerTrustManager) throws -> Bool {
    let trust = try #require(TrustService(manager: manager, observers: SessionObservers()))
    return trust.requestsStapledResponse(ofHost: "a.test")
  }

  @Test("The stapled response is requested if an evaluator uses it")
  func stapledResponse() throws {
    #expect(try requestsStapledResponse(OwnManager(evaluators: [:])), "its evaluator is not known before")
    let revocation = ServerTrustManager(evaluators: ["a.test": RevocationTrustEvaluator()])
    #expect(try requestsStapledResponse(revocation))
    #expect(try requestsStapledResponse(ServerTrustManager(evaluators: ["a.test": OwnEvaluator()])))
    let usual = ServerTrustManager(evaluators: ["a.test": DefaultTrustEvaluator()])
    #expect(try !requestsStapledResponse(usual))
    #expect(try !requestsStapledResponse(ServerTrustManager(evaluators: [:])))
  }

  @Test("Only a credential that was made for the trust in a server accepts one", arguments: ["", "ann"])
  func credentials(user: String) {
    let trust = ServerTrust(certificates: [], host: "a.test")
    func accepts(_ credential: URLCredential?) -> Bool {
      if case .accept = TrustAnswer(.useCredential, credential) { true } else { false }
    }
    #expect(accepts(URLCredential(trust: trust)))
    #expect(!accepts(nil))
    for password in ["", "pass"] {
      for persistence in [URLCredential.Persistence.none, .forSession] {
        #expect(!accepts(URLCredential(user: user, password: password, persistence: persistence)))
      }
    }
    let identity = ClientIdentity(certificates: [], subject: user, privateKey: Data())
    #expect(!accepts(ClientIdentityCredential(identity)))
  }
}
