import Alamofire
import Testing

/// The number of connections of requests, from the log of nginx.
@Suite(.needsNginx, .timeLimit(.minutes(5))) struct ConnectionTests {
  @Test("Requests over HTTP/2 share one connection") func sharedConnection() async throws {
    let server = try await NginxServer.shared
    let session = server.makeSession()
    defer { withExtendedLifetime(session) {} }
    let path = "/item?shared"
    // The first request finds out the version of HTTP.
    let first = await session.request(server.url(.h2, path)).validate().serializingData().response
    #expect(first.transaction?.networkProtocolName == "h2")
    #expect(first.transaction?.isReusedConnection == false)
    #expect(first.transaction?.negotiatedTLSProtocolVersion != nil)

    // As many concurrent requests as one connection allows.
    var responses = await Batch.run(100) { _ in session.request(server.url(.h2, path)) }
    responses += await Batch.run(100) { _ in session.request(server.url(.h2, path)) }
    #expect(responses.failures.isEmpty)
    #expect(responses.allSatisfy { $0.value == Data(NginxConfiguration.item.utf8) })
    #expect(responses.allSatisfy { $0.transaction?.networkProtocolName == "h2" })
    #expect(responses.allSatisfy { $0.transaction?.isReusedConnection == true })
    let loggedRequests = try await server.loggedRequests(to: path, count: 201)
    #expect(loggedRequests.count == 201)
    #expect(Set(loggedRequests.map(\.version)) == ["HTTP/2.0"])
    #expect(Set(loggedRequests.map(\.connection)).count == 1)
  }

  /// Starts streams while others run.
  @Test("No stream stalls while others start") func stalledStreams() async throws {
    let server = try await NginxServer.shared
    let session = server.makeSession()
    defer { withExtendedLifetime(session) {} }
    let start = ContinuousClock.now
    var rounds = 0
    while rounds < 300, ContinuousClock.now - start < .seconds(20) {
      rounds += 1
      let responses = await Batch.run(20) { _ in session.request(server.url(.h2, "/item?forgotten")) }
      #expect(responses.failures.isEmpty)
      // A loop that forgets a stream sleeps for a minute.
      #expect(responses.allSatisfy { $0.duration < 30 })
    }
  }

  @Test("Concurrent requests respect the limit of connections", arguments: NginxServer.Entrance.allCases)
  func limit(entrance: NginxServer.Entrance) async throws {
    let server = try await NginxServer.shared
    try await expectBurst(of: 500, on: server, entrance)
  }

  @Test("Concurrent requests respect the limit if a connection allows few streams") func limitWithFewStreams()
    async throws
  {
    let server = try await NginxServer(NginxConfiguration(streamsPerConnection: 8))
    try await expectBurst(of: 500, on: server, .h2)
  }

  @Test("The limit of connections comes from the configuration", arguments: [NginxServer.Entrance.http, .h2])
  func configuredLimit(entrance: NginxServer.Entrance) async throws {
    let server = try await NginxServer.shared
    try await expectBurst(of: 50, on: server, entrance, limit: 2)
  }

  private func expectBurst(
    of count: Int, on server: NginxServer, _ entrance: NginxServer.Entrance, limit: Int? = nil
  ) async throws {
    let configuration = URLSessionConfiguration.af.default
    if let limit { configuration.httpMaximumConnectionsPerHost = limit }
    let session = server.makeSession(configuration: configuration)
    defer { withExtendedLifetime(session) {} }
    let path = "/item?burst-\(entrance)-\(count)-\(limit ?? 0)"
    let responses = await Batch.run(count) { _ in session.request(server.url(entrance, path)) }
    #expect(responses.failures.isEmpty)
    let loggedRequests = try await server.loggedRequests(to: path, count: count)
    #expect(loggedRequests.count == count)
    #expect(Set(loggedRequests.map(\.version)) == [entrance == .h2 ? "HTTP/2.0" : "HTTP/1.1"])
    #expect(Set(loggedRequests.map(\.connection)).count <= configuration.httpMaximumConnectionsPerHost)
  }

  @Test("Without HTTP/2 in ALPN, connections use HTTP/1.1") func http1() async throws {
    let server = try await NginxServer.shared
    let session = server.makeSession { $0.httpVersions = .http1Only }
    defer { withExtendedLifetime(session) {} }
    let response = await session.request(server.url(.h2, "/item?http1")).serializingData().response
    #expect(response.transaction?.networkProtocolName == "http/1.1")
    let again = await session.request(server.url(.h2, "/item?http1")).serializingData().response
    #expect(again.transaction?.isReusedConnection == true)
  }

  @Test("A certificate of an unknown authority is refused with a message") func unknownAuthority()
    async throws
  {
    let server = try await NginxServer.shared
    let response = await AF.request(server.url(.h2, "/item?untrusted")).serializingData().response
    let error = response.error?.underlyingError as? URLError
    #expect(error?.code == .serverCertificateHasUnknownRoot)
    #expect(response.error?.errorDescription?.contains("does not lead to a trusted root") == true)
    let loggedRequests = try await server.loggedRequests(to: "/item?untrusted", count: 0)
    #expect(loggedRequests.isEmpty)
  }

  @Test("A trust store that cannot be read is an error with a message") func unreadableTrustStore()
    async throws
  {
    let server = try await NginxServer.shared
    let session = server.makeSession { $0.trustStore = .file("/no/such/file") }
    defer { withExtendedLifetime(session) {} }
    let response = await session.request(server.url(.h2, "/item?trust")).serializingData().response
    #expect((response.error?.underlyingError as? URLError)?.code == .serverCertificateUntrusted)
    #expect(response.error?.errorDescription?.contains("trusted certificates could not be read") == true)
  }
}
