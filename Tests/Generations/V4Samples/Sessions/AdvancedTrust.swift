import AlamofireV4
import Foundation
import HTTPTestServer
import Testing

// The advanced usage of 4.x: security, reachability.

private class CustomServerTrustPolicyManager: ServerTrustPolicyManager, @unchecked Sendable {
  override func serverTrustPolicy(forHost host: String) -> ServerTrustPolicy? {
    var policy: ServerTrustPolicy?

    // Implement your custom domain matching behavior...
    if host.hasSuffix(".org") { policy = .customEvaluation { _, _ in false } }

    return policy
  }
}

extension Samples {
  @Suite struct AdvancedTrust {
    let environment: SampleEnvironment
    init() throws { environment = try SampleEnvironment.set() }

    private func outcome(_ sessionManager: SessionManager, _ url: String) async -> String {
      sessionManager.request(url).response { response in
        print((response.error as? URLError)?.code.rawValue ?? response.response?.statusCode)
      }
      return await printed()[0]
    }

    @Test func serverTrustPolicy() {
      let serverTrustPolicy = ServerTrustPolicy.pinCertificates(
        // `certificatesInBundle()` in the document, as in 3.x.
        certificates: ServerTrustPolicy.certificates(),
        validateCertificateChain: true,
        validateHost: true
      )

      guard case .pinCertificates(let certificates, true, true) = serverTrustPolicy else {
        Issue.record("another policy")
        return
      }
      #expect(certificates.isEmpty)
    }

    @Test func serverTrustPolicyManager() async {
      let serverTrustPolicies: [String: ServerTrustPolicy] = [
        "test.example.com": .pinCertificates(
          certificates: ServerTrustPolicy.certificates(),
          validateCertificateChain: true,
          validateHost: true
        ),
        "insecure.expired-apis.com": .disableEvaluation,
      ]

      let sessionManager = SessionManager(
        serverTrustPolicyManager: ServerTrustPolicyManager(policies: serverTrustPolicies)
      )

      // There are no certificates in the bundle, so that none is the pinned one.
      #expect(
        await outcome(sessionManager, "https://test.example.com/get") == "\(URLError.cancelled.rawValue)")
      #expect(await outcome(sessionManager, "https://insecure.expired-apis.com/get") == "200")
      // Hosts that are not listed: the default evaluation.
      #expect(await outcome(sessionManager, "https://httpbin.org/get") == "200")
    }

    @Test func subclassingTheManager() async {
      let sessionManager = SessionManager(
        serverTrustPolicyManager: CustomServerTrustPolicyManager(policies: [:]))

      #expect(await outcome(sessionManager, "https://httpbin.org/get") == "\(URLError.cancelled.rawValue)")
      #expect(await outcome(sessionManager, "https://example.com/users") == "200")
    }

    @Test func networkReachability() {
      let manager = NetworkReachabilityManager(host: "www.apple.com")

      manager?.listener = { status in
        print("Network Status Changed: \(status)")
      }

      #expect(manager?.startListening() == true)
      manager?.stopListening()
    }
  }
}
