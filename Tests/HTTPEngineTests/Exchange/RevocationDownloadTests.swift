import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import Testing

/// Requests to responders and for lists block the caller's thread, and must end.
@Suite("Downloads about revocation", .timeLimit(.minutes(5))) struct RevocationDownloadTests {
  @Test("A body is complete") func body() throws {
    let server = try HTTPTestServer()
    server.enqueue(.bytes(300_000))
    #expect(RevocationDownload.list(at: server.url("/list"), publicOnly: false)?.count == 300_000)
    server.enqueue(.text("answer"))
    #expect(
      RevocationDownload.response(from: server.url("/ocsp"), to: Data("question".utf8), publicOnly: false)
        == Data("answer".utf8)
    )
    #expect(server.recordedRequests.last?.body == Array("question".utf8))
  }

  @Test("An idle server times out") func idleServer() throws {
    let silent = try UnresponsivePort()
    let started = ContinuousClock.now
    #expect(
      RevocationDownload.list(at: "http://127.0.0.1:\(silent.port)/", publicOnly: false, timeLimit: 300)
        == nil)
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.text("late").held(by: gate), Reply(body: .parts(["a", .gate(gate), "b"])))
    #expect(RevocationDownload.list(at: server.url("/"), publicOnly: false, timeLimit: 300) == nil)
    #expect(RevocationDownload.list(at: server.url("/"), publicOnly: false, timeLimit: 300) == nil)
    gate.open()
    // The usual limit of ten seconds would apply three times.
    #expect(ContinuousClock.now - started < .seconds(25))
    #expect(RevocationDownload.timeLimit == 10_000)
  }

  @Test("A body above the limit is refused") func bodySizeLimit() throws {
    let server = try HTTPTestServer()
    server.enqueue(.bytes(1001), .bytes(1000))
    #expect(RevocationDownload.list(at: server.url("/"), publicOnly: false, sizeLimit: 1000) == nil)
    #expect(RevocationDownload.list(at: server.url("/"), publicOnly: false, sizeLimit: 1000)?.count == 1000)
    server.enqueue(.bytes(70_000))
    #expect(RevocationDownload.response(from: server.url("/"), to: Data([1]), publicOnly: false) == nil)
  }

  @Test(
    "A URL other than HTTP is refused",
    arguments: [
      "", "http://", "ftp://127.0.0.1/", "file:///etc/hosts", "ldap://127.0.0.1/", "/list", "http://a\0b/",
    ])
  func schemes(url: String) {
    #expect(RevocationDownload.list(at: url, publicOnly: false) == nil)
  }

  @Test("Private addresses are refused if that is chosen") func privateAddresses() throws {
    let server = try HTTPTestServer()
    for url in [server.url("/"), "http://localhost:\(server.port)/", "http://[::1]:\(server.port)/"] {
      #expect(RevocationDownload.list(at: url, publicOnly: true) == nil)
      #expect(RevocationDownload.response(from: url, to: Data([1]), publicOnly: true) == nil)
    }
    #expect(server.connectionCount == 0)
  }

  @Test("Redirects are limited and stay on HTTP") func redirects() throws {
    let secure = try HTTPTestServer(.tls(.localhost))
    let server = try HTTPTestServer()
    server.enqueue(.redirect(to: secure.url("/")), .redirect(to: "file:///etc/hosts"))
    #expect(RevocationDownload.list(at: server.url("/"), publicOnly: false) == nil)
    #expect(RevocationDownload.list(at: server.url("/"), publicOnly: false) == nil)
    #expect(secure.connectionCount == 0)
    for _ in 0..<5 { server.enqueue(.redirect(to: "/again")) }
    server.forgetRequests()
    #expect(RevocationDownload.list(at: server.url("/"), publicOnly: false) == nil)
    #expect(server.requestCount == 4)
  }
}
