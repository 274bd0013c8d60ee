import Alamofire
import Testing

@Suite("ServerTrustManager") struct ServerTrustManagerTests {
  private struct Named: ServerTrustEvaluating {
    let name: String
    func evaluate(_ trust: SecTrust, forHost host: String) throws {}
  }

  private func manager(_ hosts: String..., mustAll: Bool = true) -> ServerTrustManager {
    let evaluators = Dictionary(
      uniqueKeysWithValues: hosts.map { ($0, Named(name: $0) as any ServerTrustEvaluating) })
    return ServerTrustManager(allHostsMustBeEvaluated: mustAll, evaluators: evaluators)
  }

  private func match(_ manager: ServerTrustManager, _ host: String) throws -> String? {
    try manager.serverTrustEvaluator(forHost: host).map { try #require($0 as? Named).name }
  }

  @Test("A host has its evaluator") func evaluator() throws {
    let manager = manager("example.com", "*.example.com", "api.example.com", "127.0.0.1", "::1", "*.0.0.1")
    #expect(try match(manager, "example.com") == "example.com")
    #expect(try match(manager, "api.example.com") == "api.example.com")
    #expect(try match(manager, "www.example.com") == "*.example.com")
    #expect(try match(manager, "127.0.0.1") == "127.0.0.1")
    #expect(try match(manager, "::1") == "::1")
    for host in ["api.dc1", "api.0x1f.a2", "api.1st"] {
      let pattern = "*" + host.dropFirst(3)
      #expect(try match(self.manager(pattern), host) == pattern)
    }
  }

  @Test(
    "Other hosts have no evaluator",
    arguments: [
      "a.b.example.com", "example.org", "xexample.com", "example.com.evil.org", ".example.com", "128.0.0.1",
      "",
    ])
  func otherHosts(host: String) throws {
    let strict = manager("*.example.com", "*.0.0.1", "example.com")
    let error = #expect(throws: AFError.self) { try strict.serverTrustEvaluator(forHost: host) }
    guard case .serverTrustEvaluationFailed(.noRequiredEvaluator(host)) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(error?.isServerTrustEvaluationError == true)
    #expect(try match(manager("*.example.com", "*.0.0.1", "example.com", mustAll: false), host) == nil)
  }

  @Test("Spellings of a host are equal") func spellings() throws {
    let manager = manager("Example.COM", "*.Example.org", "b\u{FC}cher.example", "[2001:db8::1]")
    #expect(try match(manager, "example.com.") == "Example.COM")
    #expect(try match(manager, "EXAMPLE.com") == "Example.COM")
    #expect(try match(manager, "WWW.example.ORG.") == "*.Example.org")
    #expect(try match(manager, "xn--bcher-kva.example") == "b\u{FC}cher.example")
    #expect(try match(manager, "2001:db8::1") == "[2001:db8::1]")
    // An exact spelling takes precedence, and for any other the one in lower case is used.
    let both = self.manager("Example.com", "example.com")
    #expect(try match(both, "Example.com") == "Example.com")
    #expect(try match(both, "EXAMPLE.COM") == "example.com")
  }

  @Test(
    "Compatibility forms of a host match the host that a URL has",
    arguments: [
      "\u{2460}.example", "bu\u{308}cher.example", "\u{FF41}b.example", "B\u{DC}cher.example",
      "*.\u{2460}.example",
    ])
  func compatibilityForms(key: String) throws {
    let url = try #require(URL(string: "https://\(key.replacing("*", with: "www"))/"))
    let host = try #require(url.host)
    #expect(try match(manager(key, mustAll: false), host) == key, "\(host)")
  }

  @Test("A manager returns its arguments") func properties() {
    let manager = manager("Example.com", mustAll: false)
    #expect(!manager.allHostsMustBeEvaluated)
    #expect(Array(manager.evaluators.keys) == ["Example.com"])
  }

  @Test("Evaluators that can run in a handshake are known") func handshakeEvaluators() throws {
    func isInstant(_ evaluator: any ServerTrustEvaluating) -> Bool {
      (evaluator as? any InstantTrustEvaluator)?.isInstant ?? false
    }
    func wantsStaple(_ evaluator: any ServerTrustEvaluating) -> Bool {
      (evaluator as? any InstantTrustEvaluator)?.requestsStapledResponse ?? false
    }
    let offline = RevocationTrustEvaluator(options: [.any, .networkAccessDisabled])
    #expect(isInstant(.default) && isInstant(.disabled) && isInstant(offline))
    #expect(isInstant(PublicKeysTrustEvaluator(keys: [])) && isInstant(.pinnedCertificates(certificates: [])))
    #expect(isInstant(.composite(evaluators: [.default, offline])))
    #expect(!isInstant(.revocationChecking) && !isInstant(Named(name: "")))
    #expect(!isInstant(.composite(evaluators: [.default, .revocationChecking])))
    #expect(!isInstant(.composite(evaluators: [Named(name: "")])))
    #expect(wantsStaple(offline) && wantsStaple(.revocationChecking(options: .ocsp)))
    #expect(
      wantsStaple(.composite(evaluators: [.default, offline]))
        && wantsStaple(.revocationChecking(options: [])))
    #expect(!wantsStaple(.default) && !wantsStaple(.revocationChecking(options: .crl)))
  }
}
