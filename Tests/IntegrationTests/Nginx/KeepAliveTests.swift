import Alamofire
import Testing

/// Servers that close connections, and servers that go away.
@Suite(.needsNginx, .timeLimit(.minutes(3))) struct KeepAliveTests {
  @Test(arguments: NginxServer.Entrance.allCases)
  func requestsGoOnWhenTheServerHasClosedIdleConnections(entrance: NginxServer.Entrance) async throws {
    let server = try await NginxServer(NginxConfiguration(keepAlive: "1s"))
    let session = server.makeSession()
    defer { withExtendedLifetime(session) {} }
    for _ in 0..<3 {
      let responses = await Batch.run(12) { _ in session.request(server.url(entrance, "/item")) }
      #expect(responses.failures.isEmpty)
      // Longer than the server waits, and less, so that some requests meet the closing itself.
      for pause in [1400, 990, 1000, 1010] {
        try await Task.sleep(for: .milliseconds(pause))
        let response = await session.request(server.url(entrance, "/item")).validate().serializingData()
          .response
        #expect(response.error == nil, "\(response.failure)")
      }
    }
  }

  @Test(arguments: NginxServer.Entrance.allCases)
  func requestsGoOnWhenAConnectionHasServedItsShare(entrance: NginxServer.Entrance) async throws {
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
    let visits = try await server.visits(to: "/item?one", count: 35)
    #expect(Set(visits.map(\.connection)).count == 4)
  }

  /// nginx drops connections that it has accepted and that have brought no request yet: on a new
  /// connection that is an error, and a clear one.
  @Test(arguments: NginxServer.Entrance.allCases)
  func aReloadInTheMiddleCostsHardlyARequest(entrance: NginxServer.Entrance) async throws {
    let server = try await NginxServer()
    let session = server.makeSession()
    defer { withExtendedLifetime(session) {} }
    let flow = Task {
      var errors: [AFError] = []
      for _ in 0..<40 {
        errors += await Batch.run(20) { _ in session.request(server.url(entrance, "/item?reload")) }
          .compactMap(\.error)
      }
      return errors
    }
    for _ in 0..<5 {
      try server.reload()
      try await Task.sleep(for: .milliseconds(100))
    }
    let errors = await flow.value
    #expect(errors.count < 8, "\(errors)")
    #expect(
      errors.allSatisfy { ($0.underlyingError as? URLError)?.code == .networkConnectionLost }, "\(errors)")
    let later = await session.request(server.url(entrance, "/item")).validate().serializingData().response
    #expect(later.error == nil, "\(later.failure)")
  }

  @Test(arguments: NginxServer.Entrance.allCases)
  func aServerThatDiesInTheMiddleIsAClearError(entrance: NginxServer.Entrance) async throws {
    let server = try await NginxServer()
    let session = server.makeSession()
    defer { withExtendedLifetime(session) {} }
    try server.serve(Data(repeating: 1, count: 1_000_000), as: "slow")
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
