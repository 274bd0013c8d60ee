import FoundationEssentials
import HTTPTestServer
import HTTPWire
import Testing

/// The request line, `Host`, and the names that TLS receives (RFC 9112 §3, RFC 6066 §3).
@Suite("Text of requests", .timeLimit(.minutes(5))) struct RequestTextTests {
  /// Answers every request of a proxy with 200, and returns the head that the proxy received.
  private func headAtProxy(_ url: String, _ fields: [HTTPHeader] = []) async throws -> RecordedRequest {
    let proxy = try HTTPTestServer(routes: .none)
    proxy.enqueue(.ok)
    let client = Client { $0.proxy = .server(ProxyServer(.http, host: "127.0.0.1", port: proxy.port)) }
    #expect(try await client.send(client.request(url, fields: fields)).status == 200)
    return try await proxy.takeRequest()
  }

  @Test(
    "Host leaves out the default port and keeps brackets",
    arguments: [
      ("http://a.example/x", "a.example"), ("http://a.example:80/x", "a.example"),
      ("http://a.example:81/x", "a.example:81"), ("http://[2001:db8::1]/x", "[2001:db8::1]"),
      ("http://[2001:db8::1]:81/x", "[2001:db8::1]:81"), ("http://a.example./x", "a.example."),
    ])
  func host(url: String, host: String) async throws {
    let request = try await headAtProxy(url)
    #expect(request.headers(named: "Host") == [host])
    #expect(request.target.hasSuffix("/x"))
    #expect(request.target.hasPrefix("http://"))
  }

  @Test("The absolute form has neither user information nor a fragment") func absoluteForm() async throws {
    let request = try await headAtProxy("http://ann:s3cret@a.example/x?y=1#part")
    #expect(request.target == "http://a.example/x?y=1")
    #expect(!request.headers.contains { $0.value.contains("s3cret") })
  }

  @Test("A proxy receives the fields of the request and no others") func noAddedFields() async throws {
    let request = try await headAtProxy("http://a.example/", [HTTPHeader(name: "X-A", value: "1")])
    #expect(request.headers.map(\.name) == ["Host", "X-A"])
  }

  @Test(
    "Numbers that inet_aton accepts are addresses",
    arguments: ["127.1", "0x7f000001", "2130706433", "0177.0.0.1"])
  func numericHosts(host: String) async throws {
    let server = try HTTPTestServer()
    let response = try await Client().get("http://\(host):\(server.port)/get")
    #expect(response.status == 200)
    #expect(response.metrics.remoteAddress == "127.0.0.1")
  }

  @Test(
    "localhost and its subdomains are this machine", arguments: ["localhost", "a.localhost", "LOCALHOST"])
  func localNames(host: String) async throws {
    let server = try HTTPTestServer()
    let response = try await Client().get("http://\(host):\(server.port)/get")
    #expect(response.status == 200)
    #expect(response.metrics.remoteAddress == "127.0.0.1")
  }

  @Test(
    "Connections begin at the given interface, address or name",
    arguments: ["if!lo", "lo", "host!127.0.0.1", "127.0.0.1", "127.0.0.2", "host!localhost"])
  func localInterface(name: String) async throws {
    let server = try HTTPTestServer()
    let response = try await Client { $0.localInterface = name }.get(server.url("/get"))
    #expect(response.status == 200)
    #expect(response.metrics.localAddress == (name == "127.0.0.2" ? "127.0.0.2" : "127.0.0.1"))
  }

  @Test("HTTP/1.1 alone is offered if no other version is allowed") func applicationProtocols() async throws {
    var options = TLSOptions()
    options.applicationProtocols = ["h2", "http/1.1"]
    let server = try HTTPTestServer(.tls(.localhost, options))
    #expect(try await Client { $0.httpVersions = .http1Only }.get(server.url("/get")).status == 200)
    #expect(try await server.takeRequest().tls?.applicationProtocol == "http/1.1")
  }

  @Test("TLS is asked for a name without its last dot, and for no address") func serverName() async throws {
    let identity = try TestIdentity(
      .init(
        commonName: "a", dnsNames: ["a.example", "localhost"], ipAddresses: ["127.0.0.1"],
        issuer: .localhostAuthority))
    let server = try HTTPTestServer(.tls(identity))
    let client = Client {
      $0.hostOverrides = [.init(host: "a.example.", target: "127.0.0.1", targetPort: server.port)]
    }
    for (url, name, host) in [
      ("https://a.example./get", "a.example", "a.example."),
      ("https://127.0.0.1:\(server.port)/get", nil, "127.0.0.1:\(server.port)"),
    ] {
      #expect(try await client.get(url).status == 200, "\(url)")
      let request = try await server.takeRequest()
      #expect(request.tls?.serverName == name, "\(url)")
      #expect(request.header("Host") == host, "\(url)")
    }
  }
}
