import Alamofire
import Testing

/// Servers that close connections or end.
@Suite(.needsNginx, .timeLimit(.minutes(5))) struct KeepAliveTests {
  @Test(
    "Requests succeed after the server has closed idle connections", arguments: NginxServer.Entrance.allCases)
  func idleConnections(entrance: NginxServer.Entrance) async throws {
    // Without lingering, nginx counts a connection only as long as it is open.
    let server = try await NginxServer(NginxConfiguration(keepAlive: "1s", locations: "lingering_close off;"))
    let session = server.makeSession()
    let observer = server.makeSession()
    defer { withExtendedLifetime((session, observer)) {} }
    for round in 0..<6 {
      let responses = await Batch.run(12) { _ in session.request(server.url(entrance, "/item")) }
      #expect(responses.failures.isEmpty)
      // When one is closed, the others are about to be closed, so that every other request meets a closing connection.
      let kept = try await server.connectionCount(observer: observer)
      let isClosed = try await eventually {
        let left = try await server.connectionCount(observer: observer)
        return round.isMultiple(of: 2) ? left == 0 : left < max(1, kept)
      }
      #expect(isClosed)
    }
  }

  @Test(
    "Requests succeed after a connection has served its maximum", arguments: NginxServer.Entrance.allCases)
  func requestsPerConnection(entrance: NginxServer.Entrance) async throws {
    let server = try await NginxServer(NginxConfiguration(requestsPerConnection: 10))
    let session = server.makeSession()
    defer { withExtendedLifetime(session) {} }
    for _ in 0..<35 {
      let response = await session.request(server.url(entrance, "/item?one")).validate().serializingData()
        .response
      #expect(response.error == nil, "\(response.failure)")
    }
    let responses = await Batch.run(300) { _ in session.request(server.url(entrance, "/item?many")) }
    #expect(responses.failures.isEmpty)
    let loggedRequests = try await server.loggedRequests(to: "/item?one", count: 35)
    #expect(Set(loggedRequests.map(\.connection)).count == 4)
  }

  /// Reloads the server during requests. nginx closes accepted connections that have not sent a request yet. On a new
  /// connection that is a clear error.
  @Test("A reload fails few requests", arguments: NginxServer.Entrance.allCases)
  func reload(entrance: NginxServer.Entrance) async throws {
    let server = try await NginxServer()
    let session = server.makeSession()
    defer { withExtendedLifetime(session) {} }
    var errors: [AFError] = []
    for round in 0..<40 {
      async let batch = Batch.run(20) { _ in session.request(server.url(entrance, "/item?reload")) }
      if round.isMultiple(of: 8) { try server.reload() }
      errors += await batch.compactMap(\.error)
    }
    #expect(errors.count < 8, "\(errors)")
    #expect(
      errors.allSatisfy { ($0.underlyingError as? URLError)?.code == .networkConnectionLost }, "\(errors)")
    let later = await session.request(server.url(entrance, "/item")).validate().serializingData().response
    #expect(later.error == nil, "\(later.failure)")
  }

  @Test("A server that ends during requests is a clear error", arguments: NginxServer.Entrance.allCases)
  func endOfServer(entrance: NginxServer.Entrance) async throws {
    let server = try await NginxServer()
    let session = server.makeSession()
    defer { withExtendedLifetime(session) {} }
    // The response takes minutes, so that a busy machine cannot finish it earlier.
    try server.serve(Data(repeating: 1, count: 20_000_000), as: "slow")
    let (heads, arrived) = AsyncStream.makeStream(of: Int.self)
    let request = session.request(server.url(entrance, "/slow/slow")).onHTTPResponse(
      on: DispatchQueue(label: "head")
    ) { arrived.yield($0.statusCode) }
    let task = request.serializingData()
    for await status in heads {
      #expect(status == 200)
      break
    }
    try server.kill()
    let broken = await task.response
    #expect((broken.error?.underlyingError as? URLError)?.code == .networkConnectionLost, "\(broken.failure)")
    #expect(broken.error?.errorDescription?.contains("127.0.0.1") == true)
    #expect(await eventually { !server.isAnswering })
    let later = await session.request(server.url(entrance, "/item")).serializingData().response
    #expect((later.error?.underlyingError as? URLError)?.code == .cannotConnectToHost, "\(later.failure)")
  }
}
