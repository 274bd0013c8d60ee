import AlamofireV3
import HTTPTestServer
import Testing

extension Samples {
  @Suite struct Trust {
    let site: Site

    init() throws { site = try Site() }

    private func outcome(_ manager: Manager, _ host: String) async -> String {
      await waiting { done in
        manager.request(.GET, "https://\(host)/get").response { _, response, _, error in
          done(error.map { "\($0.code)" } ?? "\(response?.statusCode ?? 0)")
        }
      }
    }

    // ServerTrustPolicy
    @Test func sample45_policy() {
      let serverTrustPolicy = ServerTrustPolicy.PinCertificates(
        certificates: ServerTrustPolicy.certificatesInBundle(),
        validateCertificateChain: true,
        validateHost: true
      )

      // Without a certificate in the bundle, no server is trusted.
      let trust = SecTrust(certificates: [], host: "httpbin.org")
      #expect(!serverTrustPolicy.evaluateServerTrust(trust, isValidForHost: "httpbin.org"))
    }

    // Server Trust Policy Manager
    @Test func sample46_policyManager() async throws {
      // A bundle of a program with the certificate of the authority among its resources.
      let folder = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID()).bundle")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(at: folder) }
      try Data(TestIdentity.localhostAuthority.certificatePEM.utf8)
        .write(to: folder.appendingPathComponent("authority.cer"))
      let bundle = try #require(Bundle(url: folder))

      let serverTrustPolicies: [String: ServerTrustPolicy] = [
        "test.example.com": .PinCertificates(
          certificates: ServerTrustPolicy.certificatesInBundle(bundle),
          validateCertificateChain: true,
          validateHost: true
        ),
        "insecure.expired-apis.com": .DisableEvaluation,
      ]

      // The trust store of the system, which does not contain the authority.
      var options = site.options
      options.trustStore = .system
      let manager = Manager(
        configuration: Site.configuration,
        serverTrustPolicyManager: ServerTrustPolicyManager(policies: serverTrustPolicies),
        transportOptions: options
      )

      #expect(await outcome(manager, "test.example.com") == "200")
      #expect(await outcome(manager, "insecure.expired-apis.com") == "200")
      let other = await outcome(manager, "httpbin.org")
      #expect(other.hasPrefix("-") && other != "\(NSURLErrorCancelled)")
    }

    @Test func sample46_policyManagerAndAStranger() async throws {
      let stranger = try TestIdentity(.init(commonName: "stranger"))
      let policy = ServerTrustPolicy.PinCertificates(
        certificates: try SecCertificate.all(in: Data(stranger.certificatePEM.utf8)),
        validateCertificateChain: true, validateHost: true)
      let manager = Manager(
        configuration: Site.configuration,
        serverTrustPolicyManager: ServerTrustPolicyManager(policies: ["test.example.com": policy]),
        transportOptions: site.options)

      #expect(await outcome(manager, "test.example.com") == "\(NSURLErrorCancelled)")
    }

    // Subclassing Server Trust Policy Manager
    class CustomServerTrustPolicyManager: ServerTrustPolicyManager {
      override func serverTrustPolicyForHost(_ host: String) -> ServerTrustPolicy? {
        var policy: ServerTrustPolicy?

        // Implement your custom domain matching behavior...
        if host.hasSuffix(".expired-apis.com") { policy = .DisableEvaluation }

        return policy
      }
    }

    @Test func sample47_policyManagerOfOnesOwn() async {
      var options = site.options
      options.trustStore = .system
      let manager = Manager(
        configuration: Site.configuration,
        serverTrustPolicyManager: CustomServerTrustPolicyManager(policies: [:]), transportOptions: options)
      #expect(await outcome(manager, "insecure.expired-apis.com") == "200")
      #expect(await outcome(manager, "httpbin.org") != "200")
    }
  }
}
