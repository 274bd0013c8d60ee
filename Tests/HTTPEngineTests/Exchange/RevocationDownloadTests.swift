import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

/// Requests to responders and for lists block the caller's thread, and must end.
@Suite("Downloads about revocation", .timeLimit(.minutes(5))) struct RevocationDownloadTests {
  @Test("A body is complete") func body() throws {
    let server = try HTTPTestServer()
    server.enqueue(.bytes(300_000))
    #expect(RevocationDownload().list(at: server.url("/list"))?.count == 300_000)
    server.enqueue(.text("answer"))
    #expect(
      RevocationDownload().response(from: server.url("/ocsp"), to: Data("question".utf8))
        == Data("answer".utf8)
    )
    #expect(server.recordedRequests.last?.body == Array("question".utf8))
  }

  @Test("A question is sent again if a server closes its connection at that moment") func closedConnection()
    throws
  {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.text("first"))
    let question = Data("question".utf8)
    #expect(
      RevocationDownload().response(from: server.url("/ocsp"), to: question) == Data("first".utf8))
    server.enqueue(.reset, .text("second"))
    #expect(
      RevocationDownload().response(from: server.url("/ocsp"), to: question) == Data("second".utf8))
  }

  @Test("An idle server times out") func idleServer() throws {
    let silent = try UnresponsivePort()
    let started = ContinuousClock.now
    #expect(
      RevocationDownload(timeLimit: 300).list(at: "http://127.0.0.1:\(silent.port)/")
        == nil)
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.text("late").held(by: gate), Reply(body: .parts(["a", .gate(gate), "b"])))
    #expect(RevocationDownload(timeLimit: 300).list(at: server.url("/")) == nil)
    #expect(RevocationDownload(timeLimit: 300).list(at: server.url("/")) == nil)
    gate.open()
    // The usual limit of ten seconds would apply three times.
    #expect(ContinuousClock.now - started < .seconds(25))
    #expect(RevocationDownload.timeLimit == 10_000)
  }

  @Test("A body above the limit is refused") func bodySizeLimit() throws {
    let server = try HTTPTestServer()
    server.enqueue(.bytes(1001), .bytes(1000))
    #expect(RevocationDownload(sizeLimit: 1000).list(at: server.url("/")) == nil)
    #expect(RevocationDownload(sizeLimit: 1000).list(at: server.url("/"))?.count == 1000)
    server.enqueue(.bytes(70_000))
    #expect(RevocationDownload().response(from: server.url("/"), to: Data([1])) == nil)
  }

  @Test(
    "A URL other than HTTP is refused",
    arguments: [
      "", "http://", "ftp://127.0.0.1/", "file:///etc/hosts", "ldap://127.0.0.1/", "/list", "http://a\0b/",
    ])
  func schemes(url: String) {
    #expect(RevocationDownload().list(at: url) == nil)
  }

  @Test("Private addresses are refused if that is chosen") func privateAddresses() throws {
    let server = try HTTPTestServer()
    var options = TransportOptions()
    options.refusesPrivateAddresses = true
    for url in [server.url("/"), "http://localhost:\(server.port)/", "http://[::1]:\(server.port)/"] {
      #expect(RevocationDownload(options).list(at: url) == nil)
      #expect(RevocationDownload(options).response(from: url, to: Data([1])) == nil)
    }
    #expect(server.connectionCount == 0)
  }

  @Test("The options of the session lead to servers") func routes() throws {
    let server = try HTTPTestServer()
    let names = NameService(["lists.example": [IPAddress.loopback4].compactMap { $0 }])
    let service = try HTTPTestServer(.tls(.localhost), routes: names.routes)
    var options = TransportOptions()
    options.hostOverrides = [.init(host: "ocsp.example", target: "127.0.0.1", targetPort: server.port)]
    options.nameServiceURL = service.url("/dns-query")
    options.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
    server.enqueue(.text("answer"), .text("list"))
    let download = RevocationDownload(options)
    #expect(download.response(from: "http://ocsp.example/", to: Data([1])) == Data("answer".utf8))
    #expect(download.list(at: "http://lists.example:\(server.port)/") == Data("list".utf8))
    #expect(server.requestCount == 2)
    for change in [
      { $0.addressFamily = .ipv6 }, { $0.localInterface = "if!no-such-interface" },
    ] as [(inout TransportOptions) -> Void] {
      var options = TransportOptions()
      change(&options)
      #expect(RevocationDownload(options).list(at: server.url("/get")) == nil)
    }
    #expect(server.requestCount == 2)
  }

  @Test("The name service is asked with the TLS options of the session") func nameServiceTLS() throws {
    let folder = try TemporaryFolder()
    let server = try HTTPTestServer()
    // Other names, because answers are remembered.
    let hosts = (0..<3).map { "list\($0).example" }
    let addresses = [IPAddress.loopback4].compactMap { $0 }
    let names = NameService(Dictionary(uniqueKeysWithValues: hosts.map { ($0, addresses) }))
    let service = try HTTPTestServer(.tls(.localhost), routes: names.routes)
    func list(_ index: Int, _ change: (inout TransportOptions) -> Void) -> Data? {
      var options = TransportOptions()
      options.nameServiceURL = service.url("/dns-query")
      options.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
      change(&options)
      return RevocationDownload(options).list(at: "http://\(hosts[index]):\(server.port)/get")
    }
    // First, because later questions use the connection.
    #expect(list(0) { $0.tlsKeyLogFile = folder.path + "/keys" } != nil)
    #expect(list(1) { $0.tls12Ciphers = "no such cipher" } == nil)
    #expect(list(2) { $0.tls13CipherSuites = "no such suite" } == nil)
    let secrets = String(decoding: try folder.read("keys"), as: UTF8.self)
    #expect(secrets.contains("CLIENT_TRAFFIC_SECRET_0"), "the file has no secrets of the name service")
  }

  @Test("Redirects are limited and stay on HTTP") func redirects() throws {
    let secure = try HTTPTestServer(.tls(.localhost))
    let server = try HTTPTestServer()
    server.enqueue(.redirect(to: secure.url("/")), .redirect(to: "file:///etc/hosts"))
    #expect(RevocationDownload().list(at: server.url("/")) == nil)
    #expect(RevocationDownload().list(at: server.url("/")) == nil)
    #expect(secure.connectionCount == 0)
    for _ in 0..<5 { server.enqueue(.redirect(to: "/again")) }
    server.forgetRequests()
    #expect(RevocationDownload().list(at: server.url("/")) == nil)
    #expect(server.requestCount == 4)
  }
}
