import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

@Suite(.timeLimit(.minutes(5))) struct LifeTests {
  @Test("Shutting down ends running, queued and later transfers") func shutDown() async throws {
    let server = try HTTPTestServer(routes: .none)
    let gate = Gate()
    for _ in 0..<2 { server.enqueue(.ok.held(by: gate)) }
    let client = Client(connectionsPerHost: 2)
    let url = server.url("/")
    let watchers = (0..<10).map { _ in Watcher() }
    let tasks = try watchers.map { try CancellationTests.start(client, client.request(url), $0) }
    for watcher in watchers { await watcher.began.wait() }
    await gate.waitForArrival(count: 2)
    client.transport.shutDown()
    for task in tasks { #expect(await task.value == .shutDown) }
    #expect(watchers.allSatisfy { $0.endedCount == 1 && $0.callsAfterEnd == 0 })
    for _ in 0..<3 {
      let late = Watcher()
      #expect(try await client.failure(of: client.request(url), watcher: late).kind == .shutDown)
      #expect(late.beganCount == late.endedCount)
    }
    client.transport.shutDown()
    #expect(server.connectionCount == 2, "nothing that waited was started")
  }

  @Test("Shutting down ends a stream of bytes that waits for its server, and its operations")
  func waitingStream() async throws {
    let server = try StreamTestServer()
    let client = Client()
    let (stream, probe) = client.stream("127.0.0.1", port: server.port)
    #expect(try await stream.echo([1, 2]).get() == [1, 2])
    let (failures, continuation) = AsyncStream.makeStream(of: TransportFailure.FailureKind?.self)
    stream.read(least: 1, most: 1, timeout: nil) { result in
      if case .failure(let failure) = result {
        continuation.yield(failure.kind)
      } else {
        continuation.yield(nil)
      }
      continuation.finish()
    }
    try await client.roundTrip()
    client.transport.shutDown()
    guard case .failure(let end) = await probe.end(), end.kind == .shutDown else {
      return _ = Issue.record("the stream has not ended")
    }
    for await kind in failures { #expect(kind == .shutDown) }
    withExtendedLifetime(server) {}
  }

  @Test("A transport can be shut down before its first request") func shutDownBeforeTheFirstRequest()
    async throws
  {
    let server = try HTTPTestServer()
    let client = Client()
    client.transport.shutDown()
    #expect(try await client.failure(of: server.url("/get")).kind == .shutDown)
    #expect(server.connectionCount == 0)
  }

  @Test("Shutting down closes the connections, although the loop has given its thread back")
  func idleConnections()
    async throws
  {
    await #expect(processExitsWith: .success) {
      let server = try HTTPTestServer()
      let client = Client(lingering: .milliseconds(1))
      _ = try await client.get(server.url("/get"))
      #expect(await ProcessFacts.eventually { ProcessFacts.engineThreadCount == 0 })
      #expect(server.openConnectionCount == 1)
      client.transport.shutDown()
      #expect(await ProcessFacts.eventually { server.openConnectionCount == 0 })
      withExtendedLifetime(client) {}
    }
  }

  @Test("Shutting down does not affect another transport") func otherTransport() async throws {
    let server = try HTTPTestServer()
    let first = Client()
    let second = Client()
    _ = try await first.get(server.url("/get"))
    _ = try await second.get(server.url("/get"))
    first.transport.shutDown()
    #expect(try await second.get(server.url("/get")).metrics.values.isReusedConnection)
  }

  @Test("The loop runs tasks on its thread") func tasks() async throws {
    let loop = EventLoop(lingering: .milliseconds(50))
    #expect(!loop.isCurrent)
    await withTaskExecutorPreference(loop) {
      #expect(loop.isCurrent)
      await Task.yield()
      #expect(loop.isCurrent)
      let isCurrentInChild = await withTaskGroup(of: Bool.self) { group in
        group.addTask { loop.isCurrent }
        return await group.next() ?? false
      }
      #expect(isCurrentInChild)
    }
    #expect(!loop.isCurrent)
  }

  @Test("A loop that starts and ends repeatedly loses no job") func jobs() async {
    // At nearly every post, the loop is about to give its thread back.
    let loop = EventLoop(lingering: .zero)
    for number in 0..<500 {
      let answer = await withTaskExecutorPreference(loop) { number }
      #expect(answer == number)
    }
    await withTaskGroup(of: Int.self) { group in
      for number in 0..<1000 { group.addTask { await withTaskExecutorPreference(loop) { number } } }
      var sum = 0
      for await number in group { sum += number }
      #expect(sum == 499_500)
    }
  }

  @Test("A loop that starts and ends repeatedly serves requests") func requests() async throws {
    let server = try HTTPTestServer()
    let client = Client(lingering: .zero)
    for _ in 0..<200 { #expect(try await client.get(server.url("/get")).status == 200) }
    #expect(server.connectionCount == 1)
  }
}
