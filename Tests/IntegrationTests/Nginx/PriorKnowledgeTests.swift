import Alamofire
import HTTPTestServer
import Testing

/// HTTP/2 without TLS, which requires prior knowledge.
@Suite("HTTP/2 with prior knowledge", .needsNginx, .timeLimit(.minutes(5)))
struct PriorKnowledgeTests {
  private func session(of server: NginxServer, _ configuration: URLSessionConfiguration = .isolated)
    -> Session
  {
    server.makeSession(configuration: configuration) { $0.httpVersions = .http2PriorKnowledge }
  }

  @Test("Every request uses HTTP/2") func http2() async throws {
    let server = try await NginxServer.shared
    let session = session(of: server)
    defer { withExtendedLifetime(session) {} }
    for number in 0..<5 {
      let response = await session.request(server.url(.h2c, "/item?h2c")).validate().serializingString()
        .response
      #expect(response.value == NginxConfiguration.item, "\(response.failure)")
      #expect(response.transaction?.networkProtocolName == "h2")
      #expect(response.transaction?.isReusedConnection == (number > 0))
      #expect(response.transaction?.negotiatedTLSProtocolVersion == nil)
    }
    let loggedRequests = try await server.loggedRequests(to: "/item?h2c", count: 5)
    #expect(loggedRequests.map(\.version) == Array(repeating: "HTTP/2.0", count: 5))
    #expect(Set(loggedRequests.map(\.connection)).count == 1)
  }

  @Test("Concurrent requests respect the limit of connections") func limit() async throws {
    let gate = Gate()
    let backend = try HTTPTestServer(
      routes: Routes.none.adding("/held") { _, _ in Reply.text("held").held(by: gate) })
    let server = try await NginxServer(
      NginxConfiguration(locations: "location /held { proxy_pass \(backend.baseURL); }"))
    let session = session(of: server)
    let observer = server.makeSession()
    defer { withExtendedLifetime((session, observer)) {} }
    async let batch = Batch.run(200) { _ in session.request(server.url(.h2c, "/held")) }
    await gate.waitUntilReached(count: 6)
    // One connection carries as many requests as the server allows at a time.
    let count = try await server.connectionCount(observer: observer)
    #expect((1...6).contains(count), "\(count) connections")
    gate.open()
    let responses = await batch
    #expect(responses.failures.isEmpty)
    #expect(responses.allSatisfy { $0.transaction?.networkProtocolName == "h2" })
    #expect(responses.count { $0.value == Data("held".utf8) } == 200)
  }

  @Test("Bodies are transferred", arguments: [0, 10_000, 1_000_000])
  func bodies(size: Int) async throws {
    let server = try await NginxServer.shared
    let session = session(of: server)
    defer { withExtendedLifetime(session) {} }
    let url = server.url(.h2c, "/stored/h2c-\(size)")
    var request = try URLRequest(url: url, method: .put)
    request.httpBody = Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) })
    let put = await session.request(request).validate().serializingData(emptyResponseCodes: [201, 204])
      .response
    #expect(put.transaction?.networkProtocolName == "h2", "\(put.failure)")
    let get = await session.request(url).validate().serializingData(emptyResponseCodes: [200]).response
    #expect(get.data ?? Data() == request.httpBody, "\(get.failure)")
    #expect(get.transaction?.networkProtocolName == "h2")
  }

  @Test("With TLS, HTTP/2 is negotiated") func tls() async throws {
    let server = try await NginxServer.shared
    let session = session(of: server)
    defer { withExtendedLifetime(session) {} }
    for (entrance, version) in [(NginxServer.Entrance.h2, "h2"), (.https1, "http/1.1")] {
      for isReused in [false, true] {
        let response = await session.request(server.url(entrance, "/item?known")).serializingData().response
        #expect(response.transaction?.networkProtocolName == version)
        #expect(response.transaction?.isReusedConnection == isReused)
      }
    }
  }

  @Test("A server without HTTP/2 is a clear error") func serverWithoutHTTP2() async throws {
    let server = try await NginxServer.shared
    let session = session(of: server)
    defer { withExtendedLifetime(session) {} }
    let response = await session.request(server.url(.http, "/item?refused")).serializingData().response
    #expect(response.error?.underlyingError is URLError, "\(response.failure)")
    #expect(response.response == nil)
    let plain = server.makeSession()
    let other = await plain.request(server.url(.http, "/item?refused")).serializingData().response
    #expect(other.transaction?.networkProtocolName == "http/1.1")
  }

  @Test("One request of a session can use prior knowledge") func oneRequest() async throws {
    let server = try await NginxServer.shared
    let session = server.makeSession()
    defer { withExtendedLifetime(session) {} }
    for _ in 0..<2 {
      let own = session.request(server.url(.h2c, "/item?own"))
        .transportOptions { $0.httpVersions = .http2PriorKnowledge }
      #expect(await own.serializingData().response.transaction?.networkProtocolName == "h2")
      let usual = await session.request(server.url(.http, "/item?usual")).serializingData().response
      #expect(usual.transaction?.networkProtocolName == "http/1.1", "\(usual.failure)")
    }
  }
}
