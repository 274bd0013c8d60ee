import FoundationEssentials
import HTTPTestServer
import Testing

@testable import HTTPSystem

@Suite("Cache of revocation lists") struct RevocationCacheTests {
  @Test("A list that replaces one of the same URL does not count twice")
  func replacement() {
    let cache = RevocationCache()
    cache.keep([], at: "http://a.test/list", size: 10 << 20, until: 100)
    cache.keep([], at: "http://b.test/list", size: 20 << 20, until: 100)
    cache.keep([], at: "http://b.test/list", size: 20 << 20, until: 200)
    #expect(cache.list(at: "http://a.test/list", at: 50) != nil)
    #expect(cache.list(at: "http://b.test/list", at: 150) != nil)
    #expect(cache.list(at: "http://a.test/list", at: 101) == nil)
    cache.keep([], at: "http://c.test/list", size: 3 << 20, until: 100)
    #expect(cache.list(at: "http://a.test/list", at: 50) == nil)
    #expect(cache.list(at: "http://c.test/list", at: 50) != nil)
  }

  /// A download that an attacker has changed.
  private struct Downloads: RevocationDownloads {
    let lists: Data

    func response(from url: String, to request: Data) -> Data? { nil }
    func list(at url: String) -> Data? { lists }
  }

  private static func pem(_ list: [UInt8]) -> String {
    let lines = Data(list).base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
    return "-----BEGIN X509 CRL-----\n\(lines)\n-----END X509 CRL-----\n"
  }

  private static func authority(_ name: String) throws -> TestIdentity {
    try TestIdentity(.init(commonName: name, isCA: true))
  }

  @Test("Of the lists with the name of the issuer, only those that it signed are cached")
  func forgedLists() throws {
    let url = "http://forged.test/list"
    let (issuer, forger) = (try Self.authority("Office"), try Self.authority("Office"))
    var specification = TestIdentity.Specification(
      commonName: "Server", dnsNames: ["a.example"], issuer: issuer)
    specification.listURL = url
    let path = try [TestIdentity(specification), issuer].map { identity in
      try #require(X509Certificate.all(in: Data(identity.certificatePEM.utf8))?.first)
    }
    let lists = try [forger, issuer, try Self.authority("Other"), forger].map { signer in
      try Self.pem(signer.revocationList(of: []))
    }
    let check = RevocationCheck(
      asksResponders: false, readsLists: true, prefersLists: true, requiresAnswer: true,
      downloads: Downloads(lists: Data(lists.joined(separator: "").utf8)), lists: .none, stapledResponse: nil)
    #expect(check.fault(of: path) == nil)
    #expect(RevocationCache.shared.list(at: url, at: OpenSSLTime.now)?.count == 2)
    #expect(check.fault(of: path) == nil)
  }
}
