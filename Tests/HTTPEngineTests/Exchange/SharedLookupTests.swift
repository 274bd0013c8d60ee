import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

/// Requests that wait for the name service: at the same time, suspended, cancelled or late.
@Suite("Requests that wait for a name service", .timeLimit(.minutes(5))) struct SharedLookupTests {
  /// A name service, a server that it leads to, and a client of both.
  private struct Scene {
    let names = NameService([
      "shop.example": [IPAddress.loopback4].compactMap { $0 },
      "other.example": [IPAddress.loopback4].compactMap { $0 },
    ])
    let service: HTTPTestServer
    let server: HTTPTestServer
    let client: Client

    init() throws {
      service = try HTTPTestServer(.tls(.localhost), routes: names.routes)
      server = try HTTPTestServer()
      let url = service.url("/dns-query")
      client = Client { $0.nameServiceURL = url }
    }

    func request(_ host: String = "shop.example", deadline: Duration? = nil) throws -> WireRequest {
      try client.request("http://\(host):\(server.port)/get", deadline: deadline)
    }

    /// Sends a request that waits for a held look-up, and then one that does not wait for long. Returns the first one
    /// and the failure of the second.
    func waits(_ gate: Gate) async throws -> (Task<WireResponse, any Error>, TransportFailure) {
      names.hold(by: gate)
      let patient = try request()
      let answered = Task { [client] in try await client.send(patient) }
      await gate.waitForArrival(count: 2)
      return (answered, try await client.failure(of: request(deadline: .milliseconds(100))))
    }

    var askedNames: Set<String> { Set(names.questions.map(\.name)) }
  }

  @Test("Requests for one name at the same time ask the service once") func sharing() async throws {
    let scene = try Scene()
    let gate = Gate()
    scene.names.hold(by: gate)
    let request = try scene.request()
    try await withThrowingTaskGroup(of: Int.self) { group in
      let watchers = (0..<50).map { _ in Watcher() }
      for watcher in watchers {
        group.addTask { try await scene.client.send(request, watcher: watcher).status }
      }
      for watcher in watchers { await watcher.began.wait() }
      await gate.waitForArrival(count: 2)
      gate.open()
      for try await status in group { #expect(status == 200) }
    }
    #expect(scene.names.questions.count == 2)
  }

  @Test("A cancelled request leaves the look-up to those that still wait for it") func cancellation()
    async throws
  {
    let scene = try Scene()
    let gate = Gate()
    scene.names.hold(by: gate)
    let request = try scene.request()
    let (first, second) = (Watcher(), Watcher())
    let cancelled = Task { try await scene.client.failure(of: request, watcher: first) }
    await gate.waitForArrival(count: 2)
    let answered = Task { try await scene.client.send(request, watcher: second) }
    await second.began.wait()
    first.cancel()
    #expect(try await cancelled.value.kind == .cancelled)
    gate.open()
    #expect(try await answered.value.status == 200)
    #expect(first.endedCount == 1 && second.endedCount == 2)
  }

  @Test("Each request waits until its own deadline") func deadlines() async throws {
    let scene = try Scene()
    let gate = Gate()
    let (answered, failure) = try await scene.waits(gate)
    #expect(failure.kind == .timedOut && failure.phase == .total, "\(failure)")
    #expect(failure.message.contains("name service"), "\(failure.message)")
    gate.open()
    #expect(try await answered.value.status == 200)
    #expect(scene.names.questions.count == 2)
  }

  @Test("A request asks anew if another one has given up the wait for the running look-up")
  func stuckLookup() async throws {
    let scene = try Scene()
    let gate = Gate()
    let (answered, failure) = try await scene.waits(gate)
    #expect(failure.kind == .timedOut)
    scene.names.holdNothing()
    #expect(try await scene.client.send(scene.request()).status == 200)
    #expect(!gate.isOpen && scene.names.questions.count == 4)
    gate.open()
    #expect(try await answered.value.status == 200)
  }

  // MARK: Suspended requests

  @Test("The name of a suspended request is not asked for before it is resumed") func suspended() async throws
  {
    let scene = try Scene()
    let watcher = Watcher(startsClosed: true)
    let request = try scene.request()
    let response = Task { try await scene.client.send(request, watcher: watcher) }
    await watcher.began.wait()
    #expect(try await scene.client.send(scene.request("other.example")).status == 200)
    #expect(scene.askedNames == ["other.example"])
    watcher.resume()
    // This observer also suspends the transfer to the address.
    #expect(await ProcessFacts.eventually { watcher.beganCount == 2 })
    watcher.resume()
    #expect(try await response.value.status == 200)
    #expect(scene.askedNames == ["other.example", "shop.example"])
  }

  @Test("A suspended request can be cancelled, and ends at its deadline") func suspendedEnd() async throws {
    let scene = try Scene()
    let watcher = Watcher(startsClosed: true)
    let request = try scene.request()
    let failure = Task { try await scene.client.failure(of: request, watcher: watcher) }
    await watcher.began.wait()
    watcher.cancel()
    #expect(try await failure.value.kind == .cancelled)
    #expect(watcher.beganCount == 1 && watcher.endedCount == 1)
    let late = try await scene.client.failure(
      of: scene.request(deadline: .milliseconds(50)), watcher: Watcher(startsClosed: true))
    #expect(late.kind == .timedOut && late.phase == .total, "\(late)")
    #expect(!late.message.contains("name service"), "\(late.message)")
    #expect(scene.names.questions.isEmpty)
  }
}
