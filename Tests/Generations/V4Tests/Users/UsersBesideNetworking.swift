import AlamofireV4
import Foundation
import FoundationNetworking
import Testing

private class Policies: ServerTrustPolicyManager, @unchecked Sendable {
  override func serverTrustPolicy(forHost host: String) -> ServerTrustPolicy? {
    host.hasSuffix(".test") ? .disableEvaluation : super.serverTrustPolicy(forHost: host)
  }
}

@Suite("Users who import FoundationNetworking as well") struct UsersBesideNetworking {
  @Test("Names of both modules can be used") func names() throws {
    let policies = Policies(policies: ["a.example": .performDefaultEvaluation(validateHost: true)])
    guard case .disableEvaluation? = policies.serverTrustPolicy(forHost: "a.test") else {
      Issue.record("another policy")
      return
    }
    #expect(policies.serverTrustPolicy(forHost: "b.example") == nil)
    let request = URLRequest(url: try "https://a.test/".asURL())
    #expect(request.urlRequest == request)
    let manager = Alamofire.SessionManager(
      configuration: URLSessionConfiguration.background(withIdentifier: "y"))
    #expect(manager.session.configuration.identifier == "y")
    let error: any Error = URLError(.cancelled)
    #expect((error as? URLError)?.code == .cancelled)
  }
}
