import FoundationEssentials
import HTTPEngine
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Testing

@Suite("Proxies", .timeLimit(.minutes(5))) struct ProxyTests {
  private static let secret = "s3cret-of-the-proxy"

  private static func asAnn(_ server: inout ProxyServer) {
    server.username = "ann"
    server.password = secret
  }

  private func options(
    _ change: (inout ProxyServer) -> Void = { _ in }, port: Int, kind: ProxyServer.Kind = .http
  )
    -> ProxyServer
  {
    var server = ProxyServer(kind, host: kind == .https ? "localhost" : "127.0.0.1", port: port)
    change(&server)
    return server
  }

  @Test("An HTTP request is sent to the proxy") func http() async throws {
    let proxy = try HTTPTestServer()
    proxy.enqueue(.text("by proxy"))
    let server = options(Self.asAnn, port: proxy.port)
    let response = try await Client { $0.proxy = .server(server) }.get("http://nowhere.test/path?x=1")
    #expect(response.status == 200)
    #expect(response.metrics.values.isProxyConnection)
    let request = try await proxy.takeRequest()
    #expect(request.target == "http://nowhere.test/path?x=1")
    #expect(
      request.header("Proxy-Authorization")
        == HTTPHeader.authorization(username: "ann", password: Self.secret).value)
  }

  @Test("Each request that a proxy forwards names its own host", arguments: [0, 1])
  func hosts(fieldCount: Int) async throws {
    let proxy = try HTTPTestServer(routes: .none)
    let client = Client { $0.proxy = .server(options(port: proxy.port)) }
    let fields = (0..<fieldCount).map { HTTPHeader(name: "X-Field-\($0)", value: "1") }
    for host in ["a.test", "a.test", "a.test", "b.test", "a.test", "b.test:81"] {
      proxy.enqueue(.ok)
      _ = try await client.send(client.request("http://\(host)/", fields: fields))
      let request = try await proxy.takeRequest()
      #expect(request.target == "http://\(host)/" && request.header("Host") == host)
    }
  }

  @Test("The credentials of one proxy are not sent to another") func credentials() async throws {
    let first = try HTTPTestServer()
    let second = try HTTPTestServer()
    let client = Client()
    for _ in 0..<3 {
      for (proxy, change) in [(first, Self.asAnn), (second, { _ in })] {
        proxy.enqueue(.text("by proxy"))
        let profile = Client.profile { $0.proxy = .server(options(change, port: proxy.port)) }
        let response = try await client.send(client.request("http://nowhere.test/", profile: profile))
        #expect(response.text == "by proxy")
        let header = try await proxy.takeRequest().header("Proxy-Authorization")
        #expect((header != nil) == (proxy === first))
      }
    }
  }

  @Test("The request target is sent unchanged, in the form that its receiver needs")
  func requestTarget() async throws {
    let proxy = try HTTPTestServer(routes: .none)
    let server = try HTTPTestServer(routes: .none)
    let client = Client()
    let proxied = Client.profile { $0.proxy = .server(options(port: proxy.port)) }
    for target in ["/a?", "/%7ea/../%2F?x=%c3", "/plain"] {
      let url = server.url(target)
      // The same client is used with and without the proxy.
      for receiver in [server, proxy, server] {
        receiver.enqueue(.ok)
        _ = try await client.send(client.request(url, profile: receiver === proxy ? proxied : nil))
        #expect(try await receiver.takeRequest().target == (receiver === proxy ? url : target))
      }
    }
  }

  @Test(
    "A name that is too long for SOCKS is an error",
    arguments: [ProxyServer.Kind.socks4, .socks4a, .socks5, .socks5h])
  func longName(kind: ProxyServer.Kind) async throws {
    let proxy = try StreamTestServer()
    let client = Client { $0.proxy = .server(ProxyServer(kind, host: "127.0.0.1", port: proxy.port)) }
    let name = Array(repeating: "abcdefghi", count: 26).joined(separator: ".")
    // No URL has such a host, but the engine does not rely on it.
    #expect(Origin(url: "http://\(name)/") == nil)
    let origin = Origin(scheme: "http", host: name, port: nil)
    let request = WireRequest(url: "http://\(name)/", origin: origin, profile: client.profile)
    let failure = try await client.failure(of: request)
    #expect(failure.kind == .badURL && failure.message.contains("255"), "\(failure.message)")
    #expect(proxy.connectionCount == 0)
  }

  @Test("A bypassed host is connected to directly") func bypass() async throws {
    let proxy = try HTTPTestServer()
    let server = try HTTPTestServer()
    let through = options({ $0.bypass = ["127.0.0.0/8"] }, port: proxy.port)
    let client = Client { $0.proxy = .server(through) }
    #expect(try await client.get(server.url("/get")).status == 200)
    #expect(try await Client { $0.proxy = .none }.get(server.url("/get")).status == 200)
    #expect(proxy.requestCount == 0 && server.requestCount == 2)
  }

  @Test("The password of a proxy is sent to this proxy only") func password() async throws {
    let proxy = try HTTPTestServer()
    let server = try HTTPTestServer()
    proxy.enqueue(.text("by proxy"), .text("by proxy"))
    let through = options(
      {
        Self.asAnn(&$0)
        $0.bypass = ["127.0.0.1:\(server.port)"]
      }, port: proxy.port)
    // The same client is used with and without the proxy.
    let client = Client { $0.proxy = .server(through) }
    for _ in 0..<2 {
      _ = try await client.get("http://nowhere.test/")
      _ = try await client.get(server.url("/get"))
    }
    #expect(server.requestCount == 2 && proxy.requestCount == 2)
    for request in server.recordedRequests { #expect(request.header("Proxy-Authorization") == nil) }
  }

  @Test("A request to the proxy itself is not forwarded by it") func ownOrigin() async throws {
    let proxy = try HTTPTestServer()
    let through = options(
      {
        Self.asAnn(&$0)
        $0.bypass = ["127.0.0.1"]
      }, port: proxy.port)
    let client = Client { $0.proxy = .server(through) }
    for _ in 0..<2 {
      proxy.enqueue(.text("by proxy"), .text("direct"))
      #expect(try await client.get("http://nowhere.test/").text == "by proxy")
      #expect(try await proxy.takeRequest().target == "http://nowhere.test/")
      #expect(try await client.get(proxy.url("/own")).text == "direct")
      let request = try await proxy.takeRequest()
      #expect(request.target == "/own" && request.header("Proxy-Authorization") == nil)
    }
  }

  @Test("The challenge of a proxy is a response") func challenge() async throws {
    let proxy = try HTTPTestServer()
    proxy.enqueue(.status(407).with(header: "Proxy-Authenticate", value: #"Basic realm="p""#))
    let server = options(port: proxy.port)
    #expect(try await Client { $0.proxy = .server(server) }.get("http://nowhere.test/").status == 407)
  }

  @Test("The requested scheme of a proxy is negotiated") func negotiation() async throws {
    let proxy = try HTTPTestServer()
    proxy.enqueue(
      .status(407).with(header: "Proxy-Authenticate", value: #"Digest realm="p", nonce="n", qop="auth""#),
      .text("in"))
    let server = options(
      {
        $0.username = "ann"
        $0.password = Self.secret
        $0.authentication = .negotiated
      }, port: proxy.port)
    let response = try await Client { $0.proxy = .server(server) }.get("http://nowhere.test/")
    #expect(response.status == 200)
    #expect(response.body == Data("in".utf8))
    #expect(try await proxy.takeRequest().header("Proxy-Authorization") == nil)
    #expect(try await proxy.takeRequest().header("Proxy-Authorization")?.hasPrefix("Digest ") == true)
  }

  @Test("A wrong answer to a negotiating proxy ends with its response") func wrongAnswer() async throws {
    let proxy = try HTTPTestServer()
    let asks = Reply.status(407).with(header: "Proxy-Authenticate", value: #"Basic realm="p""#)
    proxy.enqueue(asks, asks, asks, asks)
    let server = options(
      {
        $0.username = "ann"
        $0.password = "wrong"
        $0.authentication = .negotiated
      }, port: proxy.port)
    #expect(try await Client { $0.proxy = .server(server) }.get("http://nowhere.test/").status == 407)
    #expect(proxy.requestCount == 2)
  }

  @Test(
    "A tunnel that is refused",
    arguments: [
      (407, TransportFailure.FailureKind.proxyAuthenticationRequired), (403, .cannotConnectToHost),
      (502, .cannotConnectToHost),
    ])
  func tunnel(status: Int, kind: TransportFailure.FailureKind) async throws {
    let proxy = try HTTPTestServer()
    proxy.enqueue(.status(status))
    let server = options(Self.asAnn, port: proxy.port)
    let failure = try await Client { $0.proxy = .server(server) }.failure(of: "https://nowhere.test/")
    #expect(failure.kind == kind, "\(failure)")
    #expect(failure.message.contains("127.0.0.1:\(proxy.port)"))
    #expect(!failure.message.contains(Self.secret) && !failure.message.contains("ann"))
    let request = try await proxy.takeRequest()
    #expect(request.method == "CONNECT" && request.target == "nowhere.test:443")
  }

  @Test("A missing proxy is a clear failure") func missingProxy() async throws {
    let port = try HTTPTestServer.refusedPort()
    for kind in ProxyServer.Kind.allCases {
      let server = ProxyServer(kind, host: "127.0.0.1", port: port, username: "ann", password: Self.secret)
      let failure = try await Client { $0.proxy = .server(server) }.failure(of: "http://192.0.2.1/")
      #expect(failure.kind == .cannotConnectToProxy, "\(kind): \(failure)")
      #expect(!failure.message.contains(Self.secret))
    }
  }

  @Test("A proxy with an unknown name is a clear failure") func unknownProxy() async throws {
    let failure = try await Client { $0.proxy = .http("proxy.invalid", port: 1) }.failure(
      of: "http://192.0.2.1/")
    #expect(failure.kind == .cannotFindProxy)
    #expect(failure.message.contains("proxy.invalid"))
  }

  // MARK: Over TLS

  private static let authority = TransportOptions.TrustStore.pem(
    Data(TestIdentity.localhostAuthority.caPEM.utf8))

  @Test("A proxy over TLS is verified by its own name") func secureProxy() async throws {
    let proxy = try HTTPTestServer(.tls(.localhost))
    proxy.enqueue(.text("by proxy"))
    let server = options({ $0.trustStore = Self.authority }, port: proxy.port, kind: .https)
    // Trust settings for servers do not apply to the proxy.
    let client = Client {
      $0.proxy = .server(server)
      $0.trustStore = .pem(Data("none".utf8))
    }
    let response = try await client.get("http://nowhere.test/")
    #expect(response.status == 200)
    #expect(try await proxy.takeRequest().target == "http://nowhere.test/")
  }

  @Test("An untrusted proxy over TLS receives no request") func untrustedProxy() async throws {
    let proxy = try HTTPTestServer(.tls(.localhost))
    let server = options({ $0.password = Self.secret }, port: proxy.port, kind: .https)
    // The trust store for servers does not apply.
    let failure = try await Client { $0.proxy = .server(server) }.failure(of: "http://nowhere.test/")
    #expect(failure.kind == .certificateHasUnknownRoot)
    #expect(failure.message.contains("the proxy localhost"))
    #expect(proxy.requestCount == 0)
  }

  @Test("A proxy over TLS with another name receives no request") func otherName() async throws {
    let other = try TestIdentity(
      .init(commonName: "other", dnsNames: ["other.test"], issuer: .localhostAuthority))
    let proxy = try HTTPTestServer(.tls(other))
    let server = options({ $0.trustStore = Self.authority }, port: proxy.port, kind: .https)
    let failure = try await Client { $0.proxy = .server(server) }.failure(of: "http://nowhere.test/")
    #expect(failure.kind == .certificateUntrusted, "\(failure.message)")
    #expect(failure.message.contains("the proxy localhost"), "\(failure.message)")
    #expect(proxy.requestCount == 0)
  }

  @Test("A proxy over TLS whose certificate was revoked receives no request", arguments: [false, true])
  func revokedProxy(isRevoked: Bool) async throws {
    let authority = TestIdentity.localhostAuthority
    let identity = try TestIdentity(
      .init(commonName: "proxy", dnsNames: ["localhost"], issuer: authority))
    let list = Data(try authority.revocationList(of: isRevoked ? [identity] : []))
    let proxy = try HTTPTestServer(.tls(identity))
    proxy.enqueue(.text("by proxy"))
    let server = options({ $0.trustStore = Self.authority }, port: proxy.port, kind: .https)
    let client = Client {
      $0.proxy = .server(server)
      $0.certificateRevocationLists = [list]
    }
    let request = try client.request("http://nowhere.test/")
    guard isRevoked else { return #expect(try await client.send(request).text == "by proxy") }
    let failure = try await client.failure(of: request)
    #expect(failure.message.contains("revoked"), "\(failure.message)")
    #expect(proxy.requestCount == 0)
  }

  @Test("The client certificate is not sent to a proxy") func clientCertificate() async throws {
    let authority = TestIdentity.localhostAuthority
    let options = TLSOptions(clientAuthority: authority.caPEM, requiresClientCertificate: false)
    let client = try TestIdentity(.init(commonName: "client", issuer: authority))
    let identity = try ClientIdentity.read(
      certificates: Data(client.certificatePEM.utf8), privateKey: Data(client.privateKeyPEM.utf8),
      passphrase: nil
    ).get()
    let proxy = try HTTPTestServer(.tls(.localhost, options))
    let server = self.options({ $0.trustStore = Self.authority }, port: proxy.port, kind: .https)
    func shown(_ url: String, through proxies: Proxy) async throws -> Bool {
      proxy.enqueue(.text("in"))
      let client = Client {
        $0.proxy = proxies
        $0.clientIdentity = identity
      }
      #expect(try await client.get(url).status == 200)
      return try await proxy.takeRequest().tls?.clientCertificatePEM != nil
    }
    #expect(try await shown(proxy.url("/"), through: .none))
    #expect(try await !shown("http://nowhere.test/", through: .server(server)))
  }
}

@Suite("Credentials of proxies", .timeLimit(.minutes(5))) struct ProxyCredentialTests {
  private static func server(_ kind: ProxyServer.Kind, _ port: Int, _ name: String, _ password: String)
    -> ProxyServer
  {
    ProxyServer(kind, host: "127.0.0.1", port: port, username: name, password: password)
  }

  @Test(
    "Name or password that would be cut is an error before anything is sent",
    arguments: [
      ("an\u{0}n", "secret", "NUL"), ("ann", "se\u{0}cret", "NUL"), ("an:n", "secret", "colon"),
      ("", "\u{0}", "NUL"),
    ])
  func unusableCredential(name: String, password: String, word: String) async throws {
    let proxy = try HTTPTestServer(routes: .none)
    proxy.enqueue(.text("next"))
    let client = Client { $0.proxy = .server(Self.server(.http, proxy.port, name, password)) }
    let failure = try await client.failure(of: "http://nowhere.test/")
    #expect(failure.kind == .proxyAuthenticationRequired)
    #expect(failure.message.contains(word) && failure.message.contains("TransportOptions.proxy"))
    #expect(!failure.message.contains("secret") && !failure.message.contains("cret"))
    #expect(proxy.connectionCount == 0)
    // The handle must not keep a part of the options.
    let good = Client.profile { $0.proxy = .server(Self.server(.http, proxy.port, "ann", "a:b")) }
    #expect(try await client.send(client.request("http://nowhere.test/", profile: good)).text == "next")
  }

  @Test("Colon is allowed in the name for SOCKS")
  func colonForSOCKS() {
    #expect(Self.server(.socks5, 1, "a:b", "c").credentialFault == nil)
    #expect(Self.server(.socks4, 1, "a\u{0}", "c").credentialFault != nil)
    #expect(Self.server(.http, 1, "a", "c\n").credentialFault?.contains("The password") == true)
    #expect(Self.server(.http, 1, "a\u{7F}", "c").credentialFault?.contains("The name") == true)
    #expect(Self.server(.socks5, 1, "a", "c\n").credentialFault == nil)
    #expect(Self.server(.https, 1, "a:b", "c").credentialFault != nil)
  }

  @Test("Percent signs in name and password are sent unchanged")
  func percentSigns() async throws {
    let proxy = try HTTPTestServer(routes: .none)
    proxy.enqueue(.ok, .ok)
    let client = Client { $0.proxy = .server(Self.server(.http, proxy.port, "a%41", "100%25%zz:%")) }
    for _ in 0..<2 {
      _ = try await client.get("http://nowhere.test/")
      let request = try await proxy.takeRequest()
      #expect(
        request.header("Proxy-Authorization")
          == HTTPHeader.authorization(username: "a%41", password: "100%25%zz:%").value)
    }
  }
}
