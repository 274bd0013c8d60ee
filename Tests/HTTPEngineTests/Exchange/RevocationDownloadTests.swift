import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import Testing

/// Requests to responders and for lists block the caller's thread, and must end.
@Suite("Downloads about revocation", .timeLimit(.minutes(5))) struct RevocationDownloadTests {
  @Test("A body is complete") func body() throws {
    let server = try HTTPTestServer()
    server.enqueue(.bytes(300_000))
    #expect(RevocationDownload(publicOnly: false).list(at: server.url("/list"))?.count == 300_000)
    server.enqueue(.text("answer"))
    #expect(
      RevocationDownload(publicOnly: false).response(from: server.url("/ocsp"), to: Data("question".utf8))
        == Data("answer".utf8)
    )
    #expect(server.recordedRequests.last?.body == Array("question".utf8))
  }

  @Test("An idle server times out") func idleServer() throws {
    let silent = try UnresponsivePort()
    let started = ContinuousClock.now
    #expect(
      RevocationDownload(publicOnly: false, timeLimit: 300).list(at: "http://127.0.0.1:\(silent.port)/")
        == nil)
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.text("late").held(by: gate), Reply(body: .parts(["a", .gate(gate), "b"])))
    #expect(RevocationDownload(publicOnly: false, timeLimit: 300).list(at: server.url("/")) == nil)
    #expect(RevocationDownload(publicOnly: false, timeLimit: 300).list(at: server.url("/")) == nil)
    gate.open()
    // The usual limit of ten seconds would apply three times.
    #expect(ContinuousClock.now - started < .seconds(25))
    #expect(RevocationDownload.timeLimit == 10_000)
  }

  @Test("A body above the limit is refused") func bodySizeLimit() throws {
    let server = try HTTPTestServer()
    server.enqueue(.bytes(1001), .bytes(1000))
    #expect(RevocationDownload(publicOnly: false, sizeLimit: 1000).list(at: server.url("/")) == nil)
    #expect(RevocationDownload(publicOnly: false, sizeLimit: 1000).list(at: server.url("/"))?.count == 1000)
    server.enqueue(.bytes(70_000))
    #expect(RevocationDownload(publicOnly: false).response(from: server.url("/"), to: Data([1])) == nil)
  }

  @Test(
    "A URL other than HTTP is refused",
    arguments: [
      "", "http://", "ftp://127.0.0.1/", "file:///etc/hosts", "ldap://127.0.0.1/", "/list", "http://a\0b/",
    ])
  func schemes(url: String) {
    #expect(RevocationDownload(publicOnly: false).list(at: url) == nil)
  }

  @Test("Private addresses are refused if that is chosen") func privateAddresses() throws {
    let server = try HTTPTestServer()
    for url in [server.url("/"), "http://localhost:\(server.port)/", "http://[::1]:\(server.port)/"] {
      #expect(RevocationDownload(publicOnly: true).list(at: url) == nil)
      #expect(RevocationDownload(publicOnly: true).response(from: url, to: Data([1])) == nil)
    }
    #expect(server.connectionCount == 0)
  }

  @Test("Redirects are limited and stay on HTTP") func redirects() throws {
    let secure = try HTTPTestServer(.tls(.localhost))
    let server = try HTTPTestServer()
    server.enqueue(.redirect(to: secure.url("/")), .redirect(to: "file:///etc/hosts"))
    #expect(RevocationDownload(publicOnly: false).list(at: server.url("/")) == nil)
    #expect(RevocationDownload(publicOnly: false).list(at: server.url("/")) == nil)
    #expect(secure.connectionCount == 0)
    for _ in 0..<5 { server.enqueue(.redirect(to: "/again")) }
    server.forgetRequests()
    #expect(RevocationDownload(publicOnly: false).list(at: server.url("/")) == nil)
    #expect(server.requestCount == 4)
  }
}
